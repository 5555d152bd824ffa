"""Measures one case: verify every cell, sample in rounds, verify again. Runs in the child process, on any bench.

The references of two input sets are computed before any variant runs, each from its own inputs. An execution never reads the
same input set as the execution before it. A variant is wrong if its outputs for one of the sets are wrong before the rounds,
after the rounds, or in a timed sample that is chosen at random, or if it changes an input. Each process of a run makes its own
inputs.
"""

import gc
import math
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from random import Random
from typing import Any, Final, TypeVar

import numpy as np

from warpladder.collectors.core import judge, kept_results
from warpladder.collectors.core.agreement import Agreement
from warpladder.collectors.core.bench import (
    NO_GPU_STATE,
    Bench,
    CellCrashed,
    Ended,
    Failed,
    FirstUse,
    MakeBench,
    Operation,
    Pass,
    Reading,
    Unavailable,
    classify,
    is_sticky,
)
from warpladder.collectors.core.cells import Cell, result_row
from warpladder.collectors.core.judge import Inspections, Judge, KnownOutputs, Problems
from warpladder.collectors.core.kept_results import PAIRS, Durations
from warpladder.collectors.core.left_threads import LeftThreads, Load
from warpladder.collectors.core.messages import Reporter, diagnose
from warpladder.collectors.core.nvtx_ranges import TWIN, WARM_UP, nvtx_range, sample_text
from warpladder.collectors.core.plan import Job
from warpladder.collectors.core.process_state import ProcessState
from warpladder.collectors.core.rounds import Entry, RoundsResult, SampleFailed, Turn, run_rounds, sample_rows
from warpladder.collectors.core.stopwatch import Stopwatch
from warpladder.collectors.core.verify import SHARE, altered, part_of
from warpladder.data.names import Phase, Source, Spent
from warpladder.workloads.api import Case, Variant, Workload, format_params

#: Executions before the first sample of a cell; one on a host, where the same call was verified before.
WARM_UPS = 3
_KEEPS_PARTS: Final = (
    "wrong where the inputs differ in their last digits from those that it has seen, and right with new ones: it keeps results"
)


_T = TypeVar("_T", kept_results.Suspect, kept_results.Pairs)


@dataclass(frozen=True)
class _Verified:
    """A verified cell with its operation."""

    cell: Cell
    operation: Operation
    agreement: Agreement


def measure_case(job: Job, workload: Workload, benches: Mapping[str, MakeBench], turn: Turn, report: Reporter) -> None:
    """Verify and sample every cell of a job, and report where the time went. Raises CellCrashed: the process must be
    replaced before the other cells can go on."""
    watch = Stopwatch(Spent.PREPARE)

    def tell() -> None:
        report.rows("phases", watch.take_rows(workload.name, job.case, job.gpus, turn.process))

    case, load = workload.case(job.case), Load()
    seed = [job.seed, zlib.crc32(f"{workload.name}/{case.name}".encode()), turn.process]
    problems = Problems(workload, case, seed, watch)
    variants = [variant for cell in job.cells if (variant := workload.variant(cell.variant)).kind in benches]
    problems.compute(variants)
    if turn.process == 0:
        _tell_doubts(workload, case, problems, variants, report)
    report.rows("cases", [problems.sets[0].case_bytes()])
    tell()
    for make, kinds in _by_bench(benches).items():
        cells = [cell for cell in job.cells if workload.variant(cell.variant).kind in kinds]
        if not cells:
            continue
        with nvtx_range(workload.name), nvtx_range(case.name):
            bench = make(workload, case, problems.sets[0].inputs)
            try:
                bench.keep([problem.inputs for problem in problems.sets])
                _BenchRun(bench, workload, case, problems, turn, np.random.default_rng(seed), report, watch, tell).measure(
                    cells
                )
            except CellCrashed:
                raise  # the process ends; on an unusable device, freeing would raise another exception in its place
            except Exception:
                bench.close()
                raise
            bench.close()
    if turn.process == 0 and (text := load.text()):
        diagnose(report, "info", Source.LOAD, f"{workload.name}/{case.name}: {text}")
    for cell in job.cells:
        kind = workload.variant(cell.variant).kind
        if kind not in benches:
            why = (
                "this collector runs GPU variants only"
                if kind == "host"
                else "needs an NVIDIA GPU; this collector runs host variants only"
            )
            report.rows("results", [result_row(cell, "skipped", why)])
    tell()


