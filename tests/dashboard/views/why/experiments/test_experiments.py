"""The section Experiments: bars, marks, blocks over time and the page, from figures that are counted by hand."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.dashboard.test_app import Open, open_app, words
from tests.synthetic import made_runs, made_sweeps
from warpladder.dashboard.core.run_data import RunData, load
from warpladder.dashboard.export import charts_of
from warpladder.dashboard.views.why.experiments import query
from warpladder.data import store
from warpladder.data.naming import CellName

__all__ = ["open_app"]

CELL = CellName("conv2d", "v01_naive", "block=8", "n=512")


def row(place: int, experiment: str, what: str, value: float, note: str = "") -> dict[str, Any]:
    ends = {"low": value - 1, "high": value + 1}
    about = {"place": place, "kernel": "k", "experiment": experiment, "what": what, "lines": "12", "note": note}
    return made_runs.row("experiments", **CELL._asdict(), **about, value=value, **ends)


ROWS = [
    row(0, "time", "original", 40_000),
    row(1, "without", "barriers", 39_000, "other work went too"),
    row(2, "without", "loads from global memory", 12_000),
    row(3, "delay", "barrier at line 7", 0.2),
    row(4, "delay", "loop at line 5", 0.9),
]
#: Multiprocessor 3 has two blocks at once, and then a third in the place of the first; 4 ends first.
SPANS = [(3, 0, 0, 10), (3, 1, 0, 30), (3, 2, 10, 40), (4, 3, 0, 20)]


def blocks() -> list[dict[str, Any]]:
    about = CELL._asdict()
    return [
        {**about, "multiprocessor": sm, "block": block, "start_ns": start, "end_ns": end, "stage": stage, "stage_ns": ns}
        for sm, block, start, end in SPANS
        for stage, ns in (("up to the loop", 4), ("to the end", end - start - 4))
    ]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("experiments")
    path = made_runs.write(made, "looked-into", rounds=8)
    made_sweeps.add(path, "experiments", ROWS)
    made_sweeps.add(path, "experiment_blocks", blocks())
    return made


@pytest.fixture(scope="module")
def data(folder: Path) -> RunData:
    return load(store.open_run(folder / "looked-into"))


def test_bars_begin_with_the_kernel_as_it_is_and_go_on_with_the_largest_saving(data: RunData) -> None:
    frame = query.bars(query.inside(data, CELL))
    assert frame["what"].tolist() == ["as it is", "without loads from global memory", "without barriers"]
    assert frame["ns"].tolist() == [40_000, 12_000, 39_000]
    assert query.marks(query.inside(data, CELL))["mark"].tolist() == ["loop at line 5", "barrier at line 7"]


def test_a_block_takes_the_first_place_that_is_free(data: RunData) -> None:
    found = query.blocks(data, CELL)
    assert found is not None and found.multiprocessors == [3, 4]
    assert found.spans[["block", "place"]].values.tolist() == [[0, 0], [1, 1], [2, 0], [3, 0]]
    third = found.of(3)[found.of(3)["block"] == 2]
    assert third[["stage", "from_ns", "stage_ns"]].values.tolist() == [["up to the loop", 10, 4], ["to the end", 14, 26]]
    # 3 blocks on 2 multiprocessors, until the block of the second ends.
    assert found.running().values.tolist() == [[0, 1.5], [10, 1.5], [20, 1.0], [30, 0.5], [40, 0.0]]


def test_stages_beyond_the_colours_are_drawn_as_one(data: RunData, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(query, "_MOST_STAGES", 1)
    found = query.blocks(data, CELL)
    assert found is not None and found.stages == ("to the end", query.OTHERS)


@pytest.mark.thorough
def test_the_export_has_each_chart_with_the_sentence_as_title(data: RunData) -> None:
    titles = [chart.title for chart in charts_of(data, topics=["experiments"])]
    assert [title.partition(":")[0] for title in titles] == [
        "Loads from global memory (line 12)",
        "1 µs less at the loop at line 5 saves 0.90 µs",
        "The last multiprocessor ends 20.0 ns after the first, at 40.0 ns",
    ]


@pytest.mark.slow
def test_the_page_begins_with_the_sentence(open_app: Open, folder: Path) -> None:
    app = open_app(folder, "why", run="looked-into", section="experiments", workload="conv2d")
    assert "if they were free, 12.0 µs (12.0 µs to 12.0 µs) in place of 40.0 µs" in words(app)


@pytest.mark.slow
def test_without_experiments_the_page_has_the_command_for_the_variant(open_app: Open, tmp_path: Path) -> None:
    made_runs.write(tmp_path, "plain", rounds=8)
    app = open_app(tmp_path, "why", run="plain", section="experiments", workload="conv2d", variant="v01_naive")
    assert [code.value for code in app.code] == ["warpladder why conv2d --variant v01_naive --case n=8192"]


def test_the_command_is_for_the_fastest_variant_that_the_case_has(data: RunData) -> None:
    assert query.alterable(data, "conv2d", "n=8192")[0] == "v04_sliding"
    without = replace(data, samples=data.samples[data.samples["variant"] != "v04_sliding"])
    assert query.alterable(without, "conv2d", "n=8192")[0] == "v05_cluster"
