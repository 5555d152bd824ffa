"""The process that `warpladder record FILE --watch` starts for a save: it loads the files, and records what changed beside the version that
was recorded last, as `--against` does."""

import multiprocessing
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final, NamedTuple

from warpladder import recording
from warpladder.collectors.core.children import Guarded
from warpladder.collectors.core.environment import NO_GPU
from warpladder.collectors.core.plan import PlanError
from warpladder.collectors.core.recorder import MachineFacts
from warpladder.collectors.core.signals import Stop
from warpladder.collectors.watch.files import files_now, files_of
from warpladder.commands import against, ending
from warpladder.dashboard.compare.changes import NotComparable, Options
from warpladder.dashboard.compare.versions import Declared
from warpladder.dashboard.text import compare, summary
from warpladder.dashboard.ui.text import columns
from warpladder.data import store
from warpladder.data.words import first_of
from warpladder.errors import Error
from warpladder.progress import TerminalProgress
from warpladder.recording import UNDER_TOOL, Order, Planned
from warpladder.revisions import Pair
from warpladder.screen import print_id, print_text, say, set_aside
from warpladder.workloads import registry
from warpladder.workloads.api import WorkloadError
from warpladder.workloads.declare.functions.code import PROCESS, Code, code_of
from warpladder.workloads.registry import Version

_MOST_NAMES: Final = 3
#: The version that was recorded last, in the names of variants: `fast@last`.
_LAST: Final = "last"


@dataclass(frozen=True)
class Task:
    """The files to load, and to record as far as they changed.

    Attributes:
        last: their code as it was recorded last; empty to record everything.
        copy: the folder below which they lie as they were then, with their paths.
        ceilings_of: folder of the run whose ceilings hold for this recording too; None to measure them.
    """

    order: Order
    last: Sequence[Code] = ()
    copy: Path = Path()
    ceilings_of: Path | None = None


@dataclass(frozen=True)
class Outcome:
    """What became of a task.

    Attributes:
        files: every file whose save matters -> the hash of what it said when it was loaded; empty before.
        codes: the code of each of the user's files.
        run_id: of the run that was written, perhaps without what a signal cut off; empty for none.
        is_right: whether nothing failed in it that was right before.
        mistake: why nothing was recorded, in one line.
        of_file: whether the user's files are to be mended, and not the command.
    """

    files: Mapping[Path, str] = field(default_factory=dict)
    codes: Sequence[Code] = ()
    run_id: str = ""
    is_right: bool = False
    mistake: str = ""
    of_file: bool = True


class Recording(Guarded):
    """A process that carries out a task. Raises OSError: it cannot be started."""

    def __init__(self, task: Task) -> None:
        self._connection, child_end = multiprocessing.Pipe()
        with child_end:
            # Until it installs handlers, SIGINT ends it without a traceback.
            code = (
                "import signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); "
                f"sys.path[:] = {sys.path!r}; from {__name__} import carry_out; carry_out({child_end.fileno()})"
            )
            super().__init__([sys.executable, "-c", code], pass_fds=(child_end.fileno(),), stdin=subprocess.DEVNULL)
        with suppress(ConnectionError):
            self._connection.send(task)

    def outcome(self) -> Outcome | None:
        """The outcome, if it has changed since the last call."""
        told: Outcome | None = None
        with suppress(EOFError, ConnectionError):
            while self._connection.poll():
                told = self._connection.recv()
        return told

    def end(self) -> None:
        self._connection.close()
        super().end()


def carry_out(connection: int) -> None:
    """Carry out the task that the connection gives, and tell its outcome. `connection`: file descriptor of the pipe to the watch."""
    pipe = Connection(connection)
    task: Task = pipe.recv()
    try:
        pipe.send(_outcome(task, pipe.send))
    except Error as error:
        known = Outcome()
        with suppress(Exception):  # the kernels that files name which cannot be planned
            known = Outcome(files_now(files_of(_paths(task), registry.load_all((), task.order.request.files))))
        pipe.send(replace(known, mistake=str(error), of_file=isinstance(error, WorkloadError)))


def _outcome(task: Task, tell: Callable[[Outcome], None]) -> Outcome:
    with set_aside():
        planned = recording.plan(task.order)
    workloads, files = planned.work.workloads, {job.workload.name: job.workload.file for job in planned.work.jobs}
    outcome = Outcome(files_now(files_of(_paths(task), workloads)))
    tell(outcome)
    own = [code_of([each for each in workloads if files.get(each.name) == path], path) for path in _paths(task)]
    again = _again(task, planned, own) if task.last else _Again(planned)
    if again is None:
        return replace(outcome, is_right=True)
    with Stop() as stop:
        run_id = recording.record(again.planned, stop, TerminalProgress, say, _machine_facts(task.ceilings_of))
        is_right = True
        if files_now(outcome.files) == outcome.files:  # else it may hold times of two texts
            is_right = _report(task.order.data_dir / run_id, again)
            print_id(run_id)
    return replace(outcome, codes=own, run_id=run_id, is_right=is_right)


