"""The process that `warpladder record FILE --watch` starts for a save: it loads the files, and records what changed."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path

from warpladder import recording
from warpladder.collectors.core.environment import NO_GPU
from warpladder.collectors.core.plan import Request
from warpladder.collectors.core.recorder import MachineFacts
from warpladder.collectors.core.signals import Stop
from warpladder.collectors.watch import snapshot
from warpladder.collectors.watch.snapshot import Change, Snapshot, kernel_files
from warpladder.data import store
from warpladder.errors import Error
from warpladder.progress import TerminalProgress
from warpladder.recording import Order
from warpladder.screen import say
from warpladder.workloads import registry
from warpladder.workloads.api import WorkloadError


@dataclass(frozen=True)
class Task:
    """The files to load, and to record as far as they changed.

    Attributes:
        last: the files as they were recorded last; None to record everything.
        ceilings_of: folder of the run whose ceilings hold for this recording too; None to measure them.
    """

    order: Order
    last: Snapshot | None = None
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


#: What the process sends.
Message = Loaded | Recorded | Mistake


def load_and_record(connection: int) -> None:
    """Carry out the order that the connection gives. `connection`: file descriptor of the pipe to the watch."""
    pipe = Connection(connection)
    task: Task = pipe.recv()
    try:
        _carry_out(task, pipe)
    except Error as error:
        pipe.send(Mistake(str(error), isinstance(error, WorkloadError), _kernel_files(task.order.request)))


def _carry_out(task: Task, pipe: Connection) -> None:
    order = task.order
    request = order.request
    planned = recording.plan(order)
    try:
        now = snapshot.take([file.resolve() for file in request.files], planned.work.workloads)
    except OSError as error:
        raise WorkloadError(f"{request.files[0]}: was saved while it was loaded ({error}); save it again") from error
    change = snapshot.changed(task.last, now) if task.last else None
    variants = to_record(change, request.variants, _baselines(now, change, planned.name)) if change else None
    pipe.send(Loaded(now, change, variants))
    if variants == ():
        return
    request = request if variants is None else replace(request, variants=list(variants))
    more = [f"{request.ranks_option}={','.join(map(str, request.gpus))}"] if list(request.gpus) != [1] else []
    order = replace(order, request=request, arguments=["record", *request.arguments(), *more])
    # The collector and the reason for it were printed before.
    planned = replace(planned, order=order) if change is None else replace(recording.plan(order), why="")
    with Stop() as stop:
        run_id = recording.record(planned, stop, TerminalProgress, say, _machine_facts(task.ceilings_of))
        pipe.send(Recorded(run_id))


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


def _baselines(now: Snapshot, change: Change, collector: str) -> list[str]:
    """The baselines of the workloads with a changed variant, on the host or on the GPU."""
    workloads = dict.fromkeys(workload for workload, _ in change.variants)
    pairs = [now.baselines[workload] for workload in workloads]
    return [(of_host if collector == "host_clock" else of_gpu) or of_gpu or of_host for of_gpu, of_host in pairs]


def _kernel_files(request: Request) -> tuple[Path, ...]:
    """The kernel sources that the files name, if they can be loaded."""
    with suppress(Exception):
        return tuple(kernel_files(registry.load_all((), list(request.files))))
    return ()


def to_record(change: Change, requested: Sequence[str], baselines: Sequence[str]) -> tuple[str, ...] | None:
    """The variants to record: those that changed, and the baseline, so that their ratio is taken in one run.

    Args:
        requested: names of the variants that the user asked for; empty for all.
        baselines: the baselines of the workloads with a changed variant.

    Returns:
        None for all; an empty tuple where nothing that was asked for changed.
    """
    if change.rest:
        return None
    names = [name for name in change.names if not requested or name in requested]
    beside = [name for name in baselines if not requested or name in requested]
    return tuple(dict.fromkeys([*beside, *names])) if names else ()
