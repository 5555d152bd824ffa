"""The interface of a capture, which records the activity of the measuring process. The recorder writes it to the run."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import pyarrow as pa

from warpladder.data.store import RunWriter

#: Writes the trace tables of the batches captured for each case. Returns the samples with the trace's device times, and rows of
#: `diagnostics`.
AddCaptured = Callable[[RunWriter, Sequence[Any], pa.Table], tuple[pa.Table, list[dict[str, Any]]]]


class Capture(Protocol):
    """Records the activity of its own process."""

    def begin(self) -> None:
        """Called before a case is measured."""
        ...

    def take(self) -> Any:
        """Return the records captured since the last call; None if this capture records nothing."""
        ...

    def end(self) -> None:
        """Called once, after the last case."""
        ...


class NoCapture:
    """Captures nothing."""

    def begin(self) -> None: ...

    def take(self) -> Any:
        return None

    def end(self) -> None: ...
