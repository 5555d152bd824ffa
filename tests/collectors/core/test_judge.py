"""Which input sets executions read, which samples are looked at, what passes, and which variants keep results."""

from collections.abc import Mapping, Sequence
from random import Random
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from warpladder.collectors.core import kept_results
from warpladder.collectors.core.bench import Operation, Pass, Reading, next_inputs
from warpladder.collectors.core.judge import Inspections
from warpladder.collectors.core.problem import SETS, Problems
from warpladder.collectors.core.verdicts import Cell
from warpladder.workloads.api import Buffer, Case, HostVariant, Workload

CELL = Cell("copy", "kernel", "", "n=3")
HOT = Pass("operation", "hot")


def test_an_execution_never_reads_the_set_that_is_loaded_nor_that_of_the_operation_s_last_one() -> None:
    chance = Random(0)
    assert {next_inputs(3, 0, 1, chance) for _ in range(50)} == {2}
    assert {next_inputs(3, 0, 0, chance) for _ in range(50)} == {1, 2}
    assert {next_inputs(3, None, None, chance) for _ in range(50)} == {0, 1, 2}
    assert {next_inputs(2, 0, 1, chance) for _ in range(50)} == {0}
    assert next_inputs(1, 0, 0, chance) == 0


def test_the_first_looks_are_among_the_first_samples_and_later_ones_become_rare() -> None:
    looks = []
    for seed in range(20):
        inspections = Inspections(np.random.default_rng(seed), within=6)
        due = []
        for number in range(200):
            if inspections.is_due(CELL):
                inspections.done(CELL)
                due.append(number)
        assert due[0] < 6
        looks.append(len(due))
    assert len({tuple(map(int, np.random.default_rng(seed).integers(6, size=1))) for seed in range(20)}) > 3
    assert 3 <= np.mean(looks) <= 12


def workload(make_inputs: Any, **options: Any) -> Workload:
    return Workload(
        name="copy",
        title="Copy",
        cases=(Case({"n": 3}, flops=0, min_bytes=24),),
        variants=(HostVariant("kernel", "kernel", "host"),),
        buffers=lambda case: ({"x": Buffer((3,))}, {"y": Buffer((3,))}),
        make_inputs=make_inputs,
        reference=lambda case, inputs: {"y": inputs["x"].astype(np.float64)},
        **options,
    )


def problems(make_inputs: Any) -> Problems:
    declared = workload(make_inputs)
    found = Problems(declared, declared.cases[0], [1])
    found.compute(declared.variants)
    return found


def test_two_sets_have_references_and_a_third_one_keeps_their_order_open() -> None:
    found = problems(lambda case, rng: {"x": rng.random(3, np.float32)})
    assert len(found.sets) == SETS and not found.why_one
    assert [problem.usual is not None for problem in found.sets] == [True, True, False]
    new = found.new()
    assert not any(np.array_equal(new["x"], problem.inputs["x"]) for problem in found.sets)


def test_a_workload_that_always_makes_the_same_inputs_has_one_set_and_the_reason() -> None:
    found = problems(lambda case, rng: {"x": np.ones(3, np.float32)})
    assert len(found.sets) == 1 and found.why_one.startswith("the inputs are the same at each call")


def test_inputs_that_can_be_made_once_leave_one_set_and_the_reason() -> None:
    made: list[int] = []

    def make(case: Case, rng: np.random.Generator) -> Mapping[str, np.ndarray]:
        made.append(1)
        if len(made) > 1:
            raise RuntimeError("the file was read")
        return {"x": rng.random(3, np.float32)}

    found = problems(make)
    assert found.why_one == "no other inputs could be made to verify with (test_judge.py:85: RuntimeError: the file was read)"


@pytest.mark.parametrize(
    ("flops", "inputs", "outputs", "tolerance"),
    [
        (0, 1000, 1000, 2e-6),  # element by element
        (2 * 2**36, 2 * 2**24, 2**24, 2**-24 * 64),  # a product of 4096 x 4096
        (0, 2**30, 1, 2**-24 * 2**15),  # a sum
        (10**15, 100, 1, 2e-6),  # operations that the inputs are too few for
    ],
)
def test_the_tolerance_of_fp32_grows_with_the_square_root_of_the_length_of_sums(
    flops: int, inputs: int, outputs: int, tolerance: float
) -> None:
    case = Case({"n": 1}, flops=flops, min_bytes=None)
    declared = SimpleNamespace(
        buffers=lambda case: ({"x": Buffer((inputs,))}, {"y": Buffer((outputs,))}), tolerance={"fp32": 2e-6, "tf32": 1e-4}
    )
    kernel, tensor = (HostVariant("k", "k", "host", precision=precision) for precision in ("fp32", "tf32"))  # type: ignore[arg-type]
    assert Workload.tolerance_at(declared, kernel, case) == pytest.approx(tolerance)  # type: ignore[arg-type]
    assert Workload.tolerance_at(declared, tensor, case) == 1e-4  # type: ignore[arg-type]  # of the workload's own


class Timed:
    """A bench whose executions take these times: on new inputs, and on those of its sets."""

    def __init__(self, new_ns: Sequence[int], seen_ns: Sequence[int]) -> None:
        self._new, self._seen = iter(new_ns), iter(seen_ns)

    def draw(self, operation: Operation, seed: int | None) -> None: ...

    def sample(self, operation: Operation, how: Pass, seed: int | None) -> Reading:
        return Reading(next(self._new if seed is None else self._seen))

    def release(self) -> None: ...


def is_slower(new_ns: int, now_ns: int) -> bool:
    suspect = kept_results.Suspect(CELL, Operation(lambda: None), HOT, [90_000, 100_000, 110_000])
    return kept_results.is_slower(suspect, Timed([new_ns], [now_ns]), 1)  # type: ignore[arg-type]


def test_a_cell_is_slower_with_new_inputs_if_a_sample_at_the_same_time_is_not() -> None:
    assert is_slower(200_000, 100_000)
    assert not is_slower(140_000, 100_000)  # within what executions scatter
    assert not is_slower(200_000, 190_000)  # the machine became slower


def test_the_finding_has_both_times() -> None:
    suspect = kept_results.Suspect(CELL, Operation(lambda: None), HOT, [2_000, 2_000], [900_000])
    assert suspect.text == (
        "operation hot: takes 900 us for inputs that it has not seen, and 2 us for those that it has: it keeps results"
    )
