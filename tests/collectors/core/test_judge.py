"""Which input sets executions read, which samples are looked at, what passes, and which variants keep results."""

from collections.abc import Mapping
from dataclasses import replace
from random import Random
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from warpladder.collectors.core import judge, kept_results
from warpladder.collectors.core.bench import Operation, Pass, Reading, next_inputs
from warpladder.collectors.core.cells import Cell
from warpladder.collectors.core.judge import SETS, Inspections, Problems
from warpladder.collectors.core.kept_results import PAIRS
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


def looks(seed: int, look_s: float) -> list[int]:
    """The samples that are looked at, of 200 that take a second each and whose comparison takes so long."""
    now = [0.0]
    inspections = Inspections(np.random.default_rng(seed), within=6, clock=lambda: now[0])
    found = []
    for number in range(200):
        now[0] += 1
        if inspections.is_due(CELL):
            with inspections.inspect(CELL):
                now[0] += look_s
            found.append(number)
    return found


def test_every_sample_is_looked_at_where_that_is_quick() -> None:
    assert looks(0, look_s=0.01) == list(range(200))


def test_a_slow_comparison_is_made_of_one_of_the_first_samples_at_random_and_ever_more_rarely() -> None:
    of_seeds = [looks(seed, look_s=100.0) for seed in range(20)]
    assert all(found[0] == 0 and found[1] < 12 for found in of_seeds)
    assert len(set(map(tuple, of_seeds))) > 10
    assert 3 <= np.mean([len(found) for found in of_seeds]) <= 12


def test_a_fifth_of_the_time_goes_into_comparisons_at_most() -> None:
    found = looks(0, look_s=1.0)
    assert 0.15 * 200 <= len(found) <= 0.3 * 200


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
    assert [each.usual is not None for each in found.sets] == [True, True, True]
    new = found.new()
    assert not any(np.array_equal(new["x"], each.inputs["x"]) for each in found.sets)


@pytest.mark.parametrize(("third", "same"), [(1.0002, ["y"]), (2.0, [])])
def test_outputs_that_are_the_same_for_two_sets_by_chance_are_told_by_the_third(third: float, same: list[str]) -> None:
    values = iter([1.0, 1.0001, third, 1.0003, 1.0004])
    found = problems(lambda case, rng: {"x": np.full(3, next(values), np.float32)})
    assert found.same_for_all({"y": 1e-3}) == same


def test_a_third_reference_is_left_out_where_references_take_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judge, "_QUICK_S", -1.0)
    found = problems(lambda case, rng: {"x": rng.random(3, np.float32)})
    assert found.same_for_all({"y": 1e-3}) == []
    assert [each.usual is not None for each in found.sets] == [True, True, False] and found.referenced == 2


def test_a_workload_whose_own_reference_was_not_computed_has_no_output_that_is_the_same_for_all_sets() -> None:
    declared = workload(lambda case, rng: {"x": rng.random(3, np.float32)})
    found = Problems(declared, declared.cases[0], [1])
    found.compute([replace(declared.variants[0], reference=lambda case, inputs: {"y": inputs["x"].astype(np.float64)})])
    assert len(found.sets) == SETS and found.same_for_all({"y": 1e-3}) == []


