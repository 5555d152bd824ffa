"""The entry of a collector: what the choice, the recording, the doctor and the help know of it. `collectors/choice.py` lists them."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module, metadata
from typing import Any

from warpladder.collectors.core.environment import Tool, has_module
from warpladder.installation import how_to_install


def late(where: str) -> Callable[..., Any]:
    """The function or class at `module:name`, whose module is imported when it is called, since most parts load the GPU packages."""

    def call(*arguments: Any, **options: Any) -> Any:
        module, _, name = where.partition(":")
        return getattr(import_module(module), name)(*arguments, **options)

    return call


@dataclass(frozen=True)
class Package:
    """A package that a collector needs.

    Attributes:
        extra: the extra of this project that brings it.
        check: why it does not run though it is installed; None where it runs.
    """

    name: str
    module: str
    extra: str
    use: str
    check: Callable[[], str | None] = lambda: None

    @property
    def problem(self) -> str | None:
        """Why it cannot be used here and how to fix it; None if it can."""
        why = self.check() if has_module(self.module) else "is not installed"
        return f"{self.name} {why}; {how_to_install(self.extra)}" if why else None

    @property
    def found(self) -> str:
        """The tool that was found, or how to get it."""
        if not has_module(self.module):
            return f"{self.use}; optional: {how_to_install(self.extra)}"
        return self.problem or metadata.version(self.name)


@dataclass(frozen=True)
class Entry:
    """A collector.

    Attributes:
        needs: programs and packages, besides those of every collector for a GPU.
        on_gpu: whether it measures on a GPU.
        traces: whether a run of it has a trace.
        capture: makes the `Capture` of the measuring process; None without one.
        inside: of a tool: the collector that records as its child.
        record: of a tool: records under it, as `nsight_systems.record.record` does.
    """

    name: str
    needs: tuple[Tool | Package, ...] = ()
    on_gpu: bool = True
    traces: bool = False
    capture: Callable[[], Any] | None = None
    inside: str = ""
    record: Callable[..., tuple[str, int]] | None = None

    @property
    def problem(self) -> str | None:
        """Why what it needs cannot be used here, and how to fix it; None if it can."""
        return next((problem for need in self.needs if (problem := need.problem)), None)