def _paths(task: Task) -> list[Path]:
    return [file.resolve() for file in task.order.request.files]


class _Again(NamedTuple):
    """A recording, what the last version declares if it is measured beside, and whether more than the changed variants is recorded."""

    planned: Planned
    last: Declared | None = None
    whole: bool = True


def _again(task: Task, planned: Planned, own: Sequence[Code]) -> _Again | None:
    """The recording of what a save changed, after a line about it; None for nothing.

    Args:
        planned: the recording of everything.
        own: the code of each file as it is now.
    """
    changed = {
        key: digest for now, last in zip(own, task.last, strict=True) for key, digest in now.items() if last.get(key) != digest
    }
    if PROCESS in changed:
        return _alone(planned, "what the files set for the whole process changed")
    problems = [workload for workload, variant in changed if not variant]
    variants = list(dict.fromkeys(variant for _, variant in changed if variant))
    names = _to_record(task.order.request.variants, planned, changed.keys())
    what = first_of([*(f"inputs, reference or cases of {each}" for each in problems), *variants], _MOST_NAMES)
    if not names:
        nothing = f"{what} changed, which --variants leaves out" if what else "the same as in the last right recording"
        say(f"{nothing}: nothing to record")
        return None
    request = replace(task.order.request, variants=names)
    more = [f"{request.ranks_option}={','.join(map(str, request.gpus))}"] if list(request.gpus) != [1] else []
    order = replace(task.order, request=request, arguments=["record", *request.arguments(), *more])
    last = None
    try:
        with set_aside():
            if variants and planned.name not in UNDER_TOOL:
                pairs = [
                    Pair(Version(path), Version(task.copy / path.relative_to(path.anchor), name=_LAST), _LAST)
                    for path in _paths(task)
                ]
                versions = against.load(pairs)
                if any(of_last.get(key) == digest for _, of_last in versions.codes for key, digest in changed.items()):
                    raise PlanError(f"both read files whose path is not relative to {pairs[0].own.file.name}")
                both = replace(order, arguments=[*order.arguments, "--watch"])
                planned, last = against.plan(both, versions, partial=True)
            else:
                planned = recording.plan(order)
    except Error as error:
        why = str(error).replace(str(task.copy), "").partition("; ")[0]
        return _alone(planned, f"the last version cannot run beside yours ({why})")
    beside = [] if problems else [each for each in names if each not in variants]
    say(f"{what} changed: recorded again{f' with {first_of(beside, _MOST_NAMES)}' if beside else ''}")
    return _Again(replace(planned, why=""), last, not last or bool(problems))


def _alone(planned: Planned, why: str) -> _Again:
    """The recording of everything, without the last version, after a line that says why."""
    say(f"{why}: everything is recorded again, without the last version")
    return _Again(replace(planned, why=""))  # the collector and the reason for it were printed before


def _to_record(requested: Sequence[str], planned: Planned, changed: Set[tuple[str, str]]) -> list[str]:
    """The variants to record: those that changed, all of a workload whose problem did, and the baseline, so that their ratio is taken in one
    run. Empty for nothing.

    Args:
        requested: names of the variants that the user asked for; empty for all but drafts.
    """
    names: list[str] = []
    for workload in planned.work.workloads:
        asked = [each.name for each in workload.variants if (each.name in requested if requested else not each.draft)]
        found = [each for each in asked if changed & {(workload.name, each), (workload.name, "")}]
        of_host = workload.host_baseline if planned.name == "host_clock" else ""
        baseline = of_host or workload.baseline or workload.host_baseline
        names += [*(each for each in asked if found and each == baseline), *found]
    return list(dict.fromkeys(names))


def _report(path: Path, again: _Again) -> bool:
    """Print the answer of a run, beside the last version where it has that. Returns whether nothing failed that was right there."""
    if again.last:
        with suppress(NotComparable):  # where nothing of the last version is right
            comparison, before, now = against.compared(path, again.last, Options(match="best"), counts=False)
            print_text(summary.terminal(now, columns(), sizes=True, every=False) if again.whole else "")
            print_text(compare.brief(comparison, before, now))
            return not any(each.fails for each in comparison.lost)
    ending.report(path, sizes=again.whole)
    return True


def _machine_facts(path: Path | None) -> MachineFacts | None:
    """The device and its ceilings from an earlier run of the watch; None if there is no run with ceilings."""
    if path is None:
        return None
    try:
        run = store.open_run(path)
        ceilings = run.table("ceilings").to_dict("records")
    except store.StoreError:  # someone removed it
        return None
    at = run.info["started_at"].astimezone()
    line = f"the ceilings are those of the watch's first recording, of {at:%H:%M:%S}"
    return MachineFacts({name: run.info[name] for name in NO_GPU}, ceilings, line) if ceilings else None
