"""Judges the outputs of a case's operations: in each way that they run, with each input set that has references."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, Final

import numpy as np

from warpladder.collectors.core.bench import Bench, Failed, Operation, check_declared, writes
from warpladder.collectors.core.problem import VERIFIED, Problems
from warpladder.collectors.core.verdicts import Cell
from warpladder.collectors.core.verify import Verdict, compare, overlapping, widened_outputs
from warpladder.workloads.api import Buffers, Case, Variant, Workload

#: The part of the time of the rounds that comparisons of timed outputs may take, beside the few that are always made.
_SHARE: Final = 0.2
#: Before the first input set, and before the others.
_PREFIXES: Final = ("", "with other inputs: ")


class Judge:
    """The outputs of one case on one bench, against the references.

    Args:
        problems: the input sets, which the bench keeps.
    """

    def __init__(self, bench: Bench, workload: Workload, case: Case, problems: Problems) -> None:
        self._bench, self._workload, self._case, self._problems = bench, workload, case, problems

    def all_sets(self, variant: Variant, operation: Operation, settle: Callable[[], object]) -> Verdict:
        """The verdict on every way of running with two sets: the first that fails, else that of the plain run with the first set.

        `every_way` has the arguments.
        """
        verdicts = []
        for number in range(min(VERIFIED, self._problems.referenced)):
            # The second set finds large numbers in its outputs instead of NaN: code may write only where it finds NaN.
            verdict = self.every_way(variant, operation, number, number > 0, settle)
            if not verdict.ok:
                return verdict
            verdicts.append(verdict)
        return verdicts[0]

    def every_way(
        self, variant: Variant, operation: Operation, number: int, again: bool, settle: Callable[[], object]
    ) -> Verdict:
        """The verdict on every way in which an operation runs, with one input set.

        Args:
            number: of the set.
            again: poison the outputs with large numbers, instead of NaN.
            settle: called after each run, before its outputs are compared.

        Raises:
            Failed: an input was changed.
        """
        ways: dict[str, Callable[[], Buffers] | None] = {
            "": partial(self._bench.run, operation),
            "from end to end: ": operation.from_end_to_end,
            "in the batch that is timed hot: ": operation.from_batch,
            "in a batch whose inputs change: ": operation.from_changing_batch if len(self._problems.sets) > 1 else None,
        }
        verdicts = []
        for way, run in ways.items():
            if run is None:
                continue
            self._bench.use(number)
            self._bench.poison(again)
            outputs = run()
            settle()
            verdict = self._judged(variant, outputs, number)
            self._bench.release()
            self.refuse_changed()
            if not verdict.ok:
                return replace(verdict, detail=f"{_PREFIXES[number > 0]}{way}{verdict.detail}")
            verdicts.append(verdict)
        return verdicts[0]

    def left(self, variant: Variant, number: int) -> Verdict:
        """The verdict on what the last sample left. Raises Failed if it changed an input.

        Args:
            number: of the input set of its last execution.
        """
        verdict = self._judged(variant, self._bench.left(), number)
        self.refuse_changed()
        return verdict

    def refuse_changed(self) -> None:
        """Restore the inputs; raise Failed if one had changed."""
        if changed := self._bench.changed():
            raise Failed("wrong_result", writes(changed))

    def tolerance(self, variant: Variant) -> float:
        """The largest relative L2 error of a variant that passes."""
        return self._workload.tolerance_at(variant, self._case)

    def forget(self) -> None:
        """Free the copies of the references."""
        for problem in self._problems.sets:
            problem.forget(self._bench)

    def _judged(self, variant: Variant, outputs: Any, number: int) -> Verdict:
        declared = self._workload.buffers(self._case)[1]
        fault = check_declared(outputs, declared)
        if not fault and variant.role != "specimen" and (same := overlapping(outputs, self._bench.inputs)):
            fault = f"output {same[0]} is a view of input {same[1]}: nothing was computed"
        if fault:
            return Verdict(False, np.nan, np.nan, 0, fault)
        right = self._problems.sets[number].right(variant, self._bench)
        return compare(widened_outputs(outputs, declared), right, self.tolerance(variant))


class Inspections:
    """Chooses the timed samples whose outputs are compared.

    One of the first samples of each cell is chosen at random, and ever fewer of the later ones. All others are chosen as long as the
    comparisons take a small part of the time.

    Args:
        chance: chooses.
        within: one of so many first samples of each cell is chosen.
        clock: returns seconds; replaced in tests.
    """

    def __init__(self, chance: np.random.Generator, within: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._chance, self._within, self._clock = chance, max(within, 1), clock
        self._taken: dict[Cell, int] = {}
        self._due: dict[Cell, int] = {}
        self._started, self._spent_s = clock(), 0.0

    def is_due(self, cell: Cell) -> bool:
        """Count a sample of a cell. Returns whether its outputs are to be compared, if that is possible."""
        taken = self._taken[cell] = self._taken.get(cell, 0) + 1
        due = self._due.setdefault(cell, int(self._chance.integers(self._within)))
        return taken > due or self._spent_s <= _SHARE * (self._clock() - self._started)

    @contextmanager
    def inspect(self, cell: Cell) -> Iterator[None]:
        """Run the block that compares the outputs of a cell, count its time, and choose the cell's next sample."""
        started = self._clock()
        yield
        self._spent_s += self._clock() - started
        taken = self._taken[cell]
        if taken > self._due[cell]:
            self._due[cell] = taken + int(self._chance.integers(2 * taken + 1))
