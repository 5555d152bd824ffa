"""Measures one case: verify every cell, sample in rounds, verify again. Runs in the child process, on any bench.

The reference is computed before any variant runs, from inputs that variants cannot access. A variant is wrong if its first
outputs are wrong, if it changes an input, if its outputs are wrong after the rounds, or if it gives the same outputs for
other inputs. Each process of a run has inputs of its own. The first one verifies with other inputs besides.
"""

import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from warpladder.collectors.core.bench import (
    NO_GPU_STATE,
    Bench,
    Ended,
    Failed,
    FirstUse,
    MakeBench,
    Operation,
    Pass,
    Reading,
    Unavailable,
    check_declared,
    writes,
)
from warpladder.collectors.core.failures import CellCrashed, classify, is_sticky
from warpladder.collectors.core.jobs import Job
from warpladder.collectors.core.nvtx_ranges import nvtx_range
from warpladder.collectors.core.problem import Problem
from warpladder.collectors.core.process_state import ProcessState
from warpladder.collectors.core.range_texts import TWIN, WARM_UP, sample_text
from warpladder.collectors.core.reporter import Reporter
from warpladder.collectors.core.rounds import Entry, RoundsResult, SampleFailed, Turn, run_rounds, sample_rows
from warpladder.collectors.core.verdicts import Cell, result_row
from warpladder.collectors.core.verify import Verdict, compare, overlapping, widened_outputs
from warpladder.data.names import Phase, Source
from warpladder.workloads.api import Buffers, Case, Variant, Workload, format_params

#: Executions before the first sample of a cell.
WARM_UPS = 3


@dataclass(frozen=True)
class _Ready:
    """A verified cell with its operation."""

    cell: Cell
    operation: Operation
    verdict: Verdict
    tolerance: float


def measure_case(job: Job, workload: Workload, benches: Mapping[str, MakeBench], turn: Turn, report: Reporter) -> None:
    """Verify and sample every cell of a job.

    Args:
        job: the case and its cells.
        workload: the job's workload, loaded in this process.
        benches: makes the bench for each kind of variant that this collector runs.
        turn: the process's turn at the rounds.
        report: receives the measurements.

    Raises:
        CellCrashed: the process must be replaced before the other cells can go on.
    """
    case = workload.case(job.case)
    seed = [job.seed, zlib.crc32(f"{workload.name}/{case.name}".encode())]
    seed += [1 + turn.process] if turn.process else []
    rng = np.random.default_rng(seed)
    problem = Problem(workload, case, rng)
    problem.compute(workload.variant(cell.variant) for cell in job.cells if workload.variant(cell.variant).kind in benches)
    for doubt in problem.doubts() if turn.process == 0 else ():
        report.diagnostic("warning", Source.REFERENCE, f"{workload.name}/{case.name}: {doubt}")
    if case.min_bytes is None:
        report.case(problem.case_bytes())
    other = None if turn.process else Problem(workload, case, np.random.default_rng([*seed, 1]))
    for make, kinds in _by_bench(benches).items():
        cells = [cell for cell in job.cells if workload.variant(cell.variant).kind in kinds]
        if not cells:
            continue
        with nvtx_range(workload.name), nvtx_range(case.name):
            bench = make(workload, case, problem.inputs)
            try:
                _BenchRun(bench, workload, case, problem, other, turn, rng, report).measure(cells)
            except CellCrashed:
                raise  # the process ends; on an unusable device, freeing would raise another exception in its place
            except Exception:
                bench.close()
                raise
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


