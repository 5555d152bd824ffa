"""Records a run: drives the child process through the plan, contains what goes wrong in it, and writes the run."""

import json
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from collectors import trust
from collectors.allreduce import sizes_of
from collectors.children import START_TIMEOUT_S, STOP_TIMEOUT_S, Child, ChildLost, ChildProcess
from collectors.cupti.report import CapturedReport
from collectors.environment import NO_GPU, host_facts
from collectors.launchers import Launcher, RankedChild
from collectors.measure import result_row
from collectors.plan import Cell, Job, Plan
from collectors.runs import new_run_id
from collectors.trace.notes import Notes
from collectors.trace.samples import add_trace
from collectors.verdicts import Verdicts
from collectors.worker import Describe, DescribeAllReduce, Measure, diagnostic_row
from data import schema
from data.store import RunWriter, conform
from workloads.api import CudaVariant, LibraryVariant, Variant, Workload

#: Raised when the same plan would give other numbers. 2: device times without those of the events around them.
_VERSION: Final = "2"
_LEAVE_TIMEOUT_S: Final = 60.0


class Progress:
    """Told how far the run is; the command line shows a bar."""

    def start(self, jobs: int) -> None: ...

    def job(self, text: str) -> None: ...

    def advance(self) -> None: ...


class Recorder:
    """One recording: what has been measured so far, and the child that measures.

    Args:
        plan: what to measure.
        collector: name of the collector.
        progress: told how far the run is.
        launcher: starts the ranks that share a case.
    """

    def __init__(self, plan: Plan, collector: str, progress: Progress | None = None, launcher: Launcher | None = None) -> None:
        self._plan, self._collector, self._progress = plan, collector, progress or Progress()
        self._launcher = launcher or Launcher()
        self._children: dict[int, Child] = {}  # by how many ranks they are
        self._verdicts = Verdicts({(w.name, v.name) for w in plan.workloads for v in w.variants if v.kind == "host"})
        self._facts: dict[str, Any] = dict(NO_GPU)
        self._resources: dict[tuple[str, str], tuple[int, int, int]] = {}
        self._tables: dict[str, list[dict[str, Any]]] = {name: [] for name in ("ceilings", "diagnostics")}
        self._samples: list[pa.Table] = []
        self._captured: list[Any] = []

    def record(self, data_dir: Path, label: str, arguments: Sequence[str]) -> tuple[str, bool]:
        """Measure and write the run.

        Args:
            data_dir: where the run's folder goes.
            label: the user's name for the run.
            arguments: command line, kept with the run.

        Returns:
            the run's id, and whether it was interrupted; what was finished by then is kept.

        Raises:
            StoreError: the data folder cannot be written; found out before anything is measured.
        """
        started = datetime.now(UTC)
        with RunWriter(data_dir, new_run_id(started, label)) as writer:
            interrupted = False
            try:
                self._describe()
                self._measure()
            except KeyboardInterrupt:
                interrupted = True
                self._diagnose("warning", "interrupted", "the run was interrupted; what was finished by then is kept")
            finally:
                for gpus in list(self._children):
                    self._end_child(gpus, STOP_TIMEOUT_S if interrupted else _LEAVE_TIMEOUT_S)
            self._write(writer, started, label, arguments)
            writer.commit()
        return writer.run_id, interrupted

    # -- measuring -------------------------------------------------------------------------------------------------

    def _describe(self) -> None:
        self._progress.start(len(self._plan.jobs) + 1)
        self._progress.job("ceilings of this machine")
        self._facts |= self._ask_ceilings(1, Describe(), "the device could not be described")
        if self._collector != "host_clock":
            for gpus, sizes in sizes_of(self._plan).items():
                why = f"NCCL's allreduce on {gpus} GPUs could not be timed"
                self._ask_ceilings(gpus, DescribeAllReduce(sizes), why)
        self._progress.advance()

    def _ask_ceilings(self, gpus: int, request: Any, else_say: str) -> dict[str, Any]:
        """Facts that a child gives; its ceilings are kept."""
        facts: dict[str, Any] = {}

        def take(kind: str, payload: Any) -> bool:
            if kind == "failed":
                self._diagnose("error", "ceilings", f"{else_say}: {payload}")
            else:
                found, ceilings = payload
                facts.update(found)
                self._tables["ceilings"] += ceilings
            return True

        try:
            self._running_child(gpus).ask(request, (), START_TIMEOUT_S, take)
        except ChildLost as lost:
            self._diagnose("error", "ceilings", f"{else_say}: {lost.detail}")
            self._end_child(gpus)
        return facts

    def _measure(self) -> None:
        deadline = None if self._plan.limits.budget_s is None else time.monotonic() + self._plan.limits.budget_s
        for note in self._plan.notes:
            self._diagnose("info", "gpus", note)
        for planned in self._plan.jobs:
            job = replace(planned, cells=tuple(cell for cell in planned.cells if not self._verdicts.is_lost(cell)))
            among = f" among {job.gpus}" if job.gpus > 1 else ""
            self._progress.job(f"{job.workload.name} {job.case}{among}")
            if deadline is not None and time.monotonic() > deadline:
                why = f"the run's {self._plan.limits.budget_s:g} s were used up"
                for cell in job.cells:
                    self._verdicts.add(result_row(cell, "skipped", why), job.gpus)
            elif job.cells:
                self._measure_job(job)
            self._progress.advance()

    def _measure_job(self, job: Job) -> None:
        """Measure a case, as often as it takes to get past the cells that bring the child down."""
        lost_cells: dict[Cell, dict[str, Any]] = {}
        while True:
            cells = tuple(cell for cell in job.cells if cell not in lost_cells)
            rows: dict[str, list[dict[str, Any]]] = {"results": [], "diagnostics": []}
            samples: list[pa.Table] = []
            try:
                self._ask_for(replace(job, cells=cells), rows, samples)
            except ChildLost as lost:
                self._end_child(job.gpus)
                blamed = [lost.cell] if lost.cell else list(cells)
                lost_cells |= {cell: result_row(cell, lost.status, lost.detail) for cell in blamed}
                if len(lost_cells) < len(job.cells):
                    continue
                rows, samples = {}, []
            self._tables["diagnostics"] += rows.get("diagnostics", [])
            self._samples += samples
            for row in (*rows.get("results", []), *lost_cells.values()):
                self._verdicts.add(row, job.gpus)
            return

    def _ask_for(self, job: Job, rows: dict[str, list[dict[str, Any]]], samples: list[pa.Table]) -> None:
        def take(kind: str, payload: Any) -> bool:
            match kind:
                case "result":
                    rows["results"].append(payload)
                case "samples":
                    samples.append(payload)
                case "diagnostic":
                    rows["diagnostics"].append(payload)
                case "resources":
                    self._keep_most(*payload)
                case "captured":
                    self._captured += [payload] if payload else []
                case "crashed":
                    raise ChildLost(*payload)
                case "failed":
                    told = {(row["variant"], row["config"]) for row in rows["results"]}
                    if len(told) == len(job.cells):
                        rows["diagnostics"].append(diagnostic_row("error", "collector", f"{job.case}: {payload}"))
                    rows["results"] += [
                        result_row(cell, "launch_error", payload)
                        for cell in job.cells
                        if (cell.variant, cell.config) not in told
                    ]
                    return True
                case "done":
                    return True
            return False

        limits = self._plan.limits
        self._running_child(job.gpus).ask(Measure(job, limits), job.cells, limits.cell_timeout_s, take)

    def _keep_most(self, cell: Cell, *taken: int) -> None:
        key = (cell.workload, cell.variant)
        known = self._resources.get(key, (0, 0, 0))
        self._resources[key] = tuple(max(pair) for pair in zip(known, taken, strict=True))  # type: ignore[assignment]

    def _running_child(self, gpus: int) -> Child:
        if gpus not in self._children:
            collector = self._collector
            self._children[gpus] = RankedChild(self._launcher, collector, gpus) if gpus > 1 else ChildProcess(collector)
        return self._children[gpus]

    def _end_child(self, gpus: int, patience_s: float = 0.0) -> None:
        if gpus in self._children:
            self._children.pop(gpus).stop(patience_s)

    def _diagnose(self, severity: str, source: str, text: str) -> None:
        self._tables["diagnostics"].append(diagnostic_row(severity, source, text))

    # -- writing ---------------------------------------------------------------------------------------------------

    def _write(self, writer: RunWriter, started: datetime, label: str, arguments: Sequence[str]) -> None:
        for job in self._plan.jobs:
            for cell in job.cells:
                if not self._verdicts.has(cell, job.gpus):
                    self._verdicts.add(result_row(cell, "skipped", "the run was interrupted before it"), job.gpus)
        cases = [
            case_row(workload, case)
            for workload in self._plan.workloads
            for case in dict.fromkeys(job.case for job in self._plan.jobs if job.workload.name == workload.name)
        ]
        variants = [
            variant_row(workload, variant, self._resources.get((workload.name, variant.name)))
            for workload in self._plan.workloads
            for variant in workload.variants
            if any(
                cell.variant == variant.name and cell.workload == workload.name for job in self._plan.jobs for cell in job.cells
            )
        ]
        samples = pa.concat_tables(self._samples or [schema.SAMPLES.arrow.empty_table()])
        if self._captured:
            samples = self._traced(writer, samples)
        self._tables["diagnostics"] += trust.check(samples.to_pandas(), cases, variants, self._tables["ceilings"])
        writer.append(
            "run",
            [
                {
                    "run_id": writer.run_id,
                    "schema_version": schema.SCHEMA_VERSION,
                    "label": label,
                    "kind": "recording",
                    "started_at": started,
                    "collector": self._collector,
                    "collector_version": _VERSION,
                    "source": "",
                    **self._facts,
                    **({"device_count": self._plan.most_gpus} if self._facts["device_count"] else {}),
                    **host_facts(arguments),
                }
            ],
        )
        writer.append("variants", variants)
        writer.append("cases", cases)
        writer.append("samples", samples)
        writer.append("results", self._verdicts.rows)
        for name, rows in self._tables.items():
            writer.append(name, rows)

    def _traced(self, writer: RunWriter, samples: pa.Table) -> pa.Table:
        """Write the trace tables of what was captured in the child; the samples get its device times."""
        report, notes = CapturedReport(self._captured), Notes()
        retimed, found = add_trace(writer, report, samples.to_pandas(), notes)
        notes.count("error", "dropped", "CUPTI dropped {} records for want of room; times are lost with them", report.dropped)
        self._tables["diagnostics"] += [*notes.finish(), *found]
        return conform("samples", retimed)


