"""Charts in print without colours: series that follow each other differ in lightness, symbol, dash or pattern."""

from itertools import pairwise
from typing import Any

import pytest

from warpladder.dashboard.core import run_data
from warpladder.dashboard.export import charts_of
from warpladder.dashboard.ui.template import LIGHTNESS_STEP, Chart, lightness, patterns
from warpladder.data import store

#: One has a trace and many configs of each variant, the other library peers and several precisions.
SHIPPED = ("20261121T200407Z-h200-generator-by-nsight-systems-ae5e", "20261127T083255Z-h200-gan-tconv-torch-compile-e3e9")


def form(series: dict[str, Any]) -> tuple[Any, ...]:
    """All of a series' look but its colour."""
    marker, mode = series.get("marker") or {}, series.get("mode") or ""
    pattern = (marker.get("pattern") if series["type"] == "bar" else series.get("fillpattern")) or {}
    symbol = (str(marker.get("symbol")), str(marker.get("size"))) if "markers" in mode else ()
    dash = (series.get("line") or {}).get("dash") if "lines" in mode else ""
    return series["type"], symbol, dash, str(pattern.get("shape") or "")


def color(series: dict[str, Any]) -> Any:
    if series.get("fill"):
        return series["fillcolor"]
    return (series.get("marker") or {}).get("color") or (series.get("line") or {}).get("color")


def alike(chart: Chart) -> list[str]:
    """Pairs of neighbours in the legend that print alike."""
    series: dict[str, dict[str, Any]] = {}
    for each in chart.figure.data:
        if each.showlegend is not False and each.name:
            series.setdefault(each.name, each.to_plotly_json())
    return [
        f"{chart.name}: {one} and {other}"
        for (one, first), (other, second) in pairwise(series.items())
        if form(first) == form(second) and abs(lightness(color(first)) - lightness(color(second))) < LIGHTNESS_STEP
    ]


@pytest.mark.thorough
@pytest.mark.parametrize("run", SHIPPED)
def test_neighbours_of_a_legend_differ_without_colours(run: str) -> None:
    data = run_data.load(store.open_run(store.RECORDED / run))
    assert [pair for chart in charts_of(data) for pair in alike(chart)] == []


def test_the_lightness_of_grey_is_that_of_cielab() -> None:
    assert lightness("#ffffff") == pytest.approx(100)
    assert lightness("#000000") == 0
    assert lightness("#777777") == pytest.approx(50, abs=0.1)


def test_areas_of_one_lightness_have_different_patterns() -> None:
    assert patterns(["#777777", "#787878", "#ffffff", "#767676"]) == ["", "/", "", "x"]
