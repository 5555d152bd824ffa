"""The input sets of a case with their references, and the outputs that are judged with them."""

import ctypes
import math
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property, partial
from random import Random
from typing import Any, Final

import numpy as np

from warpladder.collectors.core.agreement import Agreement, compare, wrong
from warpladder.collectors.core.bench import Bench, Ended, Failed, Operation, check_declared, classify, writes
from warpladder.collectors.core.cells import Cell
from warpladder.collectors.core.plan import copied_bytes
from warpladder.collectors.core.rounding import Rounding, nudged
from warpladder.collectors.core.stopwatch import Stopwatch
from warpladder.collectors.core.verify import (
    alterable,
    altered,
    check_inputs,
    check_reference,
    distances,
    doubts_of,
    overlapping,
    same_for_all_inputs,
    snapshot,
    widened_outputs,
)
from warpladder.data.names import Spent
from warpladder.workloads.api import Array, Buffers, Case, Compared, Variant, Workload

# -- input sets and references -------------------------------------------------------------------------------------------------

Reference = Callable[[Case, Mapping[str, np.ndarray]], Mapping[str, np.ndarray]]


#: Input sets that variants are verified with, and those that timed executions choose from: two sets could only alternate.
VERIFIED: Final = 2
SETS: Final = 3
#: Further sets whose references are computed where those of all others are alike.
_FURTHER: Final = 2
#: Sets that only timed executions use have references if the references of the first set took at most so many seconds.
_QUICK_S: Final = 1.0
#: Above so many bytes of inputs, timed executions use the referenced sets alone.
_LARGE_BYTES: Final = 1 << 30


