"""The answer of a run as text."""

import json

import pandas as pd
import pytest

from warpladder.dashboard.compare import overview
from warpladder.dashboard.core import run_data
from warpladder.dashboard.text import summary
from warpladder.dashboard.views.home.page import frame_of
from warpladder.data import store

pytestmark = pytest.mark.slow

RUN = store.RECORDED / "20261127T041834Z-h200-gan-tconv-eea1"


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    return summary.figures(run_data.load(store.open_run(RUN)))


def test_each_precision_has_a_row_with_the_best_rung_and_the_best_peer_named(rows: pd.DataFrame) -> None:
    assert rows["precision"].tolist() == ["fp32", "3xtf32", "tf32"]
    assert rows["best"].tolist() == ["v09_graph", "v12_warpgroups_3xtf32", "v13_warpgroups_tf32"]
    assert rows["peer"].tolist() == ["cudnn", "cudnn", "cudnn_nhwc_tf32"]
    assert (rows["over_peer_low"] > 1).all()
    assert (rows["over_peer_verdict"] == "faster").all()


def test_all_forms_tell_the_same(rows: pd.DataFrame) -> None:
    table = summary.render(rows, "table").splitlines()
    assert table[0].split("  ")[0] == "workload"
    assert "29.6 ms (29.5 to 29.6 ms)" in table[1]
    assert "2.64× cudnn (2.64× to 2.64×)" in table[1]
    markdown = summary.render(rows, "markdown").splitlines()
    assert len(markdown) == 2 + len(rows)
    assert all(line.count(" | ") == 8 for line in markdown)
    parsed = json.loads(summary.render(rows, "json"))
    assert [row["best_ns"] for row in parsed] == pytest.approx(rows["best_ns"].tolist())
    assert summary.render(rows, "csv").splitlines()[0].startswith("run_id,workload,precision,case")


def test_the_mean_of_several_cases_is_called_one(rows: pd.DataFrame) -> None:
    mean = rows.head(2).assign(cases=[6, 1])
    first, second = summary.texts(mean)
    assert (first[2], second[2]) == ("images=5248, mean of 6", "images=5248")
    assert [row["cases"] for row in json.loads(summary.render(mean, "json"))] == [6, 1]
    assert summary.texts(mean.assign(best=None))[0][2] == "images=5248"
    assert summary.texts(mean.assign(case=""))[0][2] == "mean of 6"  # of cases whose names have nothing in common


def test_a_tie_with_the_peer_is_said(rows: pd.DataFrame) -> None:
    tied = rows.head(1).assign(over_peer=1.0, over_peer_low=0.99, over_peer_high=1.01, over_peer_verdict="tied")
    assert "tied with cudnn (0.990× to 1.01×)" in summary.render(tied, "table")


def test_the_baseline_is_not_compared_with_itself(rows: pd.DataFrame) -> None:
    best = rows.head(1).assign(baseline=rows["best"], baseline_config=rows["best_config"], speedup=1.0)
    assert "| the baseline itself |" in summary.render(best, "markdown")
    assert "1.00×" not in summary.render(best, "table")


def test_a_run_that_compares_nothing_has_no_rows(rows: pd.DataFrame) -> None:
    none = rows.head(0)
    assert [summary.render(none, form) for form in ("table", "markdown", "csv")] == ["", "", ""]
    assert json.loads(summary.render(none, "json")) == []


@pytest.mark.thorough
def test_a_run_of_several_gpus_names_the_one_gpu_that_its_figures_are_of() -> None:
    data = run_data.load(store.find_run("4 H100: mlp_data_parallel", [store.RECORDED]))
    rows = summary.figures(data)
    assert set(rows["on"]) == {"1 GPU"}
    assert summary.texts(rows)[0][0] == "mlp_data_parallel, 1 GPU"
    lines = overview.lines(data)
    assert frame_of(lines, ["a run"] * len(lines))["run"].tolist() == ["1 GPU · a run"] * len(lines)
    alone = run_data.load(store.find_run("H200 cnn_conv", [store.RECORDED]))
    assert set(summary.figures(alone)["on"]) == {""}