class _BenchRun:
    """The cells of one case that run on one bench."""

    def __init__(
        self,
        bench: Bench,
        workload: Workload,
        case: Case,
        problem: Problem,
        other: Problem | None,
        turn: Turn,
        rng: np.random.Generator,
        report: Reporter,
    ) -> None:
        self._bench, self._workload, self._case = bench, workload, case
        self._problem, self._other, self._turn, self._rng, self._report = problem, other, turn, rng, report
        self._stopped: dict[Cell, list[str]] = {}
        self._wrong: set[Cell] = set()
        self._told: set[tuple[Cell, tuple[str, ...]]] = set()

    def measure(self, cells: Sequence[Cell]) -> None:
        with ProcessState() as self._state:
            self._measure(cells)

    def _measure(self, cells: Sequence[Cell]) -> None:
        ready = {cell: found for cell in cells if (found := self._verified(cell))}
        self._problem.forget(self._bench)
        failed: set[Cell] = set()
        rows: list[dict[str, Any]] = []
        for how in self._bench.passes:
            active = [found for cell, found in ready.items() if cell not in failed and found.operation.takes(how)]
            if active:
                taken, lost = self._sample(active, how)
                rows += taken
                failed |= lost
        remaining = [found for cell, found in ready.items() if cell not in failed]
        failed |= self._verify_again(remaining)
        self._report.samples([row for row in rows if Cell.of(row) not in self._wrong])
        for found in remaining:
            if found.cell not in failed:
                first = found.operation.first_call_ns
                said = [f"first call: {first / 1e6:.3g} ms" if first else "", found.operation.note]
                detail = "; ".join([*self._stopped.get(found.cell, []), *filter(None, said)])
                self._report.result(result_row(found.cell, "ok", detail, found.verdict.columns(found.tolerance)))

    # -- verifying -------------------------------------------------------------------------------------------------

    def _verified(self, cell: Cell) -> _Ready | None:
        """Verify a cell. Returns its operation if the outputs are right; else reports the verdict and returns None."""
        self._report.working_on(cell)
        variant = self._workload.variant(cell.variant)
        config = next(c for c in variant.configs if format_params(c) == cell.config)
        tolerance = self._workload.tolerance[variant.precision_at(self._case)]
        try:
            if why_not := variant.skip(self._case, config):
                raise Unavailable(why_not)
            self._problem.check(variant)
            operation = self._bench.prepare(variant, config)
            verdict = self._judge(variant, operation, tolerance, again=False)
            self._refuse_changed()
        except Unavailable as reason:
            self._report.result(result_row(cell, "skipped", str(reason)))
            return None
        except Ended:
            raise
        except BaseException as error:
            self._fail(cell, error)
            return None
        finally:
            self._restore(cell)
        if not verdict.ok:
            self._report_wrong(cell, verdict, tolerance)
            return None
        if operation.resources:
            taken = operation.resources
            self._report.resources(cell, taken.registers, taken.shared_bytes, taken.spill_bytes)
        if operation.first_call_ns:
            first = Reading(operation.first_call_ns, state=NO_GPU_STATE)
            how = Pass(Phase.FIRST_CALL, "cold")
            self._report.samples(sample_rows(Entry(cell), how, self._bench.gpus, self._turn, self._turn.first_round, 0, first))
        if operation.first_uses and self._turn.process == 0:
            self._time_first_uses(cell, operation.first_uses)
        return _Ready(cell, operation, verdict, tolerance)

    def _time_first_uses(self, cell: Cell, first_uses: Callable[[], Iterable[FirstUse]]) -> None:
        """Report the steps of a cell's first use. A failure there is a finding, and no verdict on the cell."""
        try:
            for found in first_uses():
                for scope, duration_ns in found.phases_ns.items():
                    reading, how = Reading(duration_ns, state=NO_GPU_STATE), Pass(scope, found.cache)
                    rows = sample_rows(Entry(cell), how, self._bench.gpus, self._turn, found.number, 0, reading)
                    self._report.samples(rows)
                self._report.working_on(cell)
        except Exception as error:
            text = f"its first use could not be timed to the end: {classify(error)[1]}"
            self._report.diagnostic("warning", Source.FIRST_USE, text, cell)

    def _verify_again(self, ready: Sequence[_Ready]) -> set[Cell]:
        """Verify cells after their last round, once for each way in which they were timed, and then with other inputs. A cell
        fails the second check if its outputs still match the first inputs. Returns the cells that failed; they are reported."""
        failed: set[Cell] = set()
        for check in (self._still_right, self._right_anew):
            if check == self._right_anew and not (len(failed) < len(ready) and self._load_other()):
                break
            for found in ready:
                if found.cell in failed:
                    continue
                self._report.working_on(found.cell)
                try:
                    verdict = check(found)
                    self._refuse_changed()
                except Ended:
                    raise
                except BaseException as error:
                    failed.add(found.cell)
                    self._fail(found.cell, error)
                    continue
                finally:
                    self._restore(found.cell)
                if not verdict.ok:
                    failed.add(found.cell)
                    self._report_wrong(found.cell, verdict, found.tolerance)
        for problem in filter(None, (self._problem, self._other)):
            problem.forget(self._bench)
        return failed

    def _still_right(self, found: _Ready) -> Verdict:
        variant = self._workload.variant(found.cell.variant)
        verdict = self._judge(variant, found.operation, found.tolerance, again=True)
        return replace(verdict, detail=f"right at first, and wrong after it was timed: {verdict.detail}")

    def _right_anew(self, found: _Ready) -> Verdict:
        variant = self._workload.variant(found.cell.variant)
        self._bench.poison(again=False)
        found.operation.refresh()
        outputs = self._bench.run(found.operation)
        verdict = self._compared(outputs, self._problem, variant, found.tolerance)
        if not verdict.ok:  # as it should be: the outputs do not match the first inputs
            return found.verdict
        # In rare cases other inputs have the same outputs within the tolerance.
        assert self._other
        anew = self._compared(outputs, self._other, variant, found.tolerance)
        return replace(anew, detail=f"with other inputs it gives the outputs of the first ones: {anew.detail}")

    def _load_other(self) -> bool:
        """Load other inputs into the bench; False if the workload always makes the same inputs, and in later processes."""
        if self._other is None:
            return False
        first = self._problem.inputs
        try:
            other = self._other.inputs
        except Exception as error:
            text = f"{self._where}: no other inputs could be made to verify with ({classify(error)[1]})"
            self._report.diagnostic("warning", Source.INPUTS, text)
            return False
        if all(np.array_equal(first[name], other[name]) for name in first):
            text = "the inputs are the same at each call, so that a variant that keeps its first outputs is not found"
            self._report.diagnostic("warning", Source.INPUTS, f"{self._where}: {text}; make them from `rng`")
            return False
        self._bench.load(other)
        return True

    def _judge(self, variant: Variant, operation: Operation, tolerance: float, again: bool) -> Verdict:
        """Verify every way in which the operation runs. Returns the first failing verdict, else that of the plain run."""
        ways = {
            "": partial(self._bench.run, operation),
            "from end to end: ": operation.from_end_to_end,
            "in the batch that is timed hot: ": operation.from_batch,
        }
        verdicts = []
        for way, run in ways.items():
            if run is not None:
                self._bench.poison(again)
                verdict = self._judge_outputs(variant, run(), tolerance)
                if not verdict.ok:
                    return replace(verdict, detail=f"{way}{verdict.detail}")
                verdicts.append(verdict)
        return verdicts[0]

    def _judge_outputs(self, variant: Variant, outputs: Any, tolerance: float) -> Verdict:
        fault = check_declared(outputs, self._workload.buffers(self._case)[1])
        if not fault and variant.role != "specimen" and (same := overlapping(outputs, self._bench.inputs)):
            fault = f"output {same[0]} is a view of input {same[1]}: nothing was computed"
        if fault:
            return Verdict(False, float("nan"), float("nan"), 0, fault)
        return self._compared(outputs, self._problem, variant, tolerance)

    def _compared(self, outputs: Buffers, problem: Problem, variant: Variant, tolerance: float) -> Verdict:
        values = widened_outputs(outputs, self._workload.buffers(self._case)[1])
        return compare(values, problem.right(variant, self._bench), tolerance)

    def _refuse_changed(self) -> None:
        """Restore the inputs; raise Failed if one had changed."""
        if changed := self._bench.changed():
            raise Failed("wrong_result", writes(changed))

    def _restore(self, cell: Cell) -> None:
        """Restore what a cell changed for the whole process, and say it once."""
        changed = self._state.restore()
        if changed and (cell, changed) not in self._told:
            self._told.add((cell, changed))
            text = f"changes {', '.join(changed)} for its whole process; restored after each execution, for the other variants"
            self._report.diagnostic("warning", Source.PROCESS_STATE, text, cell)

    def _report_wrong(self, cell: Cell, verdict: Verdict, tolerance: float) -> None:
        self._wrong.add(cell)
        self._report.result(result_row(cell, "wrong_result", verdict.detail, verdict.columns(tolerance)))

    # -- sampling --------------------------------------------------------------------------------------------------

    def _sample(self, active: Sequence[_Ready], how: Pass) -> tuple[list[dict[str, Any]], set[Cell]]:
        """Sample the cells. Returns rows of `samples`, and the cells whose sampling failed; these are reported.

        If an input changed during the rounds, all samples are taken again, and the inputs are compared after each sample.
        """
        failed: set[Cell] = set()
        watched = False
        while remaining := [found for found in active if found.cell not in failed]:
            try:
                found = self._rounds({ready.cell: ready.operation for ready in remaining}, how, watched)
            except SampleFailed as failure:
                assert failure.__cause__
                failed.add(failure.cell)
                self._fail(failure.cell, failure.__cause__)
                continue
            changed = self._bench.changed()
            if not changed:
                self._keep(found, how)
                return found.rows, failed
            if not watched:
                text = f"{how.scope} {how.cache}: a variant changed {', '.join(changed)}; all samples were taken again"
                self._report.diagnostic("warning", Source.INPUTS_CHANGED, f"{self._where}, {text}")
            watched = True
        return [], failed

    def _rounds(self, operations: Mapping[Cell, Operation], how: Pass, watched: bool) -> RoundsResult:
        """Sample the operations in rounds; with `watched`, compare the inputs after each sample."""

        def take(entry: Entry, number: int, mark: str = "") -> Reading:
            self._report.working_on(entry.cell)
            config = f"[{entry.cell.config}]" if entry.cell.config else ""
            sample = sample_text(how.scope, how.cache, mark or (TWIN if entry.twin else ""), number)
            try:
                with nvtx_range(f"{entry.cell.variant}{config}"), nvtx_range(sample, number):
                    reading = self._bench.sample(operations[entry.cell], how)
            finally:
                self._restore(entry.cell)
            if watched:
                self._refuse_changed()
            return reading

        limits = self._turn.limits
        limits = replace(limits, min_rounds=1, max_rounds=WARM_UPS, seconds=limits.seconds / 10)
        warm_ups = replace(self._turn, limits=limits)
        entries = [Entry(cell) for cell in operations]
        run_rounds(entries, how, partial(take, mark=WARM_UP), warm_ups, self._rng, gpus=self._bench.gpus)
        entries.append(Entry(self._baseline(list(operations)), twin=1))
        return run_rounds(entries, how, take, self._turn, self._rng, gpus=self._bench.gpus)

    def _keep(self, found: RoundsResult, how: Pass) -> None:
        """Note why sampling stopped, and report what makes the samples doubtful."""
        for cell, why in found.stopped.items():
            self._stopped.setdefault(cell, []).append(why)
        for severity, source, text, about in found.doubts(f"{self._where}, {how.scope} {how.cache}", how):
            self._report.diagnostic(severity, source, text, about)

    @property
    def _where(self) -> str:
        return f"{self._workload.name}/{self._case.name}"

    def _baseline(self, cells: Sequence[Cell]) -> Cell:
        """Return the cell that runs twice in each round: the workload's baseline if it is among the cells, else the first."""
        names = (self._workload.baseline, self._workload.host_baseline)
        return next((cell for cell in cells if cell.variant in names), cells[0])

    def _fail(self, cell: Cell, error: BaseException) -> None:
        status, detail = classify(error)
        if is_sticky(error):
            raise CellCrashed(cell, status, detail)
        if status == "wrong_result":
            self._wrong.add(cell)
        self._report.result(result_row(cell, status, detail))
        self._bench.changed()  # it may have changed an input before it failed


def _by_bench(benches: Mapping[str, MakeBench]) -> dict[MakeBench, set[str]]:
    """Bench -> the kinds of variant that it runs, in the order of `benches`."""
    kinds: dict[MakeBench, set[str]] = {}
    for kind, make in benches.items():
        kinds.setdefault(make, set()).add(kind)
    return kinds