class Problem:
    """One input set of a case, and its references. Each reference is computed once and used by all variants and
    benches. `inputs`: read-only arrays by name, made at the first access."""

    def __init__(self, workload: Workload, case: Case, rng: np.random.Generator, watch: Stopwatch | None = None) -> None:
        self._workload, self._case, self._rng = workload, case, rng
        self._watch = watch or Stopwatch(Spent.PREPARE)
        self._right: dict[Reference, Mapping[str, np.ndarray] | BaseException] = {}
        self._placed: dict[tuple[Reference, int], Mapping[str, Array]] = {}

    @cached_property
    def inputs(self) -> Mapping[str, np.ndarray]:
        with self._watch.phase(Spent.INPUTS):
            inputs = self._workload.make_inputs(self._case, self._rng)
        check_inputs(inputs, self._workload.buffers(self._case)[0])
        views = {name: array.view() for name, array in inputs.items()}
        for view in views.values():
            view.flags.writeable = False
        return views

    def case_bytes(self) -> dict[str, Any]:
        """The columns of `cases` that the inputs that were made and the outputs of the reference tell, with the case's key. The bytes that
        the case declares stand.

        Raises the exception that the function for the inputs raised.
        """
        _ = self.inputs
        inputs, outputs = self._workload.buffers(self._case)
        to_device, to_host = copied_bytes(self._case, inputs, outputs)
        key = {"workload": self._workload.name, "case": self._case.name}
        min_bytes = self._case.min_bytes
        if min_bytes is None:
            min_bytes = self._case.passes * sum(buffer.nbytes for buffer in (*inputs.values(), *outputs.values()))
        return {**key, "min_bytes": min_bytes, "h2d_bytes": to_device, "d2h_bytes": to_host}

    @property
    def references(self) -> Iterable[object]:
        """The references that were computed, each as outputs by name or as the exception that its function raised."""
        return self._right.values()

    def compute(self, variants: Iterable[Variant]) -> None:
        """Compute the references of these variants. If a reference function raises, `check` and `right` raise its exception."""
        for variant in variants:
            definition = variant.reference or self._workload.reference
            if definition not in self._right:
                self._right[definition] = self._computed(definition)

    def _computed(self, definition: Reference) -> Mapping[str, np.ndarray] | BaseException:
        try:
            inputs = self.inputs
            with self._watch.phase(Spent.REFERENCE):
                outputs = definition(self._case, inputs)
                check_reference(outputs, self._workload.buffers(self._case)[1], inputs)
        except Ended:
            raise
        except BaseException as error:  # a user's function may raise SystemExit
            return error
        return outputs

    @property
    def usual(self) -> Mapping[str, np.ndarray] | None:
        """The outputs of the workload's own reference, if it was computed and did not raise."""
        outputs = self._right.get(self._workload.reference)
        return None if isinstance(outputs, BaseException) else outputs

    def computed_usual(self) -> Mapping[str, np.ndarray] | None:
        """The same, computed where it was left out."""
        self._right.setdefault(self._workload.reference, self._computed(self._workload.reference))
        return self.usual

    def doubts(self) -> list[str]:
        """The doubts about the workload's reference, as sentences for a reader of the run."""
        outputs = self.usual
        if outputs is None:
            return []
        declared = self._workload.buffers(self._case)[1]
        tolerances = [tolerances_of(self._workload, variant, self._case) for variant in self._workload.variants]
        return doubts_of(outputs, declared, {name for name in declared if not any(each[name] for each in tolerances)})

    def check(self, variant: Variant) -> Mapping[str, np.ndarray]:
        """Return a variant's reference outputs by name, in float64 or an exact type.

        Raises the exception that the reference function raised.
        """
        self.compute([variant])
        outputs = self._right[variant.reference or self._workload.reference]
        if isinstance(outputs, BaseException):
            raise outputs
        return outputs

    def right(self, variant: Variant, bench: Bench) -> Mapping[str, Array]:
        """Return the reference outputs in the memory of the bench's outputs (host or device)."""
        key = (variant.reference or self._workload.reference, id(bench))
        if key in self._placed:
            return self._placed[key]
        right = self.check(variant)
        stays = bench.has_room(sum(array.nbytes for array in right.values()))
        placed = bench.place(right)
        if stays:
            self._placed[key] = placed
        return placed

    def rounding(self, variant: Variant) -> Rounding | None:
        """The rounding errors that the reference shows in another precision; None if there is no such reference, or it fails."""
        if self._workload.in_single is None or variant.reference is not None:
            return None
        roundoffs = self._workload.roundoffs_at(variant, self._case)

        def of_nudged() -> Rounding | None:
            growth = math.sqrt(self._workload.terms_at(self._case))  # each term rounds, as each input was moved
            return Rounding(self._in_single_of_nudged, *roundoffs, growth=growth) if self._in_single_of_nudged else None

        return Rounding(self._in_single, *roundoffs, of_nudged, inputs=self.inputs) if self._in_single else None

    @cached_property
    def _in_single(self) -> Mapping[str, np.ndarray]:
        """The outputs in another precision, computed when they are first needed: where a variant does not agree with the reference."""
        return self._computed_in_single(self.inputs)

    @cached_property
    def _in_single_of_nudged(self) -> Mapping[str, np.ndarray]:
        """The same of inputs that are off by a last digit."""
        return self._computed_in_single(nudged(self.inputs))

    def _computed_in_single(self, inputs: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
        assert self._workload.in_single
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
                return self._workload.in_single(self._case, inputs)
        except Ended:
            raise
        except BaseException:  # the user's function may not take such numbers
            return {}

    @cached_property
    def comparisons(self) -> Mapping[str, Compared]:
        """How outputs are compared that are not compared within the tolerance, by name. Raises WorkloadError."""
        of = self._workload.comparisons
        return {} if of is None else of(self._case, self.inputs)

    def forget(self, bench: Bench) -> None:
        """Free the copies made for a bench."""
        self._placed = {key: value for key, value in self._placed.items() if key[1] != id(bench)}


class Problems:
    """The input sets of a case in one process: those that timed executions choose from, and new ones.

    Args:
        seed: numbers that the generators of all sets are seeded from.

    Attributes:
        sets: the sets that executions choose from; one where the workload always makes the same inputs.
        referenced: number of sets that have references. They are the first ones.
        is_quick: whether further references take little time.
        why_one: why there is one set; empty where there are more.
    """

    def __init__(self, workload: Workload, case: Case, seed: Sequence[int], watch: Stopwatch | None = None) -> None:
        self._workload, self._case, self._seed, self._count = workload, case, seed, 0
        self._watch = watch
        self.sets = [self._make()]
        self.referenced = 1
        self.is_quick = False
        self.why_one = ""
        self._distances: list[Mapping[str, float]] = []  # of the references of other sets from that of the first

    def _make(self) -> Problem:
        self._count += 1
        return Problem(self._workload, self._case, np.random.default_rng([*self._seed, self._count]), self._watch)

    def compute(self, variants: Sequence[Variant]) -> None:
        """Make the sets, and compute the references of these variants, before any variant runs."""
        first, started = self.sets[0], time.monotonic()
        first.compute(variants)
        self.is_quick = time.monotonic() - started <= _QUICK_S
        if all(isinstance(outputs, BaseException) for outputs in first.references):
            return  # no variant can be verified; each tells why
        other = self._make()
        try:
            inputs = other.inputs
        except Ended:
            raise
        except BaseException as error:
            self.why_one = f"no other inputs could be made to verify with ({classify(error)[1]})"
            return
        if all(np.array_equal(first.inputs[name], inputs[name]) for name in inputs):
            same = "the inputs are the same at each call, so that a variant that keeps its first outputs is not found"
            self.why_one = f"{same}; make them from `rng`" if any(array.size for array in inputs.values()) else ""
            return
        self.sets.append(other)
        if sum(array.nbytes for array in inputs.values()) <= _LARGE_BYTES:
            self.sets += [self._make() for _ in range(SETS - VERIFIED)]
        self.referenced = len(self.sets) if self.is_quick else VERIFIED
        for problem in self.sets[1 : self.referenced]:
            problem.compute(variants)

    def new(self) -> Mapping[str, np.ndarray]:
        """Inputs that no variant has seen, in no recording. Raises what the function for the inputs raises."""
        return Problem(self._workload, self._case, np.random.default_rng(), self._watch).inputs

    def with_other_digits(self, inputs: Mapping[str, np.ndarray], chance: Random) -> Problem:
        """A set of its own: these inputs with other last digits."""
        problem = Problem(self._workload, self._case, np.random.default_rng(), self._watch)
        problem.inputs = altered(inputs, chance)
        return problem

    def same_for_all(self, tolerances: Mapping[str, float]) -> list[str]:
        """The outputs that are nearly the same for all sets, as a single number may be for two by chance; see
        `verify.same_for_all_inputs`."""
        first = self.sets[0].usual
        if first is None or len(self.sets) == 1:
            return []
        same = list(tolerances)
        for number in range(1, len(self.sets) + _FURTHER):
            if not same or (of_outputs := self._distances_of(number, first)) is None:
                break
            same = [name for name in same_for_all_inputs(first, of_outputs, tolerances) if name in same]
        return same

    def _distances_of(self, number: int, first: Mapping[str, np.ndarray]) -> Mapping[str, float] | None:
        """How far the references of a set are from those of the first, measured once for all variants. Sets after the last are new ones. None if
        the reference raises."""
        while len(self._distances) < number:
            problem = self.sets[number] if number < len(self.sets) else self._make()
            if (outputs := problem.usual or problem.computed_usual()) is None:
                return None
            self._distances.append(distances(first, outputs))
        return self._distances[number - 1]


# -- outputs -------------------------------------------------------------------------------------------------------------------

#: The part of the time of the rounds that comparisons of timed outputs may take, beside the few that are always made.
_SHARE: Final = 0.2
#: Outputs of so many elements are compared in about 0.2 ms, after each sample.
LARGEST_SMALL: Final = 1 << 14
#: Executions of a small case on the host that are compared in the first process, its samples among them, and seconds that further ones may take.
MANY: Final = 200
_MANY_S: Final = 0.1
#: Before the first input set, and before the others.
_PREFIXES: Final = ("", "with other inputs: ")


def tolerances_of(workload: Workload, variant: Variant, case: Case) -> dict[str, float]:
    """The largest relative L2 error of each output of a variant that passes."""
    return {name: workload.tolerance_at(variant, case, buffer.dtype) for name, buffer in workload.buffers(case)[1].items()}


class Judge:
    """The outputs of one case on one bench, against the references."""

    def __init__(self, bench: Bench, workload: Workload, case: Case, problems: Problems) -> None:
        self._bench, self._workload, self._case, self._problems = bench, workload, case, problems
        self._near: Problem | None = None

    def all_sets(self, variant: Variant, operation: Operation, settle: Callable[[], object]) -> Agreement:
        """Compare outputs of every way of running with two sets. Returns the first failure, else the agreement of the plain run
        with the first set."""
        agreements = []
        for number in range(min(VERIFIED, self._problems.referenced)):
            # The second set finds large numbers in its outputs instead of NaN: code may write only where it finds NaN.
            agreement = self.every_way(variant, operation, number, number > 0, settle)
            if not agreement.ok:
                return agreement
            agreements.append(agreement)
        return agreements[0]

    def every_way(
        self, variant: Variant, operation: Operation, number: int, again: bool, settle: Callable[[], object]
    ) -> Agreement:
        """Compare outputs of every way in which an operation runs, with one input set. Raises Failed: an input was
        changed.

        Args:
            again: poison the outputs with large numbers, instead of NaN.
            settle: called after each run, before its outputs are compared.
        """
        ways: dict[str, Callable[[], Buffers] | None] = {
            "": partial(self._bench.run, operation),
            "from end to end: ": operation.from_end_to_end,
            "in the batch that is timed hot: ": operation.from_batch,
            "in a batch whose inputs change: ": operation.from_changing_batch if len(self._problems.sets) > 1 else None,
        }
        agreements = []
        for way, run in ways.items():
            if run is None:
                continue
            self._bench.use(number)
            self._bench.poison(again)
            outputs = run()
            settle()
            agreement = self._judged(variant, outputs, self._problems.sets[number])
            self._bench.release()
            self.refuse_changed()
            if not agreement.ok:
                return replace(agreement, detail=f"{_PREFIXES[number > 0]}{way}{agreement.detail}")
            agreements.append(agreement)
        return agreements[0]

    def many(
        self, variant: Variant, operation: Operation, numbers: Iterable[int], settle: Callable[[], object]
    ) -> Agreement | None:
        """Compare outputs of many executions of a small case, for at most `_MANY_S` seconds. Returns the first failure.
        `numbers`: of the input sets, one for each execution."""
        ends = time.monotonic() + _MANY_S
        for number in numbers:
            self._bench.use(number)
            outputs = self._bench.run(operation)
            settle()
            agreement = self._judged(variant, outputs, self._problems.sets[number])
            self._bench.release()
            if not agreement.ok:
                return agreement
            if time.monotonic() > ends:
                return None
        return None

    def keeps_parts(self, variant: Variant, operation: Operation, chance: Random, settle: Callable[[], object]) -> bool:
        """Whether outputs are wrong for inputs that differ in their last digits from those that were executed before, and right for others.

        Such a variant recognises inputs by a part of their digits, and uses what it kept. Code that relies on what the function for the
        inputs gives, such as probabilities that add up to 1, is wrong for both.
        """
        seen = [problem.inputs for problem in self._problems.sets[:VERIFIED]]
        if not self._problems.is_quick or not alterable(seen[0]):
            return False
        self._near = self._near or self._problems.with_other_digits(seen[0], chance)
        is_right = partial(self._is_right, variant, operation, settle)
        if is_right(self._near):
            return False
        nearby = [self._problems.with_other_digits(inputs, chance) for inputs in seen]
        others = [self._problems.with_other_digits(self._problems.new(), chance) for _ in seen]
        return not any(map(is_right, nearby)) and all(map(is_right, others))

    def _is_right(self, variant: Variant, operation: Operation, settle: Callable[[], object], problem: Problem) -> bool:
        """Whether the outputs of an execution on a set that the bench does not keep are right."""
        problem.check(variant)
        self._bench.load(problem.inputs)
        self._bench.poison(False)
        outputs = self._bench.run(operation)
        settle()
        agreement = self._judged(variant, outputs, problem)
        self._bench.release()
        self.refuse_changed()
        return agreement.ok

    def last_sample(self, variant: Variant, number: int) -> Agreement:
        """Compare the outputs that the last sample left. Raises Failed if it changed an input. `number`: of the input
        set of its last execution."""
        agreement = self._judged(variant, self._bench.last_outputs(), self._problems.sets[number])
        self.refuse_changed()
        return agreement

    def refuse_changed(self) -> None:
        """Restore the inputs; raise Failed if one had changed."""
        if changed := self._bench.changed():
            raise Failed("wrong_result", writes(changed))

    def forget(self) -> None:
        """Free the copies of the references."""
        self._near = None
        for problem in self._problems.sets:
            problem.forget(self._bench)

    def _judged(self, variant: Variant, outputs: Any, problem: Problem) -> Agreement:
        declared = self._workload.buffers(self._case)[1]
        fault = check_declared(outputs, declared)
        if not fault and variant.role != "specimen" and (same := overlapping(outputs, self._bench.inputs)):
            fault = f"output {same[0]} is a view of input {same[1]}: nothing was computed"
        if fault:
            return wrong(fault)
        right = problem.right(variant, self._bench)
        tolerances = tolerances_of(self._workload, variant, self._case)
        outputs = snapshot(outputs)
        rounding, comparisons = partial(problem.rounding, variant), problem.comparisons if variant.reference is None else {}
        return compare(widened_outputs(outputs, declared), right, tolerances, rounding, comparisons, self._bench.on_device)


#: Bytes of all outputs that are kept.
_MOST_BYTES: Final = 1 << 28
#: A cell that was right so often with other bytes, such as one that adds in any order, is compared in this way no more.
_DIFFERENT: Final = 4
_memcmp: Final = ctypes.CDLL(None).memcmp
_memcmp.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]


