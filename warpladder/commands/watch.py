"""`warpladder record FILE --watch`: records once, then again what changed whenever the file is saved, beside the version recorded last.

A save is loaded and recorded in a new process, so that it has no definition of an earlier save. This process only
waits for saves.
"""

import math
import shutil
import signal
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import click

from warpladder.collectors.core.plan import PlanError
from warpladder.collectors.core.signals import Stop
from warpladder.collectors.watch.files import copy_files, files_now, python_files
from warpladder.collectors.watch.saves import LOOK_S, Saves
from warpladder.commands.watched import Outcome, Recording, Task
from warpladder.data.words import counted, first_of
from warpladder.recording import Order
from warpladder.screen import say

#: A collector that takes no times.
_COUNTS: Final = "nsight_compute"
#: Recordings in a row that a change of a file ended, after which the files themselves are taken to write it.
_MOST_AGAIN: Final = 3
#: Seconds between two signals to a recording of an earlier text, and the signals after which its process is killed.
_AGAIN_S: Final = 2.0
_MOST_SIGNALS: Final = 8
#: The signals of the user that a recording gets; one more kills its process.
_MOST_OF_USER: Final = 3
_MOST_NAMES: Final = 3


def watch(order: Order) -> None:
    """Record the user's files, and again what changed whenever one of them is saved, until a signal comes.

    Args:
        order: names files, and no workload of the project. One process takes the rounds, unless it asks for more.

    Raises:
        PlanError: the order cannot be watched, or its first recording cannot be made for a reason outside of the files.
        click.exceptions.Exit: a signal ended a recording, or a signal other than Ctrl-C the watch.
    """
    request = order.request
    if not request.files or request.names:
        raise PlanError("--watch: watches files of your own; name FILE.py, and no workload of the project")
    if order.collector == _COUNTS:
        raise PlanError(f"--watch: {_COUNTS} takes no times to compare; choose another --collector")
    for file in request.files:
        if not file.is_file() or file.suffix != ".py":
            raise PlanError(f"{file}: no such Python file; give the path of one that declares a workload")
    # A run with `--watch` in its command has two versions; the first one has not.
    typed = [word for word in order.arguments if word != "--watch"]
    order = replace(order, request=replace(request, processes=request.processes or 1), arguments=typed)
    with Stop() as stop, TemporaryDirectory(prefix="warpladder-") as folder:
        while_recording = _Watch(order, stop, Path(folder, "last").resolve()).run()
    if while_recording or stop.number != signal.SIGINT:
        raise click.exceptions.Exit(stop.exit_code)