def _tell_doubts(workload: Workload, case: Case, problems: Problems, variants: Sequence[Variant], report: Reporter) -> None:
    """Report what makes the inputs and references of a case doubtful."""
    where = f"{workload.name}/{case.name}"
    for doubt in problems.sets[0].doubts():
        diagnose(report, "warning", Source.REFERENCE, f"{where}: {doubt}")
    if problems.why_one:
        diagnose(report, "warning", Source.INPUTS, f"{where}: {problems.why_one}")
    tolerances = {each.name: judge.tolerances_of(workload, each, case) for each in variants} if len(problems.sets) > 1 else {}
    same = {tuple(each.values()): problems.same_for_all(each) for each in tolerances.values()}
    doubtful = {name: outputs for name, each in tolerances.items() if (outputs := same[tuple(each.values())])}
    about = {"workload": workload.name, "case": case.name}
    for name, outputs in doubtful.items() if len(doubtful) < len(tolerances) else [*doubtful.items()][:1]:
        text = (
            f"the reference's {', '.join(outputs)} hardly depend{'s' if len(outputs) == 1 else ''} on the inputs: a variant that reads none "
            "of them may pass, so no such variant is the best; make inputs whose outputs differ, such as numbers of both signs"
        )
        of_variant = {"variant": name} if len(doubtful) < len(tolerances) else {}
        diagnose(report, "warning", Source.CONSTANT_REFERENCE, text, about | of_variant)