class KnownOutputs:
    """Right outputs of the cells of a case in host memory, by input set."""

    def __init__(self) -> None:
        self._kept: dict[tuple[Cell, int], Mapping[str, np.ndarray]] = {}
        self._bytes = 0
        self._differed: Counter[Cell] = Counter()

    def has(self, cell: Cell, number: int) -> bool:
        """Whether the cell's outputs for an input set are known, and are the same each time."""
        return (cell, number) in self._kept and self._differed[cell] < _DIFFERENT

    def are(self, cell: Cell, number: int, outputs: Any) -> bool:
        """Whether outputs are those that are known, byte for byte. The last output is compared first, so that no thread keeps ahead."""
        known = self._kept.get((cell, number), {})
        if not isinstance(outputs, Mapping) or outputs.keys() != known.keys():
            return False
        return all(_is_equal(outputs[name], known[name]) for name in reversed(list(known)))

    def keep(self, cell: Cell, number: int, outputs: Any) -> None:
        """Keep right outputs, if they are plain arrays and there is room; or count that they differ from the known ones."""
        if (cell, number) in self._kept:
            self._differed[cell] += not self.are(cell, number, outputs)
            return
        if not isinstance(outputs, Mapping) or not all(type(each) is np.ndarray for each in outputs.values()):
            return
        size = sum(array.nbytes for array in outputs.values())
        if self._bytes + size <= _MOST_BYTES:
            self._bytes += size
            self._kept[cell, number] = {name: array.copy(order="K") for name, array in outputs.items()}


