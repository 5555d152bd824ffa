"""What a collector captures of the process that measures, and what the recorder makes of it."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import pyarrow as pa

from warpladder.data.store import RunWriter

#: Writes the trace tables of what was captured, by case; gives the samples with its device times, and rows of `diagnostics`.
AddCaptured = Callable[[RunWriter, Sequence[Any], pa.Table], tuple[pa.Table, list[dict[str, Any]]]]


class Capture(Protocol):
    """What a collector captures of the process itself."""

    def begin(self) -> None:
        """Called before a case is measured."""
        ...

    def take(self) -> Any:
        """What was captured since the last time; None where nothing can be."""
        ...

    def end(self) -> None:
        """Called once, when no more will be measured."""
        ...


class NoCapture:
    """Captures nothing."""

    def begin(self) -> None: ...

    def take(self) -> Any:
        return None

    def end(self) -> None: ...
