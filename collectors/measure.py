"""Measures one case: verify every cell, then sample in rounds. Runs in the child process, on any bench."""

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

import numpy as np

from collectors.bench import Bench, Failed, Operation, Unavailable, check_declared
from collectors.nvtx_ranges import TWIN, WARM_UP, nvtx_range, sample_text
from collectors.plan import Cell, Job, Limits
from collectors.rounds import Entry, Pass, Reading, SampleFailed, run_rounds
from collectors.verify import Verdict, compare, poison
from workloads.api import Array, Buffers, Case, Variant, Workload, format_params

#: Executions before the first sample of a cell.
WARM_UPS = 3

MakeBench = Callable[[Workload, Case, Mapping[str, np.ndarray]], Bench]


class Reporter(Protocol):
    """Where measurements go; in the child process, the pipe to the parent."""

    def working_on(self, cell: Cell) -> None:
        """Called before every step that may hang or crash."""
        ...

    def result(self, row: dict[str, Any]) -> None: ...

    def samples(self, rows: list[dict[str, Any]]) -> None: ...

    def diagnostic(self, severity: str, source: str, text: str, cell: Cell | None = None) -> None: ...

    def resources(self, cell: Cell, registers: int, shared_bytes: int, spill_bytes: int) -> None: ...


class CellCrashed(Exception):
    """A cell left the process unfit to go on, such as by a CUDA error that stays."""

    def __init__(self, cell: Cell, status: str, detail: str) -> None:
        super().__init__(detail)
        self.cell, self.status, self.detail = cell, status, detail


@dataclass(frozen=True)
class _Ready:
    """A verified cell with its operation."""

    cell: Cell
    operation: Operation
    verdict: Verdict
    tolerance: float


def measure_case(job: Job, workload: Workload, benches: Mapping[str, MakeBench], limits: Limits, report: Reporter) -> None:
    """Verify and sample every cell of a job.

    Args:
        job: the case and its cells.
        workload: as loaded here.
        benches: how to make the bench for each kind of variant that this collector runs.
        limits: when sampling stops.
        report: takes what is measured.

    Raises:
        CellCrashed: the process must be replaced before the other cells can go on.
    """
    case = workload.case(job.case)
    rng = np.random.default_rng([job.seed, zlib.crc32(f"{workload.name}/{case.name}".encode())])
    inputs = workload.make_inputs(case, rng)
    references = _References(workload, case, inputs)
    for make, kinds in _by_bench(benches).items():
        cells = [cell for cell in job.cells if workload.variant(cell.variant).kind in kinds]
        if not cells:
            continue
        with nvtx_range(workload.name), nvtx_range(case.name):
            bench = make(workload, case, inputs)
            try:
                _BenchRun(bench, workload, case, references, limits, rng, report).measure(cells)
            finally:
                bench.close()
    for cell in job.cells:
        kind = workload.variant(cell.variant).kind
        if kind not in benches:
            why = (
                "this collector runs GPU variants only"
                if kind == "host"
                else "needs an NVIDIA GPU; this collector runs host variants only"
            )
            report.result(result_row(cell, "skipped", why))


def result_row(
    cell: Cell, status: str, detail: str, verdict: Verdict | None = None, tolerance: float | None = None
) -> dict[str, Any]:
    """A row of `results`."""
    return {
        **cell.key,
        "status": status,
        "detail": detail,
        "rel_l2_error": verdict.rel_l2_error if verdict else None,
        "max_rel_error": verdict.max_rel_error if verdict else None,
        "tolerance": tolerance,
        "verified_elements": verdict.verified_elements if verdict else None,
    }


