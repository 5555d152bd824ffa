"""Imports the profile of one rank: a run of its own, beside it the tables from which the job is put together."""

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from warpladder.collectors.jobs import figures, kernel_collectives
from warpladder.collectors.kineto import parse as kineto
from warpladder.collectors.nsight_systems.parse import import_opened
from warpladder.collectors.nsight_systems.payloads import Payloads, read_payloads
from warpladder.collectors.nsight_systems.source import open_report
from warpladder.collectors.trace.notes import Notes
from warpladder.collectors.trace.parts import Part, PartOfReport
from warpladder.data import schema, store
from warpladder.data.arrays import integers
from warpladder.data.iterations import Steps, steps_of
from warpladder.data.store import ranks
from warpladder.data.timeline import COPYING, WAITING, DeviceWork, breakdown, calls_ns, device_work, iteration_rows
from warpladder.errors import Error

#: Tables of a rank from which those of the job are put together.
OF_JOB: Final = ("ranks", "rank_devices", "iterations", "rank_kernels", "idle", "collectives")


@dataclass(frozen=True)
class Task:
    """One rank to import.

    Attributes:
        path: its profile.
        place: among the ranks, the number of one whose profile has none.
        folder: of the job; the rank's run becomes `ranks/NUMBER` in it.
        opened: what is read of a report of Nsight Systems: the report, or its export; None for the profile.
        part: the rows of such a report that are the rank's; None for all.
        number: of the part in its report.
        rank: its number, where it does not come from the profile.
        ranks: number of ranks of its job, likewise; 0 where it is not known.
        process: of the rank, in a trace of several; empty for all of the trace.
    """

    path: Path
    place: int
    folder: Path
    opened: Path | None = None
    part: Part | None = None
    number: int = 0
    rank: int | None = None
    ranks: int = 0
    process: str = ""


@dataclass(frozen=True)
class Done:
    """The end of a task.

    Attributes:
        path: the profile.
        rank: its rank; None where the import failed.
        why: the reason of a failure; empty without.
        ranks: number of ranks of its job, as the profile has it; 0 where it lacks it.
        started: start of the profile, seconds since 1970.
        number: of the part in its report.
        processes: of a trace of several, of which nothing was imported.
        gpus: that the process sees, 0 where the profile lacks them.
    """

    path: Path
    rank: int | None
    why: str = ""
    ranks: int = 0
    started: float = 0.0
    number: int = 0
    processes: tuple[str, ...] = ()
    gpus: int = 0


def import_rank(task: Task) -> Done:
    """Import one profile. Runs in a worker, which sees the same paths."""
    scratch = task.folder / f"scratch-{task.place:05d}"
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    try:
        found, payloads = _import(task, scratch)
        run = ranks.written(scratch / found.run_id)
        rank = task.place if found.rank is None else found.rank
        _write_sums(run, rank, task.path, found.events, payloads)
        target = ranks.folder_of(task.folder, rank)
        target.parent.mkdir(exist_ok=True)
        if not target.exists():  # as after a call that was killed between this line and its note of the rank
            run.path.rename(target)
        return Done(task.path, rank, "", found.ranks, run.info["started_at"].timestamp(), task.number, gpus=found.gpus)
    except kineto.SeveralProcesses as error:
        return Done(task.path, None, str(error), processes=error.names)
    except Error as error:
        return Done(task.path, None, str(error), number=task.number)
    except (MemoryError, OSError) as error:
        return Done(task.path, None, f"{task.path.name}: {type(error).__name__}: {error}", number=task.number)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _import(task: Task, scratch: Path) -> tuple[kineto.Imported, Payloads | None]:
    """Import the profile into a folder. Returns what a report of Nsight Systems has of NCCL, too."""
    notes = Notes()
    if kineto.is_trace(task.path):
        one = kineto.OneOf(task.number, task.place) if task.process else None
        return kineto.import_trace(task.path, scratch, "", None, [], notes, one=one), None
    with open_report(task.opened or task.path, task.path.name) as report:
        part = PartOfReport(report, task.part) if task.part else report
        payloads = read_payloads(part, notes)
        run_id = import_opened(part, task.path, scratch, "", None, [], notes)
    rank = kineto.rank_in(task.path.name) if task.rank is None else task.rank
    return kineto.Imported(run_id, rank, task.ranks, 0), payloads


def _write_sums(run: store.Run, rank: int, path: Path, events: int, payloads: Payloads | None) -> None:
    """Write the tables of the rank that its job is put together from into the folder of its run."""
    work, steps = device_work(run), steps_of(run)
    row = {
        "rank": rank,
        "status": "ok",
        "detail": "",
        "host": "",
        "device_name": run.info["device_name"],
        "file": path.name,
        "bytes": path.stat().st_size if path.is_file() else 0,
        "events": events or len(work) + run.rows("api_calls"),
        **breakdown(work),
        **figures.rank_columns(work),
        "copy_calls_ns": calls_ns(run, COPYING),
        "waiting_calls_ns": calls_ns(run, COPYING, WAITING),
        "collectives": 0,
        **dict.fromkeys(("wait_ns", "last", "offset_ns", "offset_at_ns", "drift_ppm", "uncertainty_ns", "wait_uncertainty_ns")),
        **dict.fromkeys(("lateness_ns", "lateness_exposed_ns", "lateness_limit_ns")),
        "late": False,
        "cause": "",
    }
    tables: dict[str, Any] = {
        "ranks": [row],
        "rank_devices": [{"rank": rank, **each} for each in figures.device_rows(work)],
        **by_iteration(work, steps, rank),
        "idle": [{"rank": rank, **each} for each in figures.idle_rows(work)],
    }
    if run.rows("collectives"):
        collectives = run.arrow("collectives", schema.TABLES["collectives"].arrow.names)
        place = collectives.schema.get_field_index("rank")
        tables["collectives"] = collectives.set_column(place, "rank", pa.array(np.full(len(collectives), rank, np.int32)))
    else:
        tables["collectives"] = kernel_collectives.rows(run, steps, rank, payloads)
    tables["collectives"] = _with_next(tables["collectives"], work, steps)
    ranks.add_tables(run.path, tables)


def _with_next(collectives: pa.Table, work: DeviceWork, steps: Steps) -> pa.Table:
    """The collectives with what the rank does up to the next one."""
    if not len(work) or not len(collectives):
        return collectives
    iteration, start, end = (integers(collectives[name], -1) for name in ("iteration", "start_ns", "end_ns"))
    for name, values in figures.next_columns(work, steps, iteration, start, end).items():
        collectives = collectives.set_column(collectives.schema.get_field_index(name), name, values)
    return collectives


def by_iteration(work: DeviceWork, steps: Steps, rank: int) -> dict[str, Any]:
    """The rows of the tables `iterations` and `rank_kernels` of a rank, without matched collectives."""
    unmatched = {"collectives": 0, "wait_ns": None, "last": None}
    kernels = figures.kernel_rows(work, steps)
    return {
        "iterations": [{"rank": rank, **each, **unmatched} for each in iteration_rows(work, steps)],
        "rank_kernels": kernels.add_column(0, "rank", pa.array(np.full(len(kernels), rank, np.int32))),
    }