class _BenchRun:
    """The cells of one case that run on one bench."""

    def __init__(
        self,
        bench: Bench,
        workload: Workload,
        case: Case,
        problems: Problems,
        turn: Turn,
        rng: np.random.Generator,
        report: Reporter,
        watch: Stopwatch,
        tell: Callable[[], None],
    ) -> None:
        self._bench, self._workload, self._case = bench, workload, case
        self._problems, self._turn, self._rng, self._report = problems, turn, rng, report
        self._watch, self._tell = watch, tell
        self._judge = Judge(bench, workload, case, problems)
        self._stopped: dict[Cell, list[str]] = {}
        self._wrong: set[Cell] = set()
        self._reported: set[tuple[Cell, tuple[str, ...]]] = set()
        self._durations: dict[tuple[Cell, Pass], Durations] = defaultdict(Durations)
        self._alters = True  # until a variant fails with altered inputs, such as probabilities that must add up to 1
        self._known = KnownOutputs()
        self._threads = LeftThreads()

    def measure(self, cells: Sequence[Cell]) -> None:
        was_frozen = gc.get_freeze_count() > 0
        try:
            with ProcessState() as self._state:
                self._measure(cells)
        finally:
            if not was_frozen:
                gc.unfreeze()

    def _measure(self, cells: Sequence[Cell]) -> None:
        verified = {cell: timed for cell in cells if (timed := self._verified(cell))}
        self._tell()
        failed: set[Cell] = set()
        rows: dict[str, list[dict[str, Any]]] = {"samples": [], "energy": []}
        for how in self._bench.passes:
            active = [timed for cell, timed in verified.items() if cell not in failed and timed.operation.takes(how)]
            if active:
                sampled, lost = self._sample(active, how)
                rows["samples"] += sampled.rows
                rows["energy"] += sampled.energy
                failed |= lost
                self._tell()
        remaining = [timed for cell, timed in verified.items() if cell not in failed]
        works = "a thread or process of it works on when no variant runs"
        at_work = {
            cell: f"{works}: {share:.0%} of pauses between samples; end it, or let it rest"
            for cell, share in self._threads.at_work().items()
        }
        left = {
            cell: f"leaves {count} processes behind, which may work on; wait for each"
            for cell, count in self._threads.left_behind().items()
        }
        for cell, text in (at_work | left).items():
            diagnose(self._report, "warning", Source.PROCESS_STATE, text, cell)
        with self._watch.phase(Spent.CHECKS):
            failed |= self._time_altered(remaining)
            failed |= self._time_new_inputs([timed for timed in remaining if timed.cell not in failed])
        with self._watch.phase(Spent.VERIFY):
            failed |= self._verify_again([timed for timed in remaining if timed.cell not in failed])
        self._judge.forget()
        for table, of_table in rows.items():
            if right := [row for row in of_table if Cell.of(row) not in self._wrong]:
                self._report.rows(table, right)
        for timed in remaining:
            if timed.cell not in failed:
                first = timed.operation.first_call_ns
                remarks = [f"first call: {first / 1e6:.3g} ms" if first else "", timed.operation.note]
                detail = "; ".join([*self._stopped.get(timed.cell, []), *filter(None, remarks)])
                self._report.rows("results", [result_row(timed.cell, "ok", detail, timed.agreement.columns)])

    # -- verifying -------------------------------------------------------------------------------------------------

    def _verified(self, cell: Cell) -> _Verified | None:
        """Verify a cell. Returns its operation if the outputs are right; else reports the status and returns None."""
        self._begin(cell)
        variant = self._workload.variant(cell.variant)
        config = next(c for c in variant.configs if format_params(c) == cell.config)
        try:
            if why_not := variant.skip(self._case, config):
                raise Unavailable(why_not)
            for problem in self._problems.sets[: self._problems.referenced]:
                problem.check(variant)
            self._bench.use(0)
            operation = self._bench.prepare(variant, config)
            self._restore(cell)
            self._judge.refuse_changed()
            with self._watch.phase(Spent.VERIFY):
                agreement = self._judge.all_sets(variant, operation, partial(self._restore, cell))
        except Unavailable as reason:
            self._report.rows("results", [result_row(cell, "skipped", str(reason))])
            return None
        except Ended:
            raise
        except BaseException as error:
            self._fail(cell, error)
            return None
        finally:
            self._restore(cell)
        if not agreement.ok:
            self._fail(cell, Failed("wrong_result", agreement.detail, errors=agreement.columns))
            return None
        if operation.resources:
            key = {"workload": cell.workload, "variant": cell.variant}
            self._report.rows("variants", [{**key, **operation.resources}])
        if operation.first_call_ns:
            first = Reading(operation.first_call_ns, state=NO_GPU_STATE)
            how = Pass(Phase.FIRST_CALL, "cold")
            self._report.rows(
                "samples", sample_rows(Entry(cell), how, self._bench.gpus, self._turn, self._turn.first_round, 0, first)
            )
        if operation.first_uses and self._turn.process == 0:
            self._time_first_uses(cell, operation.first_uses)
        return _Verified(cell, operation, agreement)

    def _time_first_uses(self, cell: Cell, first_uses: Callable[[], Iterable[FirstUse]]) -> None:
        """Report the steps of a cell's first use. A failure there is a finding about no cell, since its other times are not in doubt."""
        try:
            for first_use in first_uses():
                for scope, duration_ns in first_use.phases_ns.items():
                    reading, how = Reading(duration_ns, state=NO_GPU_STATE), Pass(scope, first_use.cache)
                    rows = sample_rows(Entry(cell), how, self._bench.gpus, self._turn, first_use.number, 0, reading)
                    self._report.rows("samples", rows)
                self._begin(cell)
        except Exception as error:
            text = f"the first use of {cell} could not be timed to the end: {classify(error)[1]}"
            diagnose(self._report, "warning", Source.FIRST_USE, text)

    def _verify_again(self, cells: Sequence[_Verified]) -> set[Cell]:
        """Verify cells after their last round, once for each way in which they were timed. Returns the cells that failed; they are
        reported."""

        def check(timed: _Verified) -> None:
            number = int(self._rng.integers(self._problems.referenced))
            variant = self._workload.variant(timed.cell.variant)
            agreement = self._judge.every_way(variant, timed.operation, number, True, partial(self._restore, timed.cell))
            if agreement.ok and self._is_small and self._turn.process == 0 and not self._bench.gpus:
                compared = sum(len(each.usual) for (cell, _), each in self._durations.items() if cell == timed.cell)
                numbers = self._rng.integers(self._problems.referenced, size=max(judge.MANY - compared, 0)).tolist()
                agreement = self._judge.many(variant, timed.operation, numbers, partial(self._restore, timed.cell)) or agreement
            if not agreement.ok:
                detail = f"right at first, and wrong after it was timed: {agreement.detail}"
                raise Failed("wrong_result", detail, errors=agreement.columns)
            if self._alters and not self._bench.gpus and self._keeps_parts(timed, variant):
                raise Failed("wrong_result", _KEEPS_PARTS)

        return {timed.cell for timed in cells if not self._attempt(timed.cell, partial(check, timed))}

    def _keeps_parts(self, timed: _Verified, variant: Variant) -> bool:
        """Whether a cell uses what it kept of similar inputs. One that fails with altered inputs is left alone."""
        try:
            chance = Random(int(self._rng.integers(1 << 62)))
            return self._judge.keeps_parts(variant, timed.operation, chance, partial(self._restore, timed.cell))
        except Exception as error:
            if is_sticky(error):
                raise
            self._restore(timed.cell)
            return False

    def _of_first_pass(self, cells: Sequence[_Verified]) -> Iterator[tuple[_Verified, Pass, Durations]]:
        """Cells that have samples, with the first pass in which they were timed, and their durations there."""
        for timed in cells:
            how = next(each for each in self._bench.passes if timed.operation.takes(each))
            if durations := self._durations.get((timed.cell, how)):
                yield timed, how, durations

    def _time_altered(self, cells: Sequence[_Verified]) -> set[Cell]:
        """Time cells again that took longer with altered inputs. Returns those that keep results, or fail; they are reported."""
        every = list(self._of_first_pass(cells))
        ratios = {timed.cell: durations.ratio for timed, _, durations in every}
        failed: set[Cell] = set()
        for timed, how, durations in every:
            if not durations.is_suspicious:
                continue
            pairs = Durations()
            others = [ratio for cell, ratio in ratios.items() if cell != timed.cell]
            if not self._attempt(timed.cell, partial(self._time_pairs, timed, how, pairs)):
                failed.add(timed.cell)
            elif pairs.proves(others):
                failed.add(timed.cell)
                self._fail(timed.cell, Failed("wrong_result", pairs.text(f"{how.scope} {how.cache}")))
        return failed

    def _time_pairs(self, timed: _Verified, how: Pass, pairs: Durations) -> None:
        for number in range(2 * PAIRS):
            self._begin(timed.cell)
            reading, is_altered = self._sampled(timed, how, bool(number % 2))
            (pairs.altered if is_altered else pairs.usual).append(reading.own_ns)
            self._restore(timed.cell)
            self._bench.release()

    def _time_new_inputs(self, cells: Sequence[_Verified]) -> set[Cell]:
        """Time cells with inputs that they have not seen. Returns the cells that failed; they are reported."""
        if len(self._problems.sets) == 1:
            return set()
        suspects = [
            kept_results.Suspect(timed.cell, timed.operation, how, durations.usual)
            for timed, how, durations in self._of_first_pass(cells)
            if durations.usual
        ]
        failed = self._time_in_turn(
            suspects, lambda each, inputs: self._on_new(each.cell, inputs, partial(kept_results.time_new, each, self._bench))
        )
        if self._bench.gpus:
            return failed
        pairs = [kept_results.Pairs(each) for each in suspects if each.may_keep_a_part and each.cell not in failed]
        return failed | self._time_in_turn(pairs, self._time_pair)

    def _time_in_turn(self, every: Sequence[_T], step: Callable[[_T, Mapping[str, np.ndarray]], None]) -> set[Cell]:
        """Time cells with ever new inputs until each is settled. Returns those that keep results, or fail; they are reported."""
        failed: set[Cell] = set()
        while waiting := [each for each in every if not each.is_settled and each.cell not in failed]:
            inputs = self._problems.new()
            for each in waiting:
                if not self._attempt(each.cell, partial(step, each, inputs)):
                    failed.add(each.cell)
        for each in every:
            if each.keeps_results and each.cell not in failed:
                failed.add(each.cell)
                self._fail(each.cell, Failed("wrong_result", each.text))
        return failed

    def _time_pair(self, pairs: kept_results.Pairs, inputs: Mapping[str, np.ndarray]) -> None:
        """Time a cell with a set that it has seen and with a new one, in either order. Both are altered and copied alike, right before: an
        execution after that finds other memory in the caches than a sample does, and threads that sleep."""
        suspect = pairs.suspect
        number = int(self._rng.integers(len(self._problems.sets)))

        def time(given: Mapping[str, np.ndarray], durations_ns: list[int]) -> None:
            self._on_new(
                suspect.cell, given, lambda new, _: durations_ns.append(kept_results.time_once(suspect, self._bench, new))
            )
            self._restore(suspect.cell)
            self._bench.release()

        steps = [(self._problems.sets[number].inputs, pairs.seen_ns[number]), (inputs, pairs.new_ns)]
        self._sampled(suspect, suspect.how, True)  # it takes what making the inputs slows
        for given, durations_ns in steps if self._rng.integers(2) else reversed(steps):
            time(given, durations_ns)

    def _on_new(
        self, cell: Cell, inputs: Mapping[str, np.ndarray], step: Callable[[Mapping[str, np.ndarray], int], None]
    ) -> None:
        """Time a cell with inputs of its own: these with other last digits, so that no other variant has seen them either."""
        seed = int(self._rng.integers(1 << 62))
        if self._alters:
            try:
                step(altered(inputs, Random(seed)), seed)
                return
            except Exception as error:
                if is_sticky(error):
                    raise
                self._alter_no_more(cell, error)
        step(inputs, seed)

    def _alter_no_more(self, cell: Cell, error: Exception) -> None:
        """Give all cells the inputs as they are made from now on: this one fails with altered ones."""
        self._alters = False
        self._restore(cell)
        why = f"fails where inputs differ in their last digits from those that `inputs` gives ({classify(error)[1]})"
        what = "so all variants of the case get them unchanged, and results that other code left for one are not found"
        diagnose(self._report, "info", Source.INPUTS, f"{why}, {what}", cell)

    def _attempt(self, cell: Cell, step: Callable[[], None]) -> bool:
        """Do a step of a cell. If it fails, report the cell's status and return False."""
        self._begin(cell)
        try:
            step()
        except Ended:
            raise
        except BaseException as error:
            self._fail(cell, error)
            return False
        finally:
            self._restore(cell)
        return True

    def _begin(self, cell: Cell) -> None:
        """Tell that a cell runs now, when what other cells left at work rests."""
        self._report.working_on(cell)
        self._threads.wait_for_others(cell)

    def _restore(self, cell: Cell) -> None:
        """Restore what a cell changed for the whole process, and say it once."""
        self._threads.note(cell)
        changed = self._state.restore()
        if changed and (cell, changed) not in self._reported:
            self._reported.add((cell, changed))
            text = f"changes {', '.join(changed)} for its whole process; restored after each execution, for the other variants"
            diagnose(self._report, "warning", Source.PROCESS_STATE, text, cell)

    # -- sampling --------------------------------------------------------------------------------------------------

    def _sample(self, active: Sequence[_Verified], how: Pass) -> tuple[RoundsResult, set[Cell]]:
        """Sample the cells. Returns what was sampled, and the cells whose sampling failed; these are reported."""
        failed: set[Cell] = set()
        while remaining := [timed for timed in active if timed.cell not in failed]:
            try:
                with self._watch.phase(Spent.BETWEEN):
                    result = self._rounds({timed.cell: timed for timed in remaining}, how)
            except SampleFailed as failure:
                assert failure.__cause__
                failed.add(failure.cell)
                self._fail(failure.cell, failure.__cause__)
                continue
            self._keep(result, how)
            return result, failed
        return RoundsResult(), failed

    def _rounds(self, verified: Mapping[Cell, _Verified], how: Pass) -> RoundsResult:
        """Sample the cells in rounds. The outputs of some samples are compared."""
        limits = self._turn.limits
        inspections = Inspections(self._rng, limits.min_rounds, self._is_small)

        def take(entry: Entry, number: int, mark: str = "") -> Reading:
            timed = verified[entry.cell]
            self._begin(timed.cell)
            config = f"[{timed.cell.config}]" if timed.cell.config else ""
            sample = sample_text(how.scope, how.cache, mark or (TWIN if entry.twin else ""), number)
            try:
                with nvtx_range(f"{timed.cell.variant}{config}"):
                    reading, is_altered = self._sampled(timed, how, self._rng.random() < SHARE, sample, number, mark)
            finally:
                self._restore(timed.cell)
            if not mark and reading.inputs is not None:
                durations = self._durations[timed.cell, how]
                (durations.altered if is_altered else durations.usual).append(reading.own_ns)
                if not is_altered and reading.inputs < self._problems.referenced:
                    self._inspect(timed, reading.inputs, inspections)
            self._bench.release()
            return reading

        for cell in verified:
            self._durations.pop((cell, how), None)
        few = replace(limits, min_rounds=1, max_rounds=WARM_UPS if self._bench.gpus else 1, seconds=limits.seconds / 10)
        warm_ups = replace(self._turn, limits=few)
        entries = [Entry(cell) for cell in verified]
        run_rounds(entries, how, partial(take, mark=WARM_UP), warm_ups, self._rng, gpus=self._bench.gpus)
        entries.append(Entry(self._baseline(list(verified)), twin=1))
        gc.collect()
        gc.freeze()  # so that no variant is slowed by looking through the objects that another one keeps
        return run_rounds(entries, how, take, self._turn, self._rng, gpus=self._bench.gpus)

    @property
    def _is_small(self) -> bool:
        """Whether a comparison takes about as long as other work between two samples."""
        outputs = self._workload.buffers(self._case)[1].values()
        return sum(math.prod(buffer.shape) for buffer in outputs) <= judge.LARGEST_SMALL

    def _sampled(
        self,
        timed: "_Verified | kept_results.Suspect",
        how: Pass,
        is_altered: bool,
        sample: str = "",
        number: int = 0,
        mark: str = "",
    ) -> tuple[Reading, bool]:
        """Take a sample of a cell. Returns it, and whether its inputs were altered, as far as the bench and the variant can."""
        seed = int(self._rng.integers(1 << 62))
        is_altered = is_altered and self._alters
        self._bench.draw(timed.operation, seed)
        is_altered = self._bench.alter(timed.operation, part_of(Random(seed), is_altered)) and is_altered
        try:
            phase = Spent.WARM_UP if mark else Spent.SAMPLES if sample else Spent.CHECKS
            with nvtx_range(sample, number), self._watch.phase(phase, how.scope, how.cache):
                reading = self._bench.sample(timed.operation, how, seed)
            self._threads.pause(timed.cell)
            return reading, is_altered
        except Exception as error:
            if not is_altered:
                raise
            self._alter_no_more(timed.cell, error)
        return self._sampled(timed, how, False, sample, number, mark)

    def _inspect(self, timed: _Verified, number: int, inspections: Inspections) -> None:
        """Compare what a timed sample left, if it is due, or differs from what was right before. Raises Failed if it is wrong."""
        cell, is_due = timed.cell, inspections.is_due(timed.cell)
        is_known = self._known.has(cell, number)
        if (is_known and self._known.are(cell, number, self._bench.last_outputs())) or not (is_due or is_known):
            return
        with inspections.inspect(cell), self._watch.phase(Spent.CHECKS):
            agreement = self._judge.last_sample(self._workload.variant(cell.variant), number)
        if not agreement.ok:
            detail = f"right at first, and wrong in a timed sample: {agreement.detail}"
            raise Failed("wrong_result", detail, errors=agreement.columns)
        if not self._bench.gpus:
            self._known.keep(cell, number, self._bench.last_outputs())

    def _keep(self, result: RoundsResult, how: Pass) -> None:
        """Note why sampling stopped, and report what makes the samples doubtful."""
        for cell, why in result.stopped.items():
            self._stopped.setdefault(cell, []).append(why)
        process = f" in process {self._turn.process}" if self._turn.process else ""
        where = f"{self._workload.name}/{self._case.name}, {how.scope} {how.cache}{process}"
        for severity, source, text, about in result.doubts(where, how):
            diagnose(self._report, severity, source, text, about)

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
        self._report.rows("results", [result_row(cell, status, detail, error.errors if isinstance(error, Failed) else {})])
        self._bench.changed()  # it may have changed an input before it failed


def _by_bench(benches: Mapping[str, MakeBench]) -> dict[MakeBench, set[str]]:
    """Bench -> the kinds of variant that it runs, in the order of `benches`."""
    kinds: dict[MakeBench, set[str]] = {}
    for kind, make in benches.items():
        kinds.setdefault(make, set()).add(kind)
    return kinds
