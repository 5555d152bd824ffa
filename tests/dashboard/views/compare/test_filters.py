"""The cells that the page shows, and the samples and counters of one."""

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from tests.dashboard.compare.test_changes import MINE, OTHERS, run
from tests.synthetic import made_sweeps
from warpladder.dashboard.compare.changes import Comparison, Side, compare
from warpladder.dashboard.core.run_data import load
from warpladder.dashboard.core.why import between
from warpladder.dashboard.ui.template import look
from warpladder.dashboard.views.compare import chart
from warpladder.dashboard.views.compare.query import Filter, chosen, clouds, only, pair, written
from warpladder.data import store

A, B = run("a", {}), run("b", {MINE: 1.2, OTHERS[0]: 0.8}, source="two")


@cache
def found() -> Comparison:
    return compare(Side(A), Side(B))


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("v0*", OTHERS[:9]),
        ("mine", [MINE]),
        ("V11_* v10*", [OTHERS[9], MINE]),
        ("v1?_mine,nothing", [MINE]),
        ("nothing", []),
        ("[", []),
    ],
)
def test_variants_are_filtered_by_patterns_and_parts_of_names(pattern: str, names: list[str]) -> None:
    shown = only(found(), Filter(variant=pattern))
    assert sorted(change.variant for change in shown.changes) == names
    assert shown.changed_sources == (found().changed_sources if MINE in names else ())


def test_filters_by_workload_and_caches_leave_verdicts_as_they_are() -> None:
    assert only(found(), Filter("w", "cold")).changes == found().changes
    for other in (Filter("x"), Filter(cache="hot")):
        assert only(found(), other).changes == ()


def test_a_cell_of_a_link_is_found_again() -> None:
    for change in found().changes:
        assert chosen(found().changes, written(change)) is change
    assert chosen(found().changes, "w|n=1|device|cold") is None


def test_the_clouds_are_the_samples_of_both_sides() -> None:
    worst = found().changes[0]
    samples = clouds(A, B, worst)
    assert worst.variant == MINE and samples.groupby("side")["duration_ns"].median().to_dict() == {"A": 1000, "B": 1200}
    # One sample far from all others does not stretch the axis.
    far = samples.assign(duration_ns=samples["duration_ns"].where(samples.index != 3, 1_000_000))
    drawn = chart.clouds(far, worst, look(B))
    assert max(drawn.figure.data[0].y) < 25
    assert "triangle-up" in list(drawn.figure.data[0].marker.symbol)
    assert "1 beyond the axis" in drawn.note and "B takes 1.200 (" in drawn.title


def test_the_chosen_cell_is_drawn_though_it_is_neither_slow_nor_fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chart, "MOST_ROWS", 4)
    middle = found().changes[5]
    figure = chart.forest(found(), look(B), middle).figure
    names = [name for name in figure.layout.yaxis.ticktext if name.startswith("<b>")]
    assert len(figure.layout.yaxis.ticktext) == 5 and names == [f"<b>n=1 {middle.variant}</b>"]
    assert written(middle) in [text for trace in figure.data for text in trace.customdata or ()]


@pytest.mark.slow
def test_counters_of_both_runs_come_with_the_important_ones_first(tmp_path: Path) -> None:
    data = load(store.open_run(made_sweeps.write_counted(tmp_path)))
    counters = data.counters.assign(
        value=data.counters["value"].where(data.counters["metric"] != "gpu__time_duration.sum", 5e5)
    )
    other = replace(data, counters=counters)
    cell = ("v01_simple", "")
    where = made_sweeps.WORKLOAD, made_sweeps.CASE
    explanation = between(data, other, *where, cell, cell)
    assert explanation
    found = explanation.work
    assert (found[0].name, found[0].unit, found[0].b) == ("time under the profiler", "ns", 5e5)
    assert found[0].ratio == pytest.approx(5e5 / found[0].a) != 1
    assert found[0].group == "speed of light"
    without = replace(data, counters=data.counters.iloc[:0])
    assert between(data, without, *where, cell, cell) is None


@pytest.mark.parametrize(
    ("name", "variants"),
    [
        ("H200 conv2d", ("v10_stacked_warps", "v11_shuffled_halo")),  # peers come after them
        ("H200 call_routes", ("torch_ext", "triton")),  # one rung
        ("H200, ceilings of every precision", ("v10_register_tile", "v01_copy")),
    ],
)
def test_the_last_rung_is_compared_with_the_one_before_it_at_first(name: str, variants: tuple[str, str]) -> None:
    assert pair(load(store.find_run(name, [store.RECORDED]))) == variants
