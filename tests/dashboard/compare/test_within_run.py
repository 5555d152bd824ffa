"""Speedups, steps, winners and series of a few small cells, with every figure worked out by hand."""

from dataclasses import replace

import pytest

from tests.dashboard.core.test_queries_cells import COLD, STEADY, run_of, samples, variant
from warpladder.dashboard.compare import winners, within_run
from warpladder.dashboard.compare.within_run import noise_floors
from warpladder.dashboard.core.cell import Baseline, Cell, records
from warpladder.dashboard.core.cells import (
    Timing,
    baseline_variant,
    baselines,
    best_config,
    cells,
    charted_cases,
    select,
    series,
)
from warpladder.dashboard.core.run_data import RunData

FIRST = Baseline("v01_a", "", 1, "")


def gains(data: RunData) -> list[Cell]:
    best = best_config(select(cells(data), "w", "n=1", COLD))
    return [row for row in records(within_run.with_gains(data, "w", "n=1", COLD, best)) if row.role == "rung"]


def ladder_run() -> RunData:
    timed = samples("v01_a", [400, 404, 396, 400, 402, 398]) + samples("v01_a", [402, 400, 400, 398, 396, 404], twin=1)
    timed += samples("v02_b", [200, 202, 198, 200, 201, 199]) + samples("v03_c", [201, 200, 199, 200, 200, 200])
    return run_of([variant("v01_a"), variant("v02_b"), variant("v03_c")], timed)


def test_speedups_are_ratios_over_the_reference_with_a_verdict() -> None:
    found = {entry.variant: each for entry, each in within_run.speedups(ladder_run(), "w", "n=1", COLD, FIRST).items()}
    assert {name: each.verdict for name, each in found.items()} == {"v01_a": "tied", "v02_b": "faster", "v03_c": "faster"}
    ratio = found["v02_b"].ratio.estimate
    assert ratio.low <= ratio.value == 2.0 <= ratio.high


def test_a_reference_without_samples_has_no_speedups() -> None:
    assert within_run.speedups(ladder_run(), "w", "n=1", COLD, replace(FIRST, variant="v09_absent")) == {}


def test_each_step_of_the_ladder_is_the_gain_over_the_rung_before() -> None:
    found = gains(ladder_run())
    assert [row.gain_over for row in found] == ["", "v01_a", "v02_b"]
    assert [row.gain.value for row in found[1:]] == [2.0, 1.0]
    assert [row.gain_verdict for row in found] == ["", "faster", "tied"]


def test_the_baseline_against_itself_holds_one_unless_the_two_differ() -> None:
    assert noise_floors(ladder_run())["holds_one"].tolist() == [True]
    biased = run_of([variant("v01_a")], samples("v01_a", STEADY) + samples("v01_a", [110] * 6, twin=1))
    (row,) = noise_floors(biased).to_dict("records")
    assert row["ratio"] == pytest.approx(1.1) and not row["holds_one"]


def noisy_host_run() -> RunData:
    """Two rungs 10 % apart whose A/A is exact, and two host variants 10 % apart of which one's second copy is off by half."""
    timed = [
        *(samples("v01_a", [110] * 6) + samples("v01_a", [110] * 6, twin=1) + samples("v02_b", STEADY)),
        *(samples("numpy", [1100] * 6, gpus=0) + samples("numpy", [1650] * 6, gpus=0, twin=1)),
        *samples("numba", [1000] * 6, gpus=0),
    ]
    made = [variant("v01_a"), variant("v02_b"), variant("numpy", "host", "host"), variant("numba", "host", "host")]
    cases = [{"workload": "w", "case": "n=1", "size_rank": 0, "params": '{"n":1}', "flops": 1, "min_bytes": 1}]
    return run_of(made, timed, cases=cases)


@pytest.mark.parametrize(("reference", "of_rung", "of_host"), [("v01_a", "faster", "slower"), ("numpy", "faster", "tied")])
def test_the_noise_of_a_host_variant_judges_no_device_time_and_the_other_way_round(
    reference: str, of_rung: str, of_host: str
) -> None:
    compared = within_run.speedups(noisy_host_run(), "w", "n=1", COLD, replace(FIRST, variant=reference))
    found = {entry.variant: each for entry, each in compared.items()}
    assert found["v02_b"].verdict == of_rung
    assert found["numba"].verdict == of_host
    assert [found[name].noise for name in ("v02_b", "numba")] == ([1.0, 1.5] if reference == "v01_a" else [1.5, 1.5])


def test_steps_and_winners_of_the_device_are_not_tied_by_the_noise_of_the_host() -> None:
    data = noisy_host_run()
    assert [row.gain_verdict for row in gains(data)] == ["", "faster"]
    (winner,) = records(winners.best_per_size(data, "w", COLD, ("rung",)))
    assert (winner.variant, winner.tied) == ("v02_b", False)
    (winner,) = records(winners.best_per_size(data, "w", COLD, ("host",)))
    assert (winner.variant, winner.tied) == ("numba", True)


def test_the_baseline_is_the_variant_with_a_second_copy() -> None:
    assert baseline_variant(ladder_run(), "w", COLD) == "v01_a"
    assert baseline_variant(ladder_run(), "w", Timing("operation", "hot")) == ""
    assert baselines(ladder_run(), "w", Timing("operation", "hot"), frozenset(["n=1"])) == {}


def test_what_changes_with_the_size_is_the_size_and_the_rest_a_series() -> None:
    cases = [
        {"workload": "w", "case": f"n={n},perm={perm}", "size_rank": rank, "params": f'{{"n":{n},"perm":"{perm}"}}'}
        for rank, n in enumerate((8, 16)) for perm in ("01", "10")
    ]  # fmt: skip
    data = run_of(
        [], [], cases=[*cases, {"workload": "w", "case": "shape=3x5", "size_rank": None, "params": '{"shape":"3x5"}'}]
    )
    found = charted_cases(data, "w")
    assert found["size"].tolist() == ["n=8", "n=8", "n=16", "n=16"]
    assert found["size_value"].tolist() == [8, 8, 16, 16]
    assert series(data, "w") == ("perm=01", "perm=10")


def test_of_one_size_what_all_cases_share_is_the_size() -> None:
    cases = [
        {"workload": "w", "case": f"n=8,perm={perm}", "size_rank": 0, "params": f'{{"n":8,"perm":"{perm}"}}'}
        for perm in ("01", "10")
    ]
    found = charted_cases(run_of([], [], cases=cases), "w")
    assert (found["size"].tolist(), found["size_value"].tolist()) == (["n=8", "n=8"], [8, 8])
    assert found["series"].tolist() == ["perm=01", "perm=10"]
    alone = charted_cases(run_of([], [], cases=cases[:1]), "w")
    assert (alone["size"].tolist(), alone["series"].tolist()) == (["n=8,perm=01"], [""])