def _is_equal(array: Any, known: np.ndarray) -> bool:
    if type(array) is not np.ndarray or array.dtype != known.dtype or array.shape != known.shape:
        return False
    if array.strides != known.strides or not (array.flags.c_contiguous or array.flags.f_contiguous):
        return bool(np.array_equal(array, known))
    half = known.nbytes // 2
    places = array.ctypes.data, known.ctypes.data
    return not (_memcmp(places[0] + half, places[1] + half, known.nbytes - half) or _memcmp(*places, half))


class Inspections:
    """Chooses the timed samples whose outputs are compared.

    Of a small case all are. Else one of the first samples of each cell is chosen at random, and ever fewer of the later ones; all others
    are chosen as long as the comparisons take a small part of the time.

    Args:
        within: one of so many first samples of each cell is chosen.
    """

    def __init__(
        self,
        chance: np.random.Generator,
        within: int,
        is_small: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._chance, self._within, self._clock = chance, max(within, 1), clock
        self._is_small = is_small
        self._sample_counts: dict[Cell, int] = {}
        self._due: dict[Cell, int] = {}
        self._started, self._spent_s = clock(), 0.0

    def is_due(self, cell: Cell) -> bool:
        """Count a sample of a cell. Returns whether its outputs are to be compared, if that is possible."""
        count = self._sample_counts[cell] = self._sample_counts.get(cell, 0) + 1
        due = self._due.setdefault(cell, int(self._chance.integers(self._within)))
        return self._is_small or count > due or self._spent_s <= _SHARE * (self._clock() - self._started)

    @contextmanager
    def inspect(self, cell: Cell) -> Iterator[None]:
        """Run the block that compares the outputs of a cell, count its time, and choose the cell's next sample."""
        started = self._clock()
        yield
        self._spent_s += self._clock() - started
        count = self._sample_counts[cell]
        if count > self._due[cell]:
            self._due[cell] = count + int(self._chance.integers(2 * count + 1))
