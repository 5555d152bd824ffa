"""The process that is started for a save, and what the watch and that process tell each other."""

import multiprocessing
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Self

from warpladder.collectors.core.plan import Request
from warpladder.collectors.core.processes import Guarded
from warpladder.collectors.core.signals import Stop
from warpladder.collectors.watch.snapshot import Change, Snapshot

#: The module whose `load_and_record` the process runs. It imports the commands, so that it is named as text only.
_ENTRY: Final = "warpladder.collectors.watched"
#: Seconds between two signals to a recording of an earlier text, and the signals after which its process is killed.
_AGAIN_S: Final = 2.0
_MOST_SIGNALS: Final = 8
#: The signals of the user that a recording gets; one more kills its process.
_MOST_OF_USER: Final = 3
_STDERR: Final = 2


@dataclass(frozen=True)
class Order:
    """What to load, and to record as far as it changed.

    Attributes:
        launcher: starts the ranks that share a case, as for `commands.record_run`.
        last: the files as they were recorded last; None to record everything.
        ceilings_of: folder of the run whose ceilings hold for this recording too; None to measure them.
    """

    request: Request
    collector: str
    launcher: Any
    data_dir: Path
    label: str
    last: Snapshot | None
    ceilings_of: Path | None = None


@dataclass(frozen=True)
class Loaded:
    """The files have been loaded.

    Attributes:
        change: what differs from the last recording; None without one.
        recorded: names of the variants that are recorded now; None for all that were asked for.
    """

    snapshot: Snapshot
    change: Change | None
    recorded: tuple[str, ...] | None


@dataclass(frozen=True)
class Recorded:
    """The run is written, perhaps without what a signal cut off."""

    run_id: str


@dataclass(frozen=True)
class Mistake:
    """Nothing was recorded.

    Attributes:
        text: why, in one line.
        of_file: whether the user's files are to be mended, and not the command.
        files: kernel sources that the files name.
    """

    text: str
    of_file: bool
    files: tuple[Path, ...] = ()


Told = Loaded | Recorded | Mistake


class Process:
    """A process that loads the user's files anew, and records them.

    Args:
        order: what to record.

    Raises:
        OSError: it cannot be started.
    """

    def __init__(self, order: Order) -> None:
        self._connection, theirs = multiprocessing.Pipe()
        with theirs:
            # Until it installs handlers, SIGINT ends it without a traceback.
            code = (
                "import signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); "
                f"sys.path[:] = {sys.path!r}; from {_ENTRY} import load_and_record; load_and_record({theirs.fileno()})"
            )
            command = [sys.executable, "-c", code]
            self._process = Guarded(command, pass_fds=(theirs.fileno(),), stdin=subprocess.DEVNULL, stdout=_STDERR)
        with suppress(ConnectionError):
            self._connection.send(order)

    def tells(self, timeout_s: float) -> bool:
        """Whether it tells something within some seconds."""
        return self._connection.poll(timeout_s)

    def told(self) -> Told:
        """What it tells. Raises EOFError or ConnectionError where it has ended."""
        told: Told = self._connection.recv()
        return told

    def end(self, stop: Stop) -> str:
        """End its recording by a signal. Returns the id of the run that it wrote; empty for none.

        Args:
            stop: its signals are passed on, one for one: a tool around the recording is killed by the third. Without a signal, the
                recording is asked to end, again and again, and is given up after 16 s.
        """
        began, sent = time.monotonic(), 0
        while stop.count <= _MOST_OF_USER:
            elapsed = time.monotonic() - began
            if not stop.number and elapsed > _MOST_SIGNALS * _AGAIN_S:
                break
            if sent < (stop.count or 1 + elapsed // _AGAIN_S):
                self._process.tell(stop.number or signal.SIGINT)
                sent += 1
            try:
                if self.tells(0.1) and isinstance(told := self.told(), Recorded):
                    return told.run_id
            except (EOFError, ConnectionError):
                break
        return ""

    def exit_code(self) -> str:
        """How it ended."""
        self._process.wait(_AGAIN_S)
        code = self._process.process.poll()
        return "it hangs" if code is None else f"signal {-code}" if code < 0 else f"exit code {code}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()
        self._process.wait(_AGAIN_S)
        self._process.end()


def to_record(change: Change, asked: Sequence[str], baselines: Sequence[str]) -> tuple[str, ...] | None:
    """The variants to record: those that changed, and the baseline, so that their ratio is taken in one run.

    Args:
        asked: names of the variants that the user asked for; empty for all.
        baselines: those of the workloads with a changed variant.

    Returns:
        None for all; an empty tuple where nothing that was asked for changed.
    """
    if change.rest:
        return None
    names = [name for name in change.names if not asked or name in asked]
    beside = [name for name in baselines if not asked or name in asked]
    return tuple(dict.fromkeys([*beside, *names])) if names else ()


def narrowed(request: Request, variants: Sequence[str] | None) -> Request:
    """The request for some of its variants; for all of them with None."""
    return request if variants is None else replace(request, variants=list(variants))
