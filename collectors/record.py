"""Records a run: drives the child process through the plan, contains what goes wrong in it, and writes the run."""

import json
import multiprocessing
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from collectors import trust
from collectors.cupti.report import CapturedReport
from collectors.environment import NO_GPU, host_facts
from collectors.measure import result_row
from collectors.plan import Cell, Job, Plan
from collectors.runs import new_run_id
from collectors.trace.notes import Notes
from collectors.trace.samples import add_trace
from collectors.worker import CELL, STEP, Describe, Measure, diagnostic_row, serve
from data import schema
from data.store import RunWriter, conform
from workloads.api import CudaVariant, LibraryVariant, Variant, Workload

#: Raised when the same plan would give other numbers. 2: device times without those of the events around them.
_VERSION: Final = "2"
_POLL_S: Final = 0.1
#: Starting the child imports CuPy, and perhaps PyTorch, and compiles.
_START_TIMEOUT_S: Final = 180.0
_STOP_TIMEOUT_S: Final = 5.0
_LEAVE_TIMEOUT_S: Final = 60.0


class Progress:
    """Told how far the run is; the command line shows a bar."""

    def start(self, jobs: int) -> None: ...

    def job(self, text: str) -> None: ...

    def advance(self) -> None: ...


class _ChildLost(Exception):
    """The child died, or was ended because it hung."""

    def __init__(self, cell: Cell | None, status: str, detail: str) -> None:
        super().__init__(detail)
        self.cell, self.status, self.detail = cell, status, detail


class _Child:
    """A child process and the pipe to it."""

    def __init__(self, collector: str) -> None:
        context = multiprocessing.get_context("spawn")
        self._connection: Connection
        self._connection, theirs = context.Pipe()
        self._progress = context.Array("q", [-1, 0], lock=False)
        self._process = context.Process(target=serve, args=(theirs, self._progress, collector), daemon=True)
        self._process.start()
        theirs.close()

    def ask(self, request: Any, cells: Sequence[Cell], timeout_s: float, take: Callable[[str, Any], bool]) -> None:
        """Send a request and hand every answer to `take` until it returns True.

        Raises:
            _ChildLost: the child died, or made no step for `timeout_s`.
        """
        self._connection.send(request)
        seen, since = -1, time.monotonic()
        while True:
            try:
                if self._connection.poll(_POLL_S):
                    since = time.monotonic()
                    if take(*self._connection.recv()):
                        return
                    continue
            except (EOFError, ConnectionError) as error:
                raise _ChildLost(self._working_on(cells), *self._why_dead()) from error
            step = self._progress[STEP]
            if step != seen:
                seen, since = step, time.monotonic()
            elif time.monotonic() - since > timeout_s:
                cell = self._working_on(cells)
                self.stop()
                raise _ChildLost(cell, "timeout", f"no progress for {timeout_s:g} s, so its process was ended")

    def _working_on(self, cells: Sequence[Cell]) -> Cell | None:
        number = self._progress[CELL]
        return cells[number] if 0 <= number < len(cells) else None

    def _why_dead(self) -> tuple[str, str]:
        self._process.join(_STOP_TIMEOUT_S)
        code = self._process.exitcode
        if code == -9:
            return "out_of_memory", "its process was killed (signal 9), as the system does when memory runs out"
        return "launch_error", f"its process died ({f'signal {-code}' if code and code < 0 else f'exit code {code}'})"

    def stop(self, patience_s: float = 0.0) -> None:
        """End the child, which may take so long to go by itself: a profiler around it writes what it has when it does."""
        self._connection.close()
        self._process.join(patience_s)
        self._process.terminate()
        self._process.join(_STOP_TIMEOUT_S)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()


