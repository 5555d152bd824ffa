"""Makes the events of a recording; `warpladder.collectors.core.recording` applies them."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any, Final

from warpladder.collectors.core.declared import case_row, variant_row
from warpladder.collectors.core.environment import host_facts
from warpladder.collectors.core.jobs import Job
from warpladder.collectors.core.plan import Plan
from warpladder.collectors.core.recording import FORMAT, Event
from warpladder.collectors.core.trust import RowDicts
from warpladder.collectors.core.verdicts import Cell
from warpladder.data import schema
from warpladder.data.diagnostics import diagnostic_row
from warpladder.data.store import conform

#: Version of the method; raised when the same plan would give other numbers. Version 2 subtracts the overhead of the CUDA
#: events from device times. In version 3 an execution of the variant precedes each batch of hot ones. Version 4 takes that overhead
#: from kernels of known length, and no longer from empty ones alone.
_VERSION: Final = "4"


def begin(plan: Plan, collector: str, label: str, started: datetime, arguments: Sequence[str] | str) -> Event:
    """The first event. It holds everything that is known before measuring starts.

    Raises:
        StoreError: a workload declares a value that no run can hold.
    """
    cells = [_with_gpus(cell, job.gpus) for job in plan.jobs for cell in job.cells]
    taken = {tuple(cell[:2]) for cell in cells}
    cases = [
        case_row(workload, workload.case(case))
        for workload in plan.workloads
        for case in dict.fromkeys(job.case for job in plan.jobs if job.workload.name == workload.name)
    ]
    variants = [
        variant_row(workload, variant)
        for workload in plan.workloads
        for variant in workload.variants
        if (workload.name, variant.name) in taken
    ]
    return begin_with(cells, cases, variants, collector, label, started, arguments, most_gpus=plan.most_gpus)


def begin_with(
    cells: Sequence[Sequence[Any]],
    cases: RowDicts,
    variants: RowDicts,
    collector: str,
    label: str,
    started: datetime,
    arguments: Sequence[str],
    *,
    most_gpus: int = 1,
) -> Event:
    """The event `begin` from the rows that the run will have.

    Args:
        cells: workload, variant, config, case and number of ranks of each cell.
        cases, variants: rows of the tables of that name.
        collector: name of the collector.
        label: the user's name for the run.
        started: start of the recording, UTC.
        arguments: command line, kept with the run.
        most_gpus: the largest number of ranks that share a case.

    Raises:
        StoreError: a row does not fit the schema.
    """
    found: Event = {
        "kind": "begin",
        "format": FORMAT,
        "run": {
            "schema_version": schema.SCHEMA_VERSION,
            "label": label,
            "kind": "recording",
            "collector": collector,
            "collector_version": _VERSION,
            "source": "",
            **host_facts(arguments),
        },
        "started_at": started.isoformat(),
        "most_gpus": most_gpus,
        "cells": list(cells),
        "cases": list(cases),
        "variants": list(variants),
    }
    for table in ("cases", "variants"):
        conform(table, found[table])
    return found


def rows_event(tables: Mapping[str, RowDicts], gpus: int = 1, process: int = 0, *, traced: bool = False) -> Event:
    """The event of rows that were measured.

    Args:
        tables: rows by table, without `samples`: of `results`, `diagnostics` and `ceilings`; of `run`, `variants` and `cases` the
            columns that were not known before, with the key. See `warpladder.collectors.core.reporter`.
        gpus: number of ranks that measured them.
        process: which of the run's processes measured them.
        traced: whether a trace was captured too; the events do not hold it.
    """
    return {"kind": "rows", "gpus": gpus, "process": process, "traced": traced, "tables": dict(tables)}


def diagnostic_event(severity: str, source: str, text: str) -> Event:
    """The event of a finding about the run."""
    return rows_event({"diagnostics": [diagnostic_row(severity, source, text)]})


def unreached_event(jobs: Sequence[Job]) -> Event:
    """The event of jobs that the time budget did not reach. They are not part of the run."""
    return {"kind": "unreached", "cells": [_with_gpus(cell, job.gpus) for job in jobs for cell in job.cells]}


def withdrawn_event(cells: Sequence[Cell]) -> Event:
    """The event of cells that failed after some of their samples were noted. The run keeps no sample of them."""
    return {"kind": "withdrawn", "cells": [list(asdict(cell).values()) for cell in cells]}


def _with_gpus(cell: Cell, gpus: int) -> list[Any]:
    return [*asdict(cell).values(), gpus]
