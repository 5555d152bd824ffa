"""What is asked of a stream and of an event, whatever library makes them."""

from typing import Any, Protocol


class Event(Protocol):
    """Marks a place in a stream."""

    def record(self, stream: Any) -> None: ...


class Stream(Protocol):
    """Work in order."""

    def wait_event(self, event: Any) -> None: ...