class Recorder:
    """One recording: what has been measured so far, and the child that measures.

    Args:
        plan: what to measure.
        collector: name of the collector.
        progress: told how far the run is.
    """

    def __init__(self, plan: Plan, collector: str, progress: Progress | None = None) -> None:
        self._plan, self._collector, self._progress = plan, collector, progress or Progress()
        self._child: _Child | None = None
        self._facts: dict[str, Any] = NO_GPU
        self._resources: dict[tuple[str, str], tuple[int, int, int]] = {}
        self._tables: dict[str, list[dict[str, Any]]] = {name: [] for name in ("ceilings", "results", "diagnostics")}
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
                self._end_child(_STOP_TIMEOUT_S if interrupted else _LEAVE_TIMEOUT_S)
            self._write(writer, started, label, arguments)
            writer.commit()
        return writer.run_id, interrupted

    # -- measuring -------------------------------------------------------------------------------------------------

    def _describe(self) -> None:
        def take(kind: str, payload: Any) -> bool:
            if kind == "failed":
                self._diagnose("error", "ceilings", f"the device could not be described: {payload}")
            else:
                self._facts, self._tables["ceilings"] = payload
            return True

        self._progress.start(len(self._plan.jobs) + 1)
        self._progress.job("ceilings of this machine")
        try:
            self._running_child().ask(Describe(), (), _START_TIMEOUT_S, take)
        except _ChildLost as lost:
            self._diagnose("error", "ceilings", f"the device could not be described: {lost.detail}")
            self._end_child()
        self._progress.advance()

    def _measure(self) -> None:
        deadline = None if self._plan.limits.budget_s is None else time.monotonic() + self._plan.limits.budget_s
        for job in self._plan.jobs:
            self._progress.job(f"{job.workload.name} {job.case}")
            if deadline is not None and time.monotonic() > deadline:
                why = f"the run's {self._plan.limits.budget_s:g} s were used up"
                self._tables["results"] += [result_row(cell, "skipped", why) for cell in job.cells]
            else:
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
                self._ask_for(Job(job.workload, job.case, cells, job.seed), rows, samples)
            except _ChildLost as lost:
                self._end_child()
                blamed = [lost.cell] if lost.cell else list(cells)
                lost_cells |= {cell: result_row(cell, lost.status, lost.detail) for cell in blamed}
                if len(lost_cells) < len(job.cells):
                    continue
                rows, samples = {}, []
            for name, found in rows.items():
                self._tables[name] += found
            self._samples += samples
            self._tables["results"] += lost_cells.values()
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
                    raise _ChildLost(*payload)
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
        self._running_child().ask(Measure(job, limits), job.cells, limits.cell_timeout_s, take)

    def _keep_most(self, cell: Cell, *taken: int) -> None:
        key = (cell.workload, cell.variant)
        known = self._resources.get(key, (0, 0, 0))
        self._resources[key] = tuple(max(pair) for pair in zip(known, taken, strict=True))  # type: ignore[assignment]

    def _running_child(self) -> _Child:
        if self._child is None:
            self._child = _Child(self._collector)
        return self._child

    def _end_child(self, patience_s: float = 0.0) -> None:
        if self._child is not None:
            self._child.stop(patience_s)
            self._child = None

    def _diagnose(self, severity: str, source: str, text: str) -> None:
        self._tables["diagnostics"].append(diagnostic_row(severity, source, text))

    # -- writing ---------------------------------------------------------------------------------------------------

    def _write(self, writer: RunWriter, started: datetime, label: str, arguments: Sequence[str]) -> None:
        finished = {(row["workload"], row["variant"], row["config"], row["case"]) for row in self._tables["results"]}
        self._tables["results"] += [
            result_row(cell, "skipped", "the run was interrupted before it")
            for job in self._plan.jobs
            for cell in job.cells
            if (cell.workload, cell.variant, cell.config, cell.case) not in finished
        ]
        cases = [
            case_row(workload, job.case)
            for workload in self._plan.workloads
            for job in self._plan.jobs
            if job.workload.name == workload.name
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
                    **host_facts(arguments),
                }
            ],
        )
        writer.append("variants", variants)
        writer.append("cases", cases)
        writer.append("samples", samples)
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
