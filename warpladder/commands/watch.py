"""`warpladder record FILE --watch`: records once, then again what changed whenever the file is saved.

A save is loaded and recorded in a new process, so that it has no definition of an earlier save. This process only
waits for saves, and prints.
"""

import multiprocessing
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final, Self

import click

from warpladder.collectors.core.children import Guarded
from warpladder.collectors.core.plan import PlanError
from warpladder.collectors.core.signals import Stop
from warpladder.collectors.watch import snapshot
from warpladder.collectors.watch.saves import LOOK_S, Saves
from warpladder.collectors.watch.snapshot import listed, python_files
from warpladder.commands import ending, watched
from warpladder.commands.watched import Loaded, Message, Mistake, Recorded, Task
from warpladder.dashboard.compare.between_runs import Recordings
from warpladder.dashboard.text.verdict import JudgedVariant, verdicts
from warpladder.data import store
from warpladder.recording import Order
from warpladder.screen import print_id, say

#: A collector that takes no times.
_COUNTS: Final = "nsight_compute"
#: Recordings in a row that a change of a file ended, after which the files themselves are taken to write it.
_MOST_AGAIN: Final = 3
#: Seconds between two signals to a recording of an earlier text, and the signals after which its process is killed.
_AGAIN_S: Final = 2.0
_MOST_SIGNALS: Final = 8
#: The signals of the user that a recording gets; one more kills its process.
_MOST_OF_USER: Final = 3
_STDERR: Final = 2


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
    order = replace(order, request=replace(request, processes=request.processes or 1))
    with Stop() as stop:
        while_recording = _Watch(order, stop).run()
    if while_recording or stop.number != signal.SIGINT:
        raise click.exceptions.Exit(stop.exit_code)


class Process:
    """A process that loads the user's files, and records them.

    Args:
        task: what to record.

    Raises:
        OSError: it cannot be started.
    """

    def __init__(self, task: Task) -> None:
        self._connection, child_end = multiprocessing.Pipe()
        with child_end:
            # Until it installs handlers, SIGINT ends it without a traceback.
            code = (
                "import signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); "
                f"sys.path[:] = {sys.path!r}; from {watched.__name__} import load_and_record; load_and_record({child_end.fileno()})"
            )
            command = [sys.executable, "-c", code]
            self._process = Guarded(command, pass_fds=(child_end.fileno(),), stdin=subprocess.DEVNULL, stdout=_STDERR)
        with suppress(ConnectionError):
            self._connection.send(task)

    def has_message(self, timeout_s: float) -> bool:
        """Whether it sends a message within some seconds."""
        return self._connection.poll(timeout_s)

    def receive(self) -> Message:
        """Its next message. Raises EOFError or ConnectionError where it has ended."""
        message: Message = self._connection.recv()
        return message

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
                if self.has_message(0.1) and isinstance(message := self.receive(), Recorded):
                    return message.run_id
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


class _Interrupted(Exception):
    """A signal, or a save, ended the recording."""


