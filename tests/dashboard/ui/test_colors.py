"""Colours and symbols of variants: the same in every run, and apart on one chart."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise
from typing import Any, get_args

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest

from tests.dashboard.core.test_queries_cells import run_of, variant
from tests.dashboard.trace.test_traces import stages_of
from warpladder.dashboard.core.run_data import RunData, load
from warpladder.dashboard.ui.template import Look, Style, Theme, free_symbol, look
from warpladder.dashboard.views.time.transfers import chart as trace_charts
from warpladder.data import store
from warpladder.workloads import registry

pytestmark = pytest.mark.slow

THEMES: tuple[Theme, ...] = get_args(Theme)
#: What eyes without one kind of cone see of linear RGB, and common ones: Machado, Oliveira and Fernandes (2009), severity 1.
EYES = (
    np.eye(3),
    np.array([[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]),
    np.array([[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]),
    np.array([[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]),
)
TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
WHITE = np.array([0.95047, 1.0, 1.08883])


def lab(color: str, eyes: Any) -> Any:
    """CIELAB of `#rrggbb` as such eyes see it."""
    channels = np.array([int(color[place : place + 2], 16) / 255 for place in (1, 3, 5)])
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    xyz = TO_XYZ @ np.clip(eyes @ linear, 0, 1) / WHITE
    x, y, z = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def distance(one: str, other: str) -> float:
    """The least distance of two colours in CIELAB, of all eyes."""
    return min(float(np.linalg.norm(lab(one, eyes) - lab(other, eyes))) for eyes in EYES)


def variants_run(rows: Iterable[dict[str, Any]]) -> RunData:
    return run_of(list(rows), [])


def rungs(*names: str) -> list[dict[str, Any]]:
    return [variant("v01_a") | {"variant": name, "rung": place} for place, name in enumerate(names)]


def declared() -> RunData:
    """All variants that the project declares, as a run would list them."""
    frames = [
        {"workload": workload.name, "variant": each.name, "role": each.role, "precision": each.precision, "kind": each.kind}
        for workload in map(registry.load, registry.names())
        for each in workload.variants
    ]
    return replace(variants_run(rungs("v01_a")), variants=pd.DataFrame(frames))


def marks(styles: Iterable[Style]) -> set[tuple[str, str]]:
    return {(style.color, style.symbol) for style in styles}


@pytest.mark.thorough
@pytest.mark.parametrize("theme", THEMES)
def test_a_variant_looks_the_same_in_every_run_that_ships(theme: Theme) -> None:
    seen: dict[tuple[str, str], set[tuple[str, str, str, str]]] = {}
    for run in store.list_runs([store.RECORDED])[0]:
        for key, style in look(load(run), theme).styles.items():
            seen.setdefault(key, set()).add((style.color, style.symbol, style.dash, style.pattern))
    assert ("gan_tconv", "v12_warpgroups_3xtf32") in seen
    assert {key: found for key, found in seen.items() if len(found) > 1} == {}


def test_a_variant_keeps_its_look_when_others_are_added_or_missing_or_in_another_order() -> None:
    every = declared()
    whole = look(every).styles
    for step in (2, 3):
        part = look(replace(every, variants=every.variants.iloc[::-step].reset_index(drop=True))).styles
        assert part == {key: replace(whole[key], precision=style.precision) for key, style in part.items()}


@pytest.mark.parametrize("theme", THEMES)
def test_no_two_variants_of_a_declared_workload_look_alike(theme: Theme) -> None:
    every = declared()
    styles = look(every, theme).styles
    for workload, of_workload in every.variants.groupby("workload"):
        assert len(marks(styles[workload, name] for name in of_workload["variant"])) == len(of_workload), workload
        others = of_workload[of_workload["role"].isin(["peer", "host"])]
        assert len({styles[workload, name].color for name in others["variant"]}) == len(others), workload


@pytest.mark.parametrize("theme", THEMES)
def test_neighbours_on_a_ladder_are_apart_to_every_kind_of_eyes(theme: Theme) -> None:
    names = [f"v{number:02d}_a" for number in range(1, 26)]
    styles = look(variants_run(rungs(*names)), theme).styles
    colors = [styles["w", name].color for name in names]
    assert min(distance(one, other) for one, other in pairwise(colors)) > 25
    assert len(marks(styles.values())) == len(names)


def test_variants_of_other_names_look_different_within_a_workload() -> None:
    """As of a user's file or an imported report: each colour once, up to twelve names."""
    names = [f"attention block {number}" for number in range(24)]
    few, many = (look(variants_run(rungs(*chosen))).styles for chosen in (names[:12], names))
    assert len({style.color for style in few.values()}) == 12
    assert len(marks(many.values())) == 24
    assert set(Counter(style.color for style in many.values()).values()) == {2}


def test_two_rungs_of_one_number_have_one_colour_and_two_symbols() -> None:
    styles = look(variants_run(rungs("v03_left", "v03_right"))).styles
    left, right = styles["w", "v03_left"], styles["w", "v03_right"]
    assert left.color == right.color
    assert left.symbol != right.symbol


def test_a_colour_with_no_free_symbol_takes_the_first() -> None:
    assert free_symbol("red", ["circle", "square"], {("red", "circle"), ("blue", "square")}) == "square"
    assert free_symbol("red", ["circle"], {("red", "circle")}) == "circle"


def test_a_variant_that_a_run_does_not_list_has_the_colour_that_it_has_in_others() -> None:
    listed = look(variants_run(rungs("v01_a", "step"))).styles
    bare = Look("light", {}, "", on_gpu=True)
    assert {name: bare.style("w", name).color for name in ("v01_a", "step")} == {
        name: listed["w", name].color for name in ("v01_a", "step")
    }
    drawn = trace_charts.stages(stages_of(("v01_a", "", "", 1.0), ("step", "", "", 2.0)), bare).figure.data
    assert [trace.line.color for trace in drawn] == [listed["w", name].color for name in ("v01_a", "step")]


def test_every_symbol_is_one_that_plotly_has() -> None:
    for symbol in {style.symbol for style in look(declared()).styles.values()}:
        go.Scatter(marker={"symbol": symbol})


def test_a_host_variant_that_every_workload_has_looks_the_same_in_each() -> None:
    styles = look(declared()).styles
    assert len({replace(style, precision="") for (_, name), style in styles.items() if name == "numba_serial"}) == 1
