"""Rounds: shuffled, interleaved, stopped for a reason, and rid of throttled samples."""

from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from warpladder.collectors.core.bench import Pass, Reading
from warpladder.collectors.core.cells import Cell
from warpladder.collectors.core.rounds import (
    RETRIES,
    STEADY,
    Entry,
    Limits,
    RoundsResult,
    SampleFailed,
    Turn,
    relative_half_width,
    run_rounds,
)
from warpladder.data.names import Phase

A, B = (Cell("w", name, "", "n=1") for name in "ab")
HOW = Pass("device", "cold")
ENTRIES = (Entry(A), Entry(B), Entry(A, twin=1))


def run(
    take: Callable[[Entry, int], Reading],
    limits: Limits | None = None,
    clock: Callable[[], float] = lambda: 0.0,
    process: int = 0,
    first_round: int = 0,
) -> RoundsResult:
    rng, turn = np.random.default_rng(0), Turn(process, first_round, limits or Limits())
    return run_rounds(ENTRIES, HOW, take, turn, rng, gpus=1, clock=clock)


def test_every_entry_runs_once_in_every_round() -> None:
    noisy = np.random.default_rng(1)
    rows = run(lambda entry, number: Reading(int(noisy.integers(100, 1000))), Limits(max_rounds=12)).rows
    counts = Counter((row["round"], row["variant"], row["twin"]) for row in rows)
    assert counts == {(number, variant, twin): 1 for number in range(12) for variant, twin in (("a", 0), ("b", 0), ("a", 1))}


def test_the_order_is_shuffled_anew_in_every_round() -> None:
    noisy = np.random.default_rng(1)
    rows = run(lambda entry, number: Reading(int(noisy.integers(100, 1000))), Limits(max_rounds=60)).rows
    orders = defaultdict(list)
    for row in rows:
        orders[row["round"]].append((row["position"], row["variant"], row["twin"]))
    assert len({tuple(sorted(order)) for order in orders.values()}) == 6


def test_the_rounds_of_a_later_process_go_on_from_those_before() -> None:
    taken: list[int] = []

    def take(entry: Entry, number: int) -> Reading:
        taken.append(number)
        return Reading(1000)

    result = run(take, Limits(min_rounds=2, max_rounds=4), process=2, first_round=7)
    assert {(row["process"], row["round"]) for row in result.rows} == {(2, number) for number in range(7, 11)}
    assert sorted(set(taken)) == list(range(7, 11))


def test_processes_share_the_rounds_and_the_time_of_one() -> None:
    limits = Limits(target=0.005, min_rounds=6, max_rounds=200, seconds=3.0, processes=3)
    shares = [limits.of_process(process) for process in range(3)]
    assert [share.max_rounds for share in shares] == [67, 67, 66], "together no more than was asked for"
    assert {share.seconds for share in shares} == {1.0}
    assert [share.min_rounds for share in shares] == [6, 3, 3], "the first process may be the only one"
    # Three times the rounds narrow an interval by the square root of three.
    assert shares[0].target == pytest.approx(0.005 * 3**0.5)
    assert Limits().of_process(0) == Limits()
    limited = replace(limits, budget_s=60.0)
    assert [limited.of_process(process).seconds for process in range(3)] == [3.0, 1.0, 1.0], (
        "its seconds are those of one alone"
    )
    few = Limits(max_rounds=9, processes=3)
    assert [few.of_process(process).max_rounds for process in range(3)] == [6, 2, 1]
    assert [few.of_process(process).min_rounds for process in range(3)] == [6, 2, 1]
    assert [Limits(max_rounds=most, min_rounds=min(most, 6)).most_processes for most in (1, 6, 7, 8, 50)] == [1, 1, 2, 3, 45]


def test_sampling_stops_once_every_entry_has_converged() -> None:
    result = run(lambda entry, number: Reading(1000), Limits(min_rounds=6, max_rounds=100))
    assert {row["round"] for row in result.rows} == set(range(10))
    assert result.stopped[A] == "device cold: converged, n=10, ±0.00%"


def test_one_noisy_entry_keeps_all_in_the_rounds_until_the_limit() -> None:
    def take(entry: Entry, number: int) -> Reading:
        return Reading(1000 if entry.cell == A or number % 2 else 2000)

    result = run(take, Limits(max_rounds=40))
    assert max(row["round"] for row in result.rows) == 39
    assert "converged, n=40" in result.stopped[A]
    assert result.stopped[B] == "device cold: at the limit of 40 rounds, n=40, ±33.33%"


def test_the_time_limit_counts_only_after_the_least_rounds() -> None:
    result = run(lambda entry, number: Reading(1000 + number), Limits(min_rounds=8, seconds=1), clock=iter(range(100)).__next__)
    assert max(row["round"] for row in result.rows) == 7
    assert "at the limit of 1 s" in result.stopped[A] or "converged" in result.stopped[A]