class _References:
    """What is right, computed once a definition, however many variants and benches compare with it."""

    def __init__(self, workload: Workload, case: Case, inputs: Mapping[str, np.ndarray]) -> None:
        self._workload, self._case, self._inputs = workload, case, inputs
        self._known: dict[Any, Mapping[str, Array]] = {}

    def of(self, variant: Variant, bench: Bench) -> Mapping[str, Array]:
        definition = variant.reference or self._workload.reference
        if (definition, id(bench)) not in self._known:
            if definition not in self._known:
                self._known[definition] = definition(self._case, self._inputs)
            self._known[definition, id(bench)] = bench.place(self._known[definition])
        return self._known[definition, id(bench)]

    def forget(self, bench: Bench) -> None:
        """Give back a bench's copies."""
        self._known = {key: value for key, value in self._known.items() if not (isinstance(key, tuple) and key[1] == id(bench))}


class _BenchRun:
    """The cells of one case that run on one bench."""

    def __init__(
        self,
        bench: Bench,
        workload: Workload,
        case: Case,
        references: _References,
        limits: Limits,
        rng: np.random.Generator,
        report: Reporter,
    ) -> None:
        self._bench, self._workload, self._case = bench, workload, case
        self._references, self._limits, self._rng, self._report = references, limits, rng, report
        self._stopped: dict[Cell, list[str]] = {}

    def measure(self, cells: Sequence[Cell]) -> None:
        ready = {cell: found for cell in cells if (found := self._verified(cell))}
        self._references.forget(self._bench)
        failed: set[Cell] = set()
        for how in self._bench.passes:
            active = [found for cell, found in ready.items() if cell not in failed and found.operation.takes(how)]
            if active:
                failed |= self._sample(active, how)
        for cell, found in ready.items():
            if cell not in failed:
                detail = "; ".join([*self._stopped.get(cell, []), *filter(None, [found.operation.note])])
                self._report.result(result_row(cell, "ok", detail, found.verdict, found.tolerance))

    def _verified(self, cell: Cell) -> _Ready | None:
        """The cell's operation once its outputs have been found right; otherwise None, and its verdict is reported."""
        self._report.working_on(cell)
        variant = self._workload.variant(cell.variant)
        config = next(c for c in variant.configs if format_params(c) == cell.config)
        tolerance = self._workload.tolerance[variant.precision]
        why_not = variant.skip(self._case, config)
        if why_not:
            self._report.result(result_row(cell, "skipped", why_not))
            return None
        try:
            operation = self._bench.prepare(variant, config)
            poison(self._bench.outputs)
            verdict = self._judge(variant, self._bench.run(operation), tolerance)
            if verdict.ok and operation.from_end_to_end:
                poison(self._bench.outputs)
                copied = self._judge(variant, operation.from_end_to_end(), tolerance)
                verdict = verdict if copied.ok else replace(copied, detail=f"from end to end: {copied.detail}")
        except Unavailable as reason:
            self._report.result(result_row(cell, "skipped", str(reason)))
            return None
        except Exception as error:
            self._fail(cell, error)
            return None
        if not verdict.ok:
            self._report.result(result_row(cell, "wrong_result", verdict.detail, verdict, tolerance))
            return None
        if operation.resources:
            taken = operation.resources
            self._report.resources(cell, taken.registers, taken.shared_bytes, taken.spill_bytes)
        return _Ready(cell, operation, verdict, tolerance)

    def _judge(self, variant: Variant, outputs: Buffers, tolerance: float) -> Verdict:
        fault = check_declared(outputs, self._workload.buffers(self._case)[1])
        if fault:
            return Verdict(False, float("nan"), float("nan"), 0, fault)
        return compare(outputs, self._references.of(variant, self._bench), tolerance)

    def _sample(self, active: Sequence[_Ready], how: Pass) -> set[Cell]:
        """Sample the cells; those whose sampling failed are reported and given back."""
        failed: set[Cell] = set()
        while remaining := [found for found in active if found.cell not in failed]:
            operations = {found.cell: found.operation for found in remaining}
            try:
                self._rounds(operations, how)
                break
            except SampleFailed as failure:
                assert failure.__cause__
                failed.add(failure.cell)
                self._fail(failure.cell, failure.__cause__)  # type: ignore[arg-type]
        return failed

    def _rounds(self, operations: Mapping[Cell, Operation], how: Pass) -> None:
        def take(entry: Entry, number: int, mark: str = "") -> Reading:
            self._report.working_on(entry.cell)
            config = f"[{entry.cell.config}]" if entry.cell.config else ""
            sample = sample_text(how.scope, how.cache, mark or (TWIN if entry.twin else ""), number)
            with nvtx_range(f"{entry.cell.variant}{config}"), nvtx_range(sample, number):
                return self._bench.sample(operations[entry.cell], how)

        warm_ups = replace(self._limits, min_rounds=1, max_rounds=WARM_UPS, seconds=self._limits.seconds / 10)
        entries = [Entry(cell) for cell in operations]
        run_rounds(entries, how, partial(take, mark=WARM_UP), warm_ups, self._rng, gpus=self._bench.gpus)
        baseline = self._baseline(list(operations))
        entries.append(Entry(baseline, twin=1))
        found = run_rounds(entries, how, take, self._limits, self._rng, gpus=self._bench.gpus)
        self._report.samples(found.rows)
        for cell, why in found.stopped.items():
            self._stopped.setdefault(cell, []).append(why)
        self._distrust(found.discarded, found.kept_throttled, found.pending, found.not_held, how)

    def _baseline(self, cells: Sequence[Cell]) -> Cell:
        """The cell that runs twice in each round: the workload's baseline where it is there, else the first."""
        names = (self._workload.baseline, self._workload.host_baseline)
        return next((cell for cell in cells if cell.variant in names), cells[0])

    def _distrust(self, discarded: int, kept: int, pending: set[Cell], not_held: set[Cell], how: Pass) -> None:
        where = f"{self._workload.name}/{self._case.name}, {how.scope} {how.cache}"
        if discarded:
            self._report.diagnostic(
                "info", "throttling", f"{where}: {discarded} samples taken under throttling were taken again"
            )
        if kept:
            self._report.diagnostic(
                "warning", "throttling", f"{where}: {kept} samples stayed throttled and were kept; see throttle_reasons"
            )
        for cell in sorted(pending, key=str):
            text = f"the {how.scope} clock was stopped while the device was still at work: the call was never synchronised"
            self._report.diagnostic("warning", "never_synchronized", text, cell)
        for cell in sorted(not_held, key=str):
            text = f"the call waits for the device inside, so its {how.scope} {how.cache} time includes time of the host"
            self._report.diagnostic("warning", "waits_inside", text, cell)

    def _fail(self, cell: Cell, error: Exception) -> None:
        status, detail = classify(error)
        if is_sticky(error):
            raise CellCrashed(cell, status, detail)
        self._report.result(result_row(cell, status, detail))


def classify(error: BaseException) -> tuple[str, str]:
    """Status and detail of a result row for what a variant raised."""
    if isinstance(error, Failed):
        return error.status, error.detail
    name = type(error).__name__
    text = " ".join(str(error).split())[:500]
    if isinstance(error, MemoryError) or "OutOfMemory" in name or "out of memory" in text.lower():
        return "out_of_memory", f"{name}: {text}"
    return "launch_error", f"{name}: {text}"


def is_sticky(error: Exception) -> bool:
    """Whether the error leaves the process's CUDA context unusable, so that every later call fails too."""
    if isinstance(error, Failed):
        return error.lasting
    of_device = ("CUDARuntimeError", "CUDADriverError", "AcceleratorError", "NcclError")
    return type(error).__name__ in of_device and "out of memory" not in str(error)


def _by_bench(benches: Mapping[str, MakeBench]) -> dict[MakeBench, set[str]]:
    """Bench -> the kinds of variant that it runs, in the order of `benches`."""
    kinds: dict[MakeBench, set[str]] = {}
    for kind, make in benches.items():
        kinds.setdefault(make, set()).add(kind)
    return kinds