def variant_row(workload: Workload, variant: Variant, resources: tuple[int, int, int] | None) -> dict[str, Any]:
    """A row of `variants`."""
    registers, shared_bytes, spill_bytes = resources or (None, None, None)
    return {
        "workload": workload.name,
        "variant": variant.name,
        "rung": variant.rung,
        "kind": variant.kind,
        "role": variant.role,
        "precision": variant.precision,
        "title": variant.title,
        **variant.header,
        "source_path": variant.source_path,
        "source_text": variant.source_text,
        "source_sha256": variant.source_sha256,
        "registers": registers,
        "shared_bytes": shared_bytes,
        "spill_bytes": spill_bytes,
        "min_compute_capability": ".".join(map(str, variant.min_compute_capability))
        if isinstance(variant, CudaVariant)
        else "",
        "transfer": variant.transfer if isinstance(variant, CudaVariant) else _transfer_around(variant),
    }


def _transfer_around(variant: Variant) -> str | None:
    """How inputs and outputs that the variant takes on the device are copied for it; None where it takes them on the host."""
    return "pageable" if isinstance(variant, LibraryVariant) and variant.device_only else None


def case_row(workload: Workload, name: str) -> dict[str, Any]:
    """A row of `cases`."""
    case = workload.case(name)
    inputs, outputs = workload.buffers(case)
    return {
        "workload": workload.name,
        "case": case.name,
        "size_rank": case.size_rank,
        "params": json.dumps(dict(case.params)),
        "flops": case.flops,
        "min_bytes": case.min_bytes,
        "h2d_bytes": sum(buffer.nbytes for buffer in inputs.values()),
        "d2h_bytes": sum(buffer.nbytes for buffer in outputs.values()),
    }