def test_a_throttled_sample_is_taken_again_and_counted() -> None:
    throttled = iter([True] + [False] * 1000)
    result = run(lambda entry, number: Reading(1000, throttled=next(throttled)))
    assert result.discarded == 1
    assert not result.kept_throttled
    assert [(severity, cell) for severity, _, _, cell in result.doubts("w/n=1, device cold", HOW)] == [("info", None)]


def test_an_interrupted_sample_is_taken_again_until_a_cell_is_longer_than_a_slice_of_time() -> None:
    calls = Counter[tuple[Cell, int, int]]()

    def take(entry: Entry, number: int) -> Reading:
        calls[entry.cell, entry.twin, number] += 1
        return Reading(1000, interrupted=entry.cell == B)

    result = run(take)
    assert [calls[B, 0, number] for number in range(4)] == [RETRIES + 1] * STEADY + [1, 1]
    assert result.kept_interrupted == {B: 10} and not result.discarded


def test_a_sample_is_not_taken_again_where_that_takes_longer_than_the_rounds_may() -> None:
    calls: Counter[int] = Counter()

    def take(entry: Entry, number: int) -> Reading:
        calls[number] += 1
        return Reading(100_000_000, interrupted=True)

    run(take, Limits(max_rounds=6, seconds=0.2))
    assert calls == {number: len(ENTRIES) for number in range(6)}


def test_a_sample_that_stays_throttled_is_kept_and_counted() -> None:
    calls = Counter[tuple[Cell, int, int]]()

    def take(entry: Entry, number: int) -> Reading:
        calls[entry.cell, entry.twin, number] += 1
        return Reading(1000, throttled=entry.cell == B)

    result = run(take)
    assert [calls[B, 0, number] for number in range(4)] == [RETRIES + 1] * STEADY + [1, 1]
    assert result.kept_throttled == {B: 10}
    assert result.discarded == STEADY * RETRIES


def test_samples_that_stay_throttled_are_told_of_the_case() -> None:
    result = run(lambda entry, number: Reading(1000, throttled=entry.cell == A and number < 5))
    doubts = [(text, cell) for severity, _, text, cell in result.doubts("w/n=1, device cold", HOW) if severity == "warning"]
    assert doubts == [
        ("w/n=1, device cold: samples that stayed throttled, and were kept: 10 of 30; see throttle_reasons", None)
    ]


@pytest.mark.parametrize(("late", "flagged"), [(0, []), (1, []), (4, []), (5, [A]), (10, [A])])
def test_a_call_waits_inside_where_at_least_half_of_its_samples_were_queued_late(late: int, flagged: list[Cell]) -> None:
    result = run(lambda entry, number: Reading(1000, held=entry.cell != A or number >= late))
    doubts = list(result.doubts("w/n=1, device cold", HOW))
    counted = f"w/n=1, device cold: samples that include time of the host, for their work was queued late: {2 * late} of 30"
    assert [text for severity, _, text, _ in doubts if severity == "info"] == [counted][: bool(late)]
    assert [cell for severity, _, _, cell in doubts if severity == "warning"] == flagged


def test_a_clock_stopped_too_early_marks_the_cell() -> None:
    assert run(lambda entry, number: Reading(1000, pending=entry.cell == B)).pending == {B}


def test_phases_become_rows_of_their_own_scope() -> None:
    rows = run(lambda entry, number: Reading(1000, phases_ns={Phase.H2D: 300})).rows
    assert Counter(row["scope"] for row in rows) == {"device": 30, Phase.H2D: 30}


def test_a_failing_sample_names_its_cell() -> None:
    def take(entry: Entry, number: int) -> Reading:
        if entry.cell == B:
            raise RuntimeError("gone")
        return Reading(1)

    with pytest.raises(SampleFailed) as failure:
        run(take)
    assert failure.value.cell == B


def test_the_half_width_is_relative_to_the_median() -> None:
    # Of 9 samples the 2nd and the 8th bound the interval: (8 - 2) / 2 / 5.
    assert relative_half_width([1, 2, 3, 4, 5, 6, 7, 8, 9]) == 0.6


@pytest.mark.parametrize(
    ("passes", "seconds", "rounds"),
    [
        (1, 3.0, 400),
        (3, 2.0, 400),
        (10, 0.6, 400),
        (20, 0.4, 50),
        (100, 0.4, 50),
    ],  # a fifth of 30 s, at most 3 s and at least 0.4 s
)
def test_a_budget_is_spread_over_few_cases_and_leaves_many_as_they_are(passes: int, seconds: float, rounds: int) -> None:
    spread = Limits(max_rounds=50, seconds=0.4, budget_s=30.0).spread_over(passes, 0.2)
    assert (round(spread.seconds, 6), spread.max_rounds) == (seconds, rounds)
