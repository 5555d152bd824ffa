"""How a cell is timed, and what its speedup is counted from."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Timing:
    """How a cell is timed: a scope, and the state of the caches."""

    scope: str
    cache: str

    def label(self, *, on_gpu: bool) -> str:
        """The timing in words: `device time, cold L2`, or `operation time, caches warm` on a processor."""
        caches = f"{self.cache} L2" if on_gpu else f"caches {'warm' if self.cache == 'hot' else self.cache}"
        return f"{self.scope.replace('_', ' ')} time, {caches}"


@dataclass(frozen=True)
class Baseline:
    """The variant and config that speedups are counted from."""

    variant: str
    config: str
