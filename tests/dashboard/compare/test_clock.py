"""The systematic error of the clock: in the interval of a device time, and between two collectors."""

from dataclasses import replace

import pytest

from tests.dashboard.compare.test_changes import MINE, run
from tests.dashboard.core.test_queries_cells import only, run_of, samples, variant, with_ceilings
from warpladder.dashboard.compare.changes import Options, Side, compare, sentence
from warpladder.dashboard.compare.levels import medians
from warpladder.dashboard.compare.versions import compare_in_rounds, other_version, own_version
from warpladder.dashboard.compare.winners import best_per_case
from warpladder.dashboard.core.cell import Timing, records
from warpladder.dashboard.core.intervals import UNMEASURED_NS
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.views.sizes.ship import query as ship
from warpladder.data import store
from warpladder.data.limits import LEAST_EVENT_ERROR_NS
from warpladder.data.names import Ceiling


def by(data: RunData, collector: str) -> RunData:
    return replace(data, info={**data.info, "collector": collector})


@pytest.mark.parametrize(
    ("collector", "scope", "cache", "error_ns"),
    [
        ("cuda_events", "device", "cold", 300),
        ("cuda_events", "device", "hot", 0),
        ("cuda_events", "operation", "cold", 0),
        ("nsight_systems", "device", "cold", 0),
    ],
)
def test_the_interval_of_a_cold_device_time_holds_the_error_of_the_events(
    collector: str, scope: str, cache: str, error_ns: float
) -> None:
    data = by(run_of([variant("v01_a")], samples("v01_a", [2000] * 6, scope=scope, cache=cache)), collector)
    cell = only(with_ceilings(data, {Ceiling.EVENT_UNCERTAINTY: 0.3}))
    assert (cell["low_ns"], cell["median_ns"], cell["high_ns"]) == (2000 - error_ns, 2000, 2000 + error_ns)


def test_the_error_is_at_least_that_between_two_runs() -> None:
    data = by(run_of([variant("v01_a")], samples("v01_a", [2000] * 6)), "cuda_events")
    assert only(with_ceilings(data, {Ceiling.EVENT_UNCERTAINTY: 0.05}))["high_ns"] == 2000 + LEAST_EVENT_ERROR_NS


def test_a_run_that_did_not_measure_the_error_has_that_of_older_runs() -> None:
    cell = only(by(run_of([variant("v01_a")], samples("v01_a", [2000] * 6)), "cuda_events"))
    assert cell["high_ns"] == 2000 + UNMEASURED_NS and cell["low_ns"] == 2000 - UNMEASURED_NS


def test_the_intervals_of_a_trend_hold_the_error_too() -> None:
    run = store.find_run("H200 by cuda_events", [store.RECORDED])  # which did not measure the error
    found = medians(run, "conv2d")
    cold = [place for place, cell in enumerate(found.cells) if (cell.scope, cell.cache) == ("device", "cold")]
    assert cold
    median, low, high = found.figures[cold].T
    assert (high - median >= UNMEASURED_NS).all() and (median - low >= UNMEASURED_NS).all()


@pytest.mark.parametrize(
    ("collector", "cache", "ceilings", "ns", "expected"),
    [
        ("cuda_events", "cold", {Ceiling.EVENT_UNCERTAINTY: 0.1}, 2090, "tied"),
        ("cuda_events", "cold", {Ceiling.EVENT_UNCERTAINTY: 0.1}, 2110, "faster"),
        ("cuda_events", "cold", {}, 2190, "tied"),
        ("cuda_events", "cold", {}, 2210, "faster"),
        ("cuda_events", "hot", {}, 2090, "faster"),
        ("cupti", "cold", {}, 2090, "faster"),
    ],
)
def test_variants_that_the_events_cannot_tell_apart_are_tied(
    collector: str, cache: str, ceilings: dict[str, float], ns: int, expected: str
) -> None:
    """A variant of 2 us beside one that is slower."""
    rows = [row for name, each in (("v01_a", ns), ("v02_b", 2000)) for row in samples(name, [each] * 9, cache=cache)]
    data = with_ceilings(by(run_of([variant("v01_a"), variant("v02_b")], rows), collector), ceilings)
    (winner,) = records(best_per_case(data, "w", Timing("device", cache)))
    assert (winner.variant, winner.verdict) == ("v02_b", expected)
    (change,) = compare(Side(data, "v01_a"), Side(data, "v02_b")).changes
    assert change.verdict == expected
    shipped = ship.contest(data, "w", Timing("device", cache), "fp32")
    assert len({place.group for place in shipped.ranking}) == (1 if expected == "tied" else 2)


@pytest.mark.parametrize("in_rounds", [False, True])
@pytest.mark.parametrize(("ns", "expected"), [(2090, "tied"), (2110, "slower")])
def test_runs_and_versions_that_the_events_cannot_tell_apart_are_tied(in_rounds: bool, ns: int, expected: str) -> None:
    """Equal samples have no scatter, whatever the clock could tell."""
    sides = []
    for run_id, each in (("a", 2000), ("b", ns)):
        names = {"v01_a": each, **dict.fromkeys(("v02_b", "v03_c", "v04_d"), 3000)}
        rows = [row for name, time in names.items() for row in samples(name, [time] * 9)]
        data = run_of([variant(name, source_sha256=run_id if name == "v01_a" else name) for name in names], rows)
        data = with_ceilings(by(data, "cuda_events"), {Ceiling.EVENT_UNCERTAINTY: 0.1})
        sides.append(Side(replace(data, info={**data.info, "run_id": run_id})))
    found = compare(*sides, Options(in_rounds=in_rounds))
    assert {each.variant: each.verdict for each in found.changes}["v01_a"] == expected


@pytest.mark.slow
def test_device_times_of_events_and_of_a_trace_are_not_judged() -> None:
    events, trace = by(run("a", {}), "cuda_events"), by(run("b", {MINE: 2.0}, source="two"), "nsight_systems")
    found = compare(Side(events), Side(trace))
    assert sentence(found.changes) == "11 unknown"
    assert [fact.warning for fact in found.facts if fact.what == "collector"] == [
        "device times of CUDA events and of a trace are not judged against each other"
    ]


@pytest.mark.slow
def test_two_traces_are_judged() -> None:
    found = compare(Side(by(run("a", {}), "cupti")), Side(by(run("b", {MINE: 2.0}, source="two"), "nsight_systems")))
    assert [change.variant for change in found.changes if change.verdict == "slower"] == [MINE]
    assert [fact.warning for fact in found.facts if fact.what == "collector"] == [""]


@pytest.mark.parametrize(
    ("cache", "scatter_us", "verdict"), [("cold", 0.2, "tied"), ("cold", 0.05, "slower"), ("hot", 0.2, "slower")]
)
def test_two_versions_in_the_same_rounds_differ_by_what_the_events_can_tell(
    cache: str, scatter_us: float, verdict: str
) -> None:
    times = [*samples("v01_a@main", [2000] * 12, cache=cache), *samples("v01_a", [2100] * 12, cache=cache)]
    data = by(run_of([variant("v01_a@main"), variant("v01_a")], times), "cuda_events")
    data = with_ceilings(data, {Ceiling.EVENT_UNCERTAINTY: scatter_us})
    data = replace(data, info={**data.info, "command": "warpladder record bench.py --against main"})
    (change,) = compare_in_rounds(own_version(data), other_version(data)).changes
    assert change.verdict == verdict and change.ratio.value == pytest.approx(1.05)
