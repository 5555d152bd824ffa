"""Protocols for streams and events of any GPU library."""

from typing import Any, Protocol


class Event(Protocol):
    """A mark in a stream's work."""

    def record(self, stream: Any) -> None: ...


class Stream(Protocol):
    """A queue of work that runs in order."""

    def wait_event(self, event: Any) -> None: ...