def test_references_are_compared_once_for_all_variants(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[object] = []
    monkeypatch.setattr(judge, "distances", lambda *outputs: compared.append(outputs) or {"y": 0.1})
    found = problems(lambda case, rng: {"x": rng.random(3, np.float32)})
    assert [found.same_for_all({"y": tolerance}) for tolerance in (1e-3, 2e-3)] == [[], []]
    assert len(compared) == 1


@pytest.mark.parametrize(("room", "copies"), [(24, 1), (23, 2)])
def test_references_stay_where_outputs_are_if_there_is_room(room: int, copies: int) -> None:
    placed: list[Any] = []
    bench: Any = SimpleNamespace(
        has_room=lambda size_bytes: size_bytes <= room, place=lambda right: placed.append(right) or right
    )
    found = problems(lambda case, rng: {"x": rng.random(3, np.float32)})
    for _ in range(2):
        assert found.sets[0].right(workload(None).variants[0], bench)["y"].shape == (3,)
    assert len(placed) == copies


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
    line = make.__code__.co_firstlineno + 3
    assert (
        found.why_one == f"no other inputs could be made to verify with (test_judge.py:{line}: RuntimeError: the file was read)"
    )


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
    declared.terms_at = lambda case: Workload.terms_at(declared, case)  # type: ignore[arg-type]
    kernel, tensor = (HostVariant("k", "k", "host", precision=precision) for precision in ("fp32", "tf32"))  # type: ignore[arg-type]
    assert Workload.tolerance_at(declared, kernel, case) == pytest.approx(tolerance)  # type: ignore[arg-type]
    assert Workload.tolerance_at(declared, tensor, case) == 1e-4  # type: ignore[arg-type]  # of the workload's own


class Timed:
    """A bench whose executions take these times."""

    def __init__(self, *times_ns: int) -> None:
        self._times = iter(times_ns)

    def load(self, inputs: Mapping[str, np.ndarray]) -> None: ...

    def draw(self, operation: Operation, seed: int | None) -> None: ...

    def sample(self, operation: Operation, how: Pass, seed: int | None) -> Reading:
        return Reading(next(self._times))

    def release(self) -> None: ...


def timed(new_ns: int, before_ns: int = 100_000, *after_ns: int) -> kept_results.Suspect:
    suspect = kept_results.Suspect(CELL, Operation(lambda: None), HOT, [90_000, 100_000, 110_000], is_doubted=True)
    kept_results.time_new(suspect, Timed(300_000, before_ns, new_ns, *after_ns), {}, 1)  # type: ignore[arg-type]
    assert len(suspect.new_ns) + len(suspect.misses_ns) + suspect.slow_spells == 1
    return suspect


def test_a_cell_that_is_as_fast_with_new_inputs_is_executed_on_two_sets_of_them_alone() -> None:
    suspect, bench = kept_results.Suspect(CELL, Operation(lambda: None), HOT, [100_000]), Timed(190_000, 110_000)
    while not suspect.is_settled:
        kept_results.time_new(suspect, bench, {}, 1)  # type: ignore[arg-type]
    assert len(suspect.misses_ns) == 2 and not suspect.is_doubted


def test_the_first_slower_execution_asks_for_the_comparison_and_does_not_count() -> None:
    suspect = kept_results.Suspect(CELL, Operation(lambda: None), HOT, [100_000])
    bench = Timed(300_000, *(300_000, 100_000, 300_000, 100_000) * kept_results.HITS)
    while not suspect.is_settled:
        kept_results.time_new(suspect, bench, {}, 1)  # type: ignore[arg-type]
    assert suspect.keeps_results and len(suspect.new_ns) == kept_results.HITS


def test_a_cell_is_slower_with_new_inputs_if_samples_at_the_same_time_are_not() -> None:
    assert timed(300_000, 100_000, 100_000).new_ns == [300_000]
    assert timed(190_000).misses_ns  # within what executions scatter
    assert timed(300_000, 290_000).slow_spells  # the machine may have been slower until then
    assert timed(300_000, 100_000, 290_000, 290_000).slow_spells  # the machine became slower
    assert timed(300_000, 100_000, 290_000, 100_000).new_ns == [300_000]  # another program took a part of one sample


def test_a_cell_that_keeps_results_is_found_where_other_programs_slow_some_samples() -> None:
    suspect = kept_results.Suspect(CELL, Operation(lambda: None), HOT, [100_000], is_doubted=True)
    quiet, loud = (300_000, 100_000, 300_000, 100_000), (300_000, 100_000, 300_000, 290_000, 290_000)
    bench = Timed(*quiet, *loud, *quiet, *loud, *loud, *quiet, *quiet)
    while not suspect.is_settled:
        kept_results.time_new(suspect, bench, {}, 1)  # type: ignore[arg-type]
    assert suspect.keeps_results


def test_the_time_of_other_programs_is_none_of_an_execution_that_they_interrupted() -> None:
    assert Reading(300_000, interrupted=True, processor_ns=110_000).own_ns == 110_000
    assert Reading(300_000, interrupted=True, processor_ns=600_000).own_ns == 300_000  # of two threads
    assert Reading(300_000, interrupted=False, processor_ns=110_000).own_ns == 300_000  # it waited for others that work for it
    assert Reading(300_000, interrupted=True, processor_ns=110_000).without_others().duration_ns == 110_000
    assert Reading(300_000, interrupted=True, processor_ns=110_000, waited=True).without_others().duration_ns == 300_000


def test_a_cell_is_left_alone_if_the_machine_is_slower_after_each_making_of_inputs() -> None:
    suspect = kept_results.Suspect(CELL, Operation(lambda: None), HOT, [100_000], is_doubted=True)
    while not suspect.is_settled:
        kept_results.time_new(suspect, Timed(300_000, 290_000, 300_000, 100_000), {}, 1)  # type: ignore[arg-type]
    assert not suspect.keeps_results and suspect.slow_spells == kept_results.SLOW_SPELLS


def test_a_cell_keeps_results_if_four_new_sets_are_slower_and_at_most_one_is_not() -> None:
    suspect = kept_results.Suspect(CELL, Operation(lambda: None), HOT, [1])
    suspect.new_ns += [9] * 3
    suspect.misses_ns = [1]
    assert not suspect.is_settled
    suspect.new_ns.append(9)
    assert suspect.is_settled and suspect.keeps_results
    honest = kept_results.Suspect(CELL, Operation(lambda: None), HOT, [1], misses_ns=[1, 1])
    assert honest.is_settled and not honest.keeps_results


def pairs(seen: Mapping[int, int], *new_ns: int) -> kept_results.Pairs:
    """So many pairs as there are new durations: sets that were seen, by number, with a duration each, take turns."""
    found = kept_results.Pairs(kept_results.Suspect(CELL, Operation(lambda: None), HOT, [1_000_000], misses_ns=[1_600_000] * 2))
    for number, new in enumerate(new_ns):
        found.seen_ns[number % len(seen)].append(seen[number % len(seen)] + number)
        found.new_ns.append(new)
    return found


def test_a_cell_keeps_a_part_if_new_sets_take_longer_than_the_slowest_that_it_has_seen() -> None:
    alike = {0: 1_000_000, 1: 1_010_000, 2: 1_020_000}
    assert pairs(alike, *[1_600_000] * PAIRS).keeps_results
    assert (
        "takes 1,600 us for inputs that it has not seen, and 1,010 us for those that it has"
        in pairs(alike, *[1_600_000] * PAIRS).text
    )
    assert not pairs(alike, *[1_100_000] * PAIRS).keeps_results
    assert not pairs(alike, *[1_600_000] * (PAIRS - 1)).is_settled
    assert not pairs({0: 1_000_000, 1: 1_010_000, 2: 1_500_000}, *[1_600_000] * PAIRS).keeps_results  # the numbers decide
    assert not pairs(alike, *[1_600_000, 1_000_000] * (PAIRS // 2)).keeps_results
    assert pairs(alike, *[1_000_000] * 3).is_settled and not pairs(alike, *[1_600_000] * 3).is_settled


@pytest.mark.parametrize(
    ("seen", "misses", "may"),
    [
        (1_000_000, [1_600_000, 1_700_000], True),
        (1_000_000, [1_600_000, 1_000_000], False),
        (100_000, [160_000, 170_000], False),
    ],
)
def test_more_new_sets_are_timed_where_the_first_ones_took_longer_but_for_short_calls(
    seen: int, misses: list[int], may: bool
) -> None:
    assert kept_results.Suspect(CELL, Operation(lambda: None), HOT, [seen], misses_ns=misses).may_keep_a_part == may


def test_the_finding_has_both_times() -> None:
    suspect = kept_results.Suspect(CELL, Operation(lambda: None), HOT, [2_000, 2_000], new_ns=[900_000])
    assert suspect.text == (
        "operation hot: takes 900 us for inputs that it has not seen, and 2 us for those that it has: it keeps results"
    )