class _Watch:
    """The state between two saves.

    Args:
        order: what to record at first.
        stop: counts signals.
        copy: a folder for a copy of the version that was recorded last.
    """

    def __init__(self, order: Order, stop: Stop, copy: Path) -> None:
        self._data_dir, self._task, self._stop, self._copy = order.data_dir, Task(order), stop, copy
        self._files = [file.resolve() for file in order.request.files]
        self._saves = Saves()
        self._outcome = Outcome()  # of the newest recording
        self._known: dict[Path, str] = {}  # the hash of each file when it was loaded last

    def run(self) -> bool:
        """Record and wait in turn, until a signal comes. Returns whether it came during a recording."""
        while True:
            again = 0
            while self._record() and not self._stop.number:
                again += 1
                if again == _MOST_AGAIN:
                    self._say_what_writes()
                    break
            if self._stop.number:
                return True
            others = sum(file.is_file() for file in self._saves.files) - len(self._files)
            more = f" and {counted(others, 'file')} that it uses" if others > 0 else ""
            say(f"watching {_names(self._files)}{more}; Ctrl-C ends")
            while not self._wait():
                if self._stop.number:
                    return False

    def _say_what_writes(self) -> None:
        """Say which files changed in each of several recordings, and take what they hold now as known."""
        self._saves.settle(self._files, self._ended)  # a process of the last recording may still write
        now = files_now(self._known)
        writes = [file for file, text in now.items() if text != self._known[file]]
        say(
            f"{_names(writes or self._files)}: changed during each of {_MOST_AGAIN} recordings in a row; if loading the files writes it, "
            "write it elsewhere. The next save records again"
        )
        self._known = now
        self._saves = Saves(now)

    def _wait(self) -> bool:
        """Wait for a save or a signal. Returns whether the files say something else than when they were loaded last."""
        while not self._saves.seen():
            if self._stop.number:
                return False
            time.sleep(LOOK_S)
        saved = self._saves.settle(self._files, self._ended)
        if self._differ():
            return True
        if saved:
            say(f"{_names(saved)} saved: nothing measurable changed")
        return False

    def _ended(self) -> bool:
        return bool(self._stop.number)

    def _differ(self) -> bool:
        return files_now(self._known) != self._known

    def _know(self, files: Mapping[Path, str]) -> None:
        """Note what files said when they were loaded, and watch them too; what was noted before stays."""
        self._known = {**files, **self._known}
        self._saves.watch(self._known.keys())

    def _record(self) -> bool:
        """Load the files in a new process, and record what changed. Returns whether they were saved meanwhile, and have to be loaded again."""
        self._known = files_now({*self._known, *python_files(self._files)})
        self._know({})
        self._outcome = Outcome()
        with Recording(self._task) as recording:
            if not recording.wait(math.inf, lambda: self._interrupted(recording)):
                self._end(recording)
            self._hear(recording)
        self._take(self._outcome, recording.returncode or 0)
        return self._differ()

    def _hear(self, recording: Recording) -> None:
        if told := recording.outcome():
            self._outcome = told
            self._know(told.files)

    def _interrupted(self, recording: Recording) -> bool:
        """Whether a signal came, or a save that changed what is measured."""
        self._hear(recording)
        if self._stop.number or not self._saves.seen():
            return bool(self._stop.number)
        self._saves.settle(self._files, self._ended)
        return self._differ()

    def _end(self, recording: Recording) -> None:
        """End a recording by signals. Those of the user are passed on, one for one: a tool around the recording is killed by the third. After
        a save it is asked to end, again and again, and is given up after 16 s."""
        began, sent = time.monotonic(), 0
        while self._stop.count <= _MOST_OF_USER:
            elapsed = time.monotonic() - began
            if not self._stop.number and elapsed > _MOST_SIGNALS * _AGAIN_S:
                break
            if sent < (self._stop.count or 1 + elapsed // _AGAIN_S):
                recording.tell(self._stop.number or signal.SIGINT)
                sent += 1
            if recording.wait(LOOK_S):
                break

    def _take(self, outcome: Outcome, code: int) -> None:
        """Take what a recording came to. `code`: the exit code of its process, negative for a signal."""
        path = self._data_dir / outcome.run_id
        differ = self._differ()
        if outcome.mistake:
            if not outcome.of_file and not self._task.last:
                raise PlanError(outcome.mistake)
            say(outcome.mistake)
        elif outcome.run_id and differ:
            shutil.rmtree(path, ignore_errors=True)
            names = _names(self._files)
            say(f"{names}: saved while it was recorded; that recording is dropped, since it may hold times of both texts")
        elif outcome.run_id:
            self._task = replace(self._task, ceilings_of=self._task.ceilings_of or path)
            if outcome.is_right:
                shutil.rmtree(self._copy, ignore_errors=True)
                with suppress(OSError):  # a part of it cannot be loaded, of which the next recording tells
                    copy_files(outcome.files, self._copy)
                self._task = replace(self._task, last=outcome.codes, copy=self._copy)
        elif not (outcome.is_right or differ or self._stop.number):
            ended = f"signal {-code}" if code < 0 else f"exit code {code}"
            say(f"{_names(self._files)}: its process ended ({ended}) before it was recorded; mend it")


def _names(files: Sequence[Path]) -> str:
    return first_of([file.name for file in files], _MOST_NAMES)
