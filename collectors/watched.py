"""The process that `warpladder record FILE --watch` starts for a save: it loads the files anew, and records what changed."""

import sys
from contextlib import suppress
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path

from warpladder.collectors import commands
from warpladder.collectors.core import runs
from warpladder.collectors.core.environment import NO_GPU
from warpladder.collectors.core.record import Known
from warpladder.collectors.core.signals import Stop
from warpladder.collectors.watch import snapshot
from warpladder.collectors.watch.files import kernel_files
from warpladder.collectors.watch.snapshot import Change, Snapshot
from warpladder.collectors.watch.step import Loaded, Mistake, Order, Recorded, narrowed, to_record
from warpladder.data import store
from warpladder.errors import Error
from warpladder.workloads import registry
from warpladder.workloads.api import WorkloadError


def load_and_record(connection: int) -> None:
    """Carry out the order that the connection gives.

    Args:
        connection: file descriptor of the pipe to the watch.
    """
    pipe = Connection(connection)
    order: Order = pipe.recv()
    try:
        _carry_out(order, pipe)
    except Error as error:
        pipe.send(Mistake(str(error), isinstance(error, WorkloadError), _kernel_files(order)))


def _carry_out(order: Order, pipe: Connection) -> None:
    runs.check_label(order.label)
    request = order.request
    planned = commands.choose(request, order.collector, order.launcher)
    try:
        now = snapshot.take([file.resolve() for file in request.files], planned.work.workloads)
    except OSError as error:
        raise WorkloadError(f"{request.files[0]}: was saved while it was loaded ({error}); save it again") from error
    change = snapshot.changed(order.last, now) if order.last else None
    variants = to_record(change, request.variants, _baselines(now, change, planned.name)) if change else None
    pipe.send(Loaded(now, change, variants))
    if variants == ():
        return
    if change is not None:  # the collector and the reason for it were told before
        planned = replace(commands.choose(narrowed(request, variants), order.collector, order.launcher), why="")
    more = ["--gpus", ",".join(map(str, request.gpus))] if list(request.gpus) != [1] else []
    sys.argv[1:] = ["record", *planned.request.arguments(), *more]  # the run's command
    with Stop() as stop:
        known = _known(order.ceilings_of)
        pipe.send(Recorded(commands.measure(planned, order.launcher, order.data_dir, order.label, stop, known)))


def _known(path: Path | None) -> Known | None:
    """The device and its ceilings as an earlier run of the watch has them; None where there is none that has."""
    if path is None:
        return None
    try:
        run = store.open_run(path)
        ceilings = run.table("ceilings").to_dict("records")
    except store.StoreError:  # someone removed it
        return None
    at = run.info["started_at"].astimezone()
    told = f"the ceilings are those of the watch's first recording, of {at:%H:%M:%S}"
    return Known({name: run.info[name] for name in NO_GPU}, ceilings, told) if ceilings else None


def _baselines(now: Snapshot, change: Change, collector: str) -> list[str]:
    """The baselines of the workloads with a changed variant, on the host or on the GPU."""
    workloads = dict.fromkeys(workload for workload, _ in change.variants)
    pairs = [now.baselines[workload] for workload in workloads]
    return [(of_host if collector == "host_clock" else of_gpu) or of_gpu or of_host for of_gpu, of_host in pairs]


def _kernel_files(order: Order) -> tuple[Path, ...]:
    """The kernel sources that the files name, if they can be loaded."""
    with suppress(Exception):
        return tuple(kernel_files(registry.load_all((), list(order.request.files))))
    return ()
