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
    """The cell of a case that speedups are counted from.

    Attributes:
        gpus: as in `samples`; 0 on a host.
        doubt: why it may not be called best, so that there is no speedup over it; see `trusted.doubt`.
    """

    variant: str
    config: str
    gpus: int
    doubt: str

    @property
    def no_speedup(self) -> str:
        """Why there is no speedup over it; empty where there is one."""
        name = f"{self.variant}[{self.config}]" if self.config else self.variant
        return f"no speedup: the baseline {name} is {self.doubt}" if self.doubt else ""