class _Watch:
    """The state between two saves.

    Args:
        order: what to record at first.
        stop: counts signals.
    """

    def __init__(self, order: Order, stop: Stop) -> None:
        self._data_dir, self._task, self._stop = order.data_dir, Task(order), stop
        self._files = [file.resolve() for file in order.request.files]
        self._saves = Saves()
        self._known: dict[Path, str] = {}  # the hash of each file when it was loaded last
        self._runs: dict[tuple[str, str], Path] = {}  # workload and variant -> the last run with times of it

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
            more = f" and {others} file{'s' if others > 1 else ''} that it uses" if others > 0 else ""
            say(f"watching {_names(self._files)}{more}; Ctrl-C ends")
            while not self._wait():
                if self._stop.number:
                    return False

    def _say_what_writes(self) -> None:
        """Say which files changed in each of several recordings, and take what they hold now as known."""
        self._saves.settle(self._files, self._ended)  # a process of the last recording may still write
        now = snapshot.files_now(list(self._known))
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
        return snapshot.files_now(list(self._known)) != self._known

    def _known_as(self, files: dict[Path, str]) -> None:
        """Note what the files said when they were loaded, and watch them too."""
        self._known |= files
        self._saves.watch(self._known.keys())

    def _record(self) -> bool:
        """Load the files in a new process, and record what changed. Returns whether they were saved meanwhile, and have to be
        loaded again."""
        self._known_as(snapshot.files_now([*self._known, *python_files(self._files)]))
        with Process(self._task) as process:
            try:
                return self._follow(process)
            except _Interrupted:
                return self._end(process)
            except (EOFError, ConnectionError):
                say(f"{_names(self._files)}: its process ended ({process.exit_code()}) before it was recorded; mend it")
                return False

    def _follow(self, process: Process) -> bool:
        loaded: Loaded | None = None
        while True:
            while not process.has_message(LOOK_S):
                if self._stop.number or self._saved():
                    raise _Interrupted
            match process.receive():
                case Loaded() as loaded:
                    self._known_as({**loaded.snapshot.files, **self._known})
                    self._say_what_changed(loaded)
                    if loaded.recorded == ():
                        return False
                case Recorded(run_id):
                    assert loaded
                    return self._take_run(loaded, self._data_dir / run_id)
                case Mistake(text, of_file, files):
                    if not of_file and not self._runs:
                        raise PlanError(text)
                    self._known_as(snapshot.files_now([file for file in files if file not in self._known]))
                    say(text)
                    return self._differ()

    def _saved(self) -> bool:
        """Whether a save changed what is measured."""
        if self._saves.seen():
            self._saves.settle(self._files, self._ended)
            return self._differ()
        return False

    def _say_what_changed(self, loaded: Loaded) -> None:
        change = loaded.change
        if change is None:
            return
        if change.rest:
            say(f"{listed(change.rest)} changed: everything is recorded again")
        elif loaded.recorded:
            variants = change.names
            beside = [name for name in loaded.recorded or () if name not in variants]
            say(f"{listed(variants)} changed: recorded again{f', with {listed(beside)} beside' if beside else ''}")
        elif change.variants:
            say(f"{listed(change.names)} changed, which --variants leaves out: nothing to record")
        else:
            say("the same as in the last recording: nothing to record")

    def _take_run(self, loaded: Loaded, path: Path) -> bool:
        """Print what a run says. Returns whether the files were saved meanwhile: it may then hold times of both texts."""
        if self._differ():
            self._drop(path)
            return True
        earlier = dict(self._runs)
        results = store.open_run(path).table("results")
        timed = results[results["status"] == "ok"][["workload", "variant"]].drop_duplicates()
        self._runs |= dict.fromkeys(timed.itertuples(index=False, name=None), path)
        if loaded.change is None:
            ending.report(path, sizes=True)
        else:
            variants = loaded.change.variants if loaded.recorded is not None else list(loaded.snapshot.variants)
            variants_shown = [JudgedVariant(*key, str(earlier[key].resolve()) if key in earlier else "") for key in variants]
            ending.print_of(path, lambda data: verdicts(data, variants_shown, Recordings([path.parent], data.info)))
        print_id(path.name)
        self._task = replace(self._task, last=loaded.snapshot, ceilings_of=self._task.ceilings_of or path)
        return False

    def _drop(self, path: Path) -> None:
        shutil.rmtree(path, ignore_errors=True)
        say(
            f"{_names(self._files)}: saved while it was recorded; that recording is dropped, since it may hold times of both texts"
        )

    def _end(self, process: Process) -> bool:
        """End a recording. After a signal its run is kept. After a save it is dropped; returns whether to load the files again."""
        run_id = process.end(self._stop)
        path = self._data_dir / run_id
        if run_id and (not self._stop.number or self._differ()):
            self._drop(path)
        elif run_id:
            with suppress(store.StoreError):
                ending.report(path)
            print_id(run_id)
        return not self._stop.number


def _names(files: Sequence[Path]) -> str:
    return listed([file.name for file in files])
