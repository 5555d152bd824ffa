"""The state of a recording, built from its events, and the run that it becomes.

The events are JSON, so that they can be saved on disk while the recording runs; see `warpladder.collectors.core.journal`. The
same code writes the run of a recording that ends normally and of one that another process salvages.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from functools import reduce
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from warpladder.collectors.core.cells import Cell, Results, RowDicts, result_row
from warpladder.collectors.core.collector import AddCaptured
from warpladder.collectors.core.environment import NO_GPU, host_facts
from warpladder.collectors.core.plan import Job, Plan, case_row, variant_row
from warpladder.data import schema
from warpladder.data.names import Source, diagnostic_row
from warpladder.data.store import RunWriter, conform

#: Version of the events; raised when their format changes.
FORMAT: Final = 6

#: Columns of `variants` that are known once a kernel is compiled. The largest of its kernels counts.
_RESOURCES: Final = ("registers", "shared_bytes", "spill_bytes")

#: Tables whose rows are written as they come.
_AS_THEY_COME: Final = ("ceilings", "energy", "cell_launches", "machine_code")
#: Columns of `phases` that are its key.
_SPENT_KEY: Final = schema.PHASES.key

Event = dict[str, Any]


def to_line(event: Event) -> str:
    """The event as JSON, on one line."""
    return json.dumps(event, default=_plain)


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} in an event")


class Recording:
    """State of a recording.

    Attributes:
        results: statuses of the cells so far, with errors and details.
        captured: batches captured in the children, one for each case and process. They are in memory only.

    Args:
        add_captured: writes the captured batches to the run; None if the collector captures nothing.
    """

    def __init__(self, add_captured: AddCaptured | None = None) -> None:
        self._add_captured = add_captured
        self._begun: Event = {}
        self._facts: dict[str, Any] = dict(NO_GPU)
        self._tables: dict[str, list[dict[str, Any]]] = {name: [] for name in (*_AS_THEY_COME, "diagnostics")}
        self._resources: dict[tuple[str, str], dict[str, int]] = {}
        self._cases: dict[tuple[str, str], dict[str, Any]] = {}
        self._samples: list[pa.Table] = []
        self._traced = False
        self._spent_ns: Counter[tuple[Any, ...]] = Counter()
        self._unreached: set[tuple[Any, ...]] = set()
        self._withdrawn: list[Cell] = []
        self.results = Results(set())
        self._finished: set[tuple[str, str]] = set()
        self.captured: list[Any] = []

    def apply(self, line: str | Event, samples: pa.Table | None = None) -> None:
        """Apply an event, given as an object or as its JSON, and its rows of `samples`."""
        event = json.loads(line) if isinstance(line, str) else line
        match event["kind"]:
            case "begin":
                self._begun = event
                self.results = Results({(v["workload"], v["variant"]) for v in event["variants"] if v["kind"] == "host"})
            case "rows":
                self._take(event)
                self._samples += [samples] if samples is not None else []
            case "unreached":
                self._unreached |= {tuple(cell) for cell in event["cells"]}
            case "withdrawn":
                self._withdrawn += [Cell(*names) for names in event["cells"]]

    def _take(self, event: Event) -> None:
        for table, rows in event["tables"].items():
            for row in rows:
                match table:
                    case "run":
                        self._facts |= row
                    case "results":
                        self.results.add(row, event["gpus"], process=event["process"])
                        if row["status"] != "skipped":
                            self._finished.add((row["workload"], row["case"]))
                    case "variants":
                        resources = self._resources.setdefault((row["workload"], row["variant"]), {})
                        resources |= {name: max(row[name], resources.get(name, 0)) for name in _RESOURCES}
                    case "phases":
                        self._spent_ns[tuple(row[name] for name in _SPENT_KEY)] += row["duration_ns"]
                    case "cases":
                        self._cases[row["workload"], row["case"]] = row
                    case _:
                        self._tables[table].append(row)
        self._traced |= event["traced"]

    @property
    def finished(self) -> int:
        """Number of cases that at least one process has measured."""
        return len(self._finished)

    @property
    def started(self) -> datetime:
        return datetime.fromisoformat(self._begun["started_at"]).astimezone(UTC)

    @property
    def label(self) -> str:
        return str(self._begun["run"]["label"])

    def write(self, writer: RunWriter, unreached: str) -> None:
        """Write every table of the run. Raises StoreError: the folder cannot be written.

        Args:
            writer: writer of the run; called again with another writer if the first one fails.
            unreached: reason to store for cells without a status.
        """
        reached = [cell for cell in self._begun["cells"] if tuple(cell) not in self._unreached]
        for *names, gpus in reached:
            if not self.results.has(cell := Cell(*names), gpus):
                self.results.add(result_row(cell, "skipped", unreached), gpus)
        cases = [
            {**row, **self._cases.get((row["workload"], row["case"]), {})}
            for row in self._begun["cases"]
            if any(cell[0] == row["workload"] and cell[3] == row["case"] for cell in reached)
        ]
        measured = {tuple(cell[:2]) for cell in reached}
        variants = [
            row | self._resources.get(key, {})
            for row in self._begun["variants"]
            if (key := (row["workload"], row["variant"])) in measured
        ]
        samples = pa.concat_tables(self._samples or [schema.SAMPLES.arrow.empty_table()])
        wrong = [Cell.of(row) for row in self.results.rows if row["status"] == "wrong_result"]
        samples = _without(samples, [*wrong, *self._withdrawn])
        diagnostics = list(self._tables["diagnostics"])
        if self.captured and self._add_captured:
            samples, trace_diagnostics = self._add_captured(writer, self.captured, samples)
            diagnostics += trace_diagnostics
        elif self._traced:
            text = "the trace tables were lost with the recording's process; device times are those of CUDA events"
            diagnostics.append(diagnostic_row("warning", Source.TRACING, text))
        diagnostics += _checked(samples, cases, variants, self._tables["ceilings"], self._facts["l2_bytes"])
        count = {"device_count": self._begun["most_gpus"]} if self._facts["device_count"] else {}
        run = {"run_id": writer.run_id, **self._begun["run"], "started_at": self.started, **self._facts, **count}
        writer.append("run", [run])
        writer.append("variants", variants)
        writer.append("cases", cases)
        writer.append("samples", samples)
        writer.append("results", self.results.rows)
        for table in _AS_THEY_COME:
            writer.append(table, self._tables[table])
        writer.append(
            "phases", [{**dict(zip(_SPENT_KEY, key, strict=True)), "duration_ns": ns} for key, ns in self._spent_ns.items()]
        )
        writer.append("diagnostics", diagnostics)


def _without(samples: pa.Table, cells: Sequence[Cell]) -> pa.Table:
    """Leave out the samples of some cells, such as those that a later process found to be wrong."""
    for cell in cells:
        other = [pc.not_equal(samples[column], value) for column, value in cell.key.items()]
        samples = samples.filter(reduce(pc.or_, other))
    return samples


def _checked(
    samples: pa.Table, cases: RowDicts, variants: RowDicts, ceilings: RowDicts, l2_bytes: int | None
) -> list[dict[str, Any]]:
    """Return diagnostics about doubtful results. If the check itself fails, that is one more diagnostic."""
    from warpladder.collectors.core import trust  # imports pandas, for which no order that is refused needs to wait

    try:
        return trust.check(samples.to_pandas(), cases, variants, ceilings, l2_bytes)
    except Exception as error:
        return [diagnostic_row("error", Source.TRUST, f"the run could not be checked ({type(error).__name__}: {error})")]


# -- events --------------------------------------------------------------------------------------------------------------------

#: Version of the method; raised when the same plan would give other numbers. Version 2 subtracts the overhead of the CUDA
#: events from device times. In version 3 an execution of the variant precedes each batch of hot ones. Version 4 takes that overhead
#: from kernels of known length, and no longer from empty ones alone.
_VERSION: Final = "4"


def begin(plan: Plan, collector: str, label: str, started: datetime, arguments: Sequence[str] | str) -> Event:
    """The first event. It holds everything that is known before measuring starts. Raises StoreError: a workload
    declares a value that no run can hold."""
    cells = [_with_gpus(cell, job.gpus) for job in plan.jobs for cell in job.cells]
    planned = {tuple(cell[:2]) for cell in cells}
    cases = [
        case_row(workload, workload.case(case))
        for workload in plan.workloads
        for case in dict.fromkeys(job.case for job in plan.jobs if job.workload.name == workload.name)
    ]
    variants = [
        variant_row(workload, variant)
        for workload in plan.workloads
        for variant in workload.variants
        if (workload.name, variant.name) in planned
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
    """The event `begin` from the rows that the run will have. Raises StoreError: a row does not fit the schema.
    `cells`: workload, variant, config, case and number of ranks of each cell."""
    event: Event = {
        "kind": "begin",
        "format": FORMAT,
        "run": {
            "schema_version": schema.SCHEMA_VERSION,
            "label": label,
            "kind": "recording",
            "collector": collector,
            "collector_version": _VERSION,
            "source": "",
            "source_sha256": None,
            **host_facts(arguments),
        },
        "started_at": started.isoformat(),
        "most_gpus": most_gpus,
        "cells": list(cells),
        "cases": list(cases),
        "variants": list(variants),
    }
    for table in ("cases", "variants"):
        conform(table, event[table])
    return event


def rows_event(tables: Mapping[str, RowDicts], gpus: int = 1, process: int = 0, *, traced: bool = False) -> Event:
    """The event of rows that were measured.

    Args:
        tables: rows by table, without `samples`: of `results`, `diagnostics`, `ceilings`, `energy` and machine code; of `run`, `variants` and
            `cases` the columns that were not known before, with the key. See `warpladder.collectors.core.messages`.
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
