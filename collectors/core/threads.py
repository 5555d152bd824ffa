"""Measures in a thread of this process, for workloads that no other process can load, such as the workloads of a notebook.

Nothing protects the process here: a variant that crashes ends it, and a call that hangs in a library keeps running. Everything else is as
in a separate process.
"""

import ctypes
import multiprocessing
import threading
import time
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from typing import Final

from warpladder.collectors.core.bench import Ended
from warpladder.collectors.core.children import POLL_S, STOP_TIMEOUT_S, Child, ChildLost, never
from warpladder.collectors.core.collector import Collector
from warpladder.collectors.core.worker import serve

_GIVE_UP_S: Final = 2.0
#: Seconds in which a thread returns after it has said that a variant crashed.
_CRASH_S: Final = 0.5
_RESTART: Final = "restart the kernel or the interpreter"
#: Threads that could not be ended. They may keep the device or a processor busy.
_stuck_threads: Final[list[threading.Thread]] = []


class Steps:
    """The progress of a thread, as the array that processes share. After `end`, the thread's next step raises Ended in it."""

    def __init__(self) -> None:
        self._values = [-1, 0]
        self._ended = False

    def __getitem__(self, place: int) -> int:
        return self._values[place]

    def __setitem__(self, place: int, value: int) -> None:
        if self._ended:
            raise Ended
        self._values[place] = value

    def end(self) -> None:
        self._ended = True


class ThreadChild(Child):
    """A thread and the pipe to it. `modules`: modules that it imports before its first question; modules that are
    missing are skipped."""

    progress: Steps

    def __init__(self, collector: Collector, modules: Sequence[str] = ()) -> None:
        self.connection, child_end = multiprocessing.Pipe()
        self.progress = Steps()
        self._failure: BaseException | None = None
        self._is_dismissed = False
        self._thread = threading.Thread(target=self._run, args=(child_end, collector, modules), name="warpladder", daemon=True)
        self._thread.start()

    def _run(self, connection: Connection, collector: Collector, modules: Sequence[str]) -> None:
        with connection:
            try:
                serve(connection, self.progress, collector, modules)
            except Ended:
                pass
            except BaseException as error:  # SystemExit too: a variant may raise it
                self._failure = error

    def why_dead(self) -> tuple[str, str]:
        self._thread.join(STOP_TIMEOUT_S)
        error = self._failure
        text = " ".join(f"{type(error).__name__}: {error}".split())[:500] if error else "without a word"
        return "launch_error", f"it ended the measuring thread ({text})"

    def what_became(self) -> str:
        return f"and it cannot be ended; {_RESTART}" if self._thread.is_alive() else "so it was ended"

    def dismiss(self) -> None:
        self._is_dismissed = True
        super().dismiss()

    def stop(self, patience_s: float = 0.0, hurry: Callable[[], bool] = never) -> None:
        """End the thread at its next step, or between two lines of Python. A thread within a call of a library goes on."""
        if not self._is_dismissed:
            self._join(_CRASH_S)
        crashed = not self._thread.is_alive() and not self._is_dismissed and self._failure is None
        self.dismiss()
        self.progress.end()
        self._join(min(patience_s, STOP_TIMEOUT_S), hurry)
        if self._thread.is_alive():
            _raise_in(self._thread)
            self._join(_GIVE_UP_S)
        if self._thread.is_alive():
            _stuck_threads.append(self._thread)
        if crashed:
            _unusable.append("a variant left CUDA unusable in this process")

    def _join(self, seconds: float, hurry: Callable[[], bool] = never) -> None:
        deadline = time.monotonic() + seconds
        while self._thread.is_alive() and time.monotonic() < deadline and not hurry():
            self._thread.join(POLL_S)


#: Why no thread can measure in this process any more.
_unusable: Final[list[str]] = []


def why_not() -> str:
    """Why nothing can be measured in this process, and what to do; empty if it can."""
    _stuck_threads[:] = [thread for thread in _stuck_threads if thread.is_alive()]
    if _stuck_threads:
        return f"a call of an earlier variant still runs in this process; {_RESTART}"
    return f"{_unusable[0]}; {_RESTART}" if _unusable else ""


def start(collector: Collector, modules: Sequence[str] = ()) -> Child:
    """Start a thread that measures. Raises ChildLost: nothing can be measured in this process any more."""
    if problem := why_not():
        raise ChildLost(None, "skipped", problem)
    return ThreadChild(collector, modules)


def _raise_in(thread: threading.Thread) -> None:
    """Raise Ended in a thread, before its next line of Python.

    Source: PyThreadState_SetAsyncExc in Python's C API.
    """
    if thread.ident is not None:
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ctypes.py_object(Ended))
