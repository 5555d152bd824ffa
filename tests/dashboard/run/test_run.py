"""A run in Python: no cell disappears from its table, and its figures are those of the export."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import warpladder
from tests import hostile_run
from tests.synthetic import made_runs
from warpladder.dashboard import export
from warpladder.dashboard.core.run_data import RunError
from warpladder.dashboard.run.run import Run
from warpladder.data import store

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    made_runs.write(folder, "gpu", label="on the GPU", rounds=12)
    made_runs.write_host_run(folder, "host", label="on the host", rounds=8, workloads=("conv2d",))
    return folder


@pytest.fixture(scope="module")
def run(folder: Path) -> Run:
    return warpladder.open_run("on the GPU", data_dir=folder)


RECORDED = sorted(path.name for path in store.RECORDED.iterdir())


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("recorded", "scope"),
    [*((name, None) for name in RECORDED), *((name, "all") for name in RECORDED if name.endswith(("c3bc", "02aa", "2f0f")))],
)
def test_every_verdict_of_a_run_that_ships_is_in_its_table(recorded: str, scope: str | None) -> None:
    run = warpladder.open_run(recorded)
    table = run.table(scope=scope)
    cell = ["workload", "variant", "config", "case"]
    results = store.open_run(store.RECORDED / recorded).table("results")
    assert set(results[cell].itertuples(index=False)) == set(table[cell].itertuples(index=False))
    assert len(table.words()) == len(table)
    assert not table.duplicated([*cell, "gpus", "scope", "cache"]).any()


def test_a_cell_that_failed_has_its_verdict_and_reason(run: Run) -> None:
    table = run.table("conv2d").set_index(["variant", "config", "case"])
    for (workload, *cell), (status, detail) in made_runs.FAILED.items():
        if workload == "conv2d":
            found = table.loc[tuple(cell)]
            assert (found["status"], found["detail"], found["samples"]) == (status, detail, 0)
            assert pd.isna(found["median_ns"]) and pd.isna(found["speedup"])
    words = run.table("conv2d").words()
    assert "out_of_memory: cuDNN asked for a workspace of 96.0 GB" in set(words["status"])


def test_a_cell_that_has_no_such_time_says_which_it_has(run: Run) -> None:
    found = run.table("conv2d").query("variant == 'numpy' and case == 'n=512'")
    assert list(found["detail"]) == ["timed as operation hot alone"]
    assert found["median_ns"].isna().all()
    assert run.table("conv2d", scope="operation").query("variant == 'numpy' and case == 'n=512'")["median_ns"].notna().all()


def test_a_time_is_the_median_and_its_ratio_that_over_the_baseline(run: Run) -> None:
    found = run.table("conv2d", scope="device", cache="hot").query("case == 'n=8192'").set_index(["variant", "config"])
    samples = run.samples("conv2d").query("case == 'n=8192' and scope == 'device' and cache == 'hot' and twin == 0")
    medians = samples.groupby(["variant", "config"])["duration_ns"].median()
    timed = found[found["samples"] > 0]
    assert timed["median_ns"].to_dict() == pytest.approx(medians.to_dict())
    assert (timed["low_ns"] <= timed["median_ns"]).all() and (timed["median_ns"] <= timed["high_ns"]).all()
    assert set(timed["baseline"]) == {"v01_naive"}
    assert medians["v01_naive"].idxmin() == "block=16" and set(timed["baseline_config"]) == {"block=16"}
    assert found.loc[("v01_naive", "block=16"), "speedup"] == 1
    ratio = medians["v01_naive", "block=16"] / medians
    assert timed["speedup"].to_dict() == pytest.approx(ratio.to_dict(), rel=0.02)


def test_axes_are_columns_of_numbers(run: Run) -> None:
    wide = run.table("conv2d").query("variant == 'v01_naive'").pivot_table(index="n", columns="config", values="median_ns")
    assert list(wide.index) == [512, 1024, 2048, 4096, 8192]
    assert run.table("conv2d")["n"].dtype == "Int64"
    assert set(run.table("tensor_transpose")["perm"].dropna()) == set(made_runs.PERMUTATIONS)


def test_a_part_of_the_table_is_shown_in_words_and_other_columns_as_they_are(run: Run) -> None:
    table = run.table("conv2d")
    part = table[table["status"] != "ok"]
    assert "out_of_memory: cuDNN" in repr(part) and "out_of_memory: cuDNN" in part._repr_html_()
    assert "median_ns" in repr(table[["variant", "median_ns"]])
    assert "median_ns" in table[["variant", "median_ns"]]._repr_html_()
    assert "median_ns" not in table._repr_html_()


def _title(figure: Any) -> str:
    return str(figure.layout.title.text).replace("<br>", " ").replace("&lt;", "<").replace("&gt;", ">")


@pytest.mark.thorough
def test_the_figures_are_those_of_the_export(run: Run) -> None:
    exported = {chart.name: chart for chart in export.charts_of(run._data, topics=("comparisons",))}
    drawn = {
        "ladder-conv2d-n-8192-device-cold": run.plot.ladder("conv2d"),
        "ladder-conv2d-n-8192-device-hot": run.plot.ladder("conv2d", "n=8192", cache="hot"),
        "ladder-tensor-transpose-n-512-perm-021-device-cold": run.plot.ladder("tensor_transpose", "n=512,perm=021"),
        "sizes-conv2d-device-cold-median-time": run.plot.sizes("conv2d"),
        "sizes-conv2d-device-cold-percent-of-floor": run.plot.sizes("conv2d", "percent_of_floor"),
        "sizes-tensor-transpose-perm-021-device-cold-median-time": run.plot.sizes("tensor_transpose", series="perm=021"),
    }
    for name, figure in drawn.items():
        chart, own = exported[name], json.loads(figure.to_json())
        assert _title(figure) == chart.title
        assert own["data"] == json.loads(chart.figure.to_json())["data"]
        assert chart.note.split(";")[0] in own["layout"]["title"]["subtitle"]["text"]
        assert "width" not in own["layout"]


def test_the_roofline_is_that_of_the_export(run: Run) -> None:
    drawn = next(chart for chart in export.charts_of(run._data, topics=("roofline",)) if "conv2d" in chart.name)
    assert _title(run.plot.roofline("conv2d")) == drawn.title


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda run: run.plot.ladder(), "has 2 workloads; give workload= one of 'tensor_transpose', 'conv2d'"),
        (lambda run: run.plot.ladder("conv3d"), "no such workload; it has 'conv2d'"),
        (lambda run: run.plot.ladder("conv2d", "n=511"), "no such case; it has 'n=512'"),
        (lambda run: run.plot.ladder("conv2d", "shape=513x1027"), "no variant was timed in device cold"),
        (lambda run: run.plot.ladder("conv2d", scope="devise"), "conv2d was not timed so; timed are device cold, device hot"),
        (lambda run: run.table(scope="devise"), "nothing was timed so; timed are device cold, device hot"),
        (lambda run: run.table(cache="warm"), "cache='warm': is no state of the caches; give 'cold' or 'hot'"),
        (lambda run: run.plot.sizes("conv2d", "speed"), "no such metric; it has 'speedup'"),
        (lambda run: run.plot.sizes("tensor_transpose", series="perm=013"), "no such series"),
        (lambda run: run.plot.sizes("tensor_transpose", "gflop_per_s"), "has no gflop_per_s"),
        (lambda run: run.compare(run, scope="nothing"), "have no cell of scope nothing in common; A has the scopes "),
    ],
)
def test_what_a_run_does_not_have_is_said_in_one_line(run: Run, ask: Any, said: str) -> None:
    with pytest.raises(RunError) as raised:
        ask(run)
    assert said in str(raised.value) and "\n" not in str(raised.value)


@pytest.mark.thorough
def test_a_comparison_counts_the_cells_and_draws_them(folder: Path) -> None:
    made_runs.write(folder, "again", label="again", rounds=12, seed=99)
    found = warpladder.open_run("on the GPU", data_dir=folder).compare("again")
    assert found.a.startswith("on the GPU") and found.b.startswith("again")
    table = found.table()
    assert len(table) == len(found.comparison.changes) and set(table["verdict"]) <= {"slower", "tied", "faster", "unknown"}
    assert found.sentence in _title(found.figure())
    assert found.sentence in str(found) and found.sentence in found._repr_html_()


def test_runs_of_other_devices_are_compared_when_that_is_asked_for(run: Run, folder: Path) -> None:
    host = warpladder.open_run("on the host", data_dir=folder)
    with pytest.raises(RunError, match="give any_device=True"):
        run.compare(host)
    assert len(run.compare(host, scope="operation", any_device=True).table())


def test_the_answer_is_that_of_the_command(run: Run) -> None:
    assert "conv2d" in str(run) and "launch_error" in str(run)
    assert list(run.answer()["workload"].unique()) == ["tensor_transpose", "conv2d"]
    assert "<table " in run._repr_html_() and run.id in run._repr_html_()


def test_runs_lists_them_newest_first_and_warns_of_a_broken_one(tmp_path: Path) -> None:
    made_runs.write_host_run(tmp_path, "fine", rounds=4, workloads=("conv2d",))
    broken = made_runs.write_host_run(tmp_path, "broken", rounds=4, workloads=("conv2d",))
    (broken / "run.parquet").write_bytes(b"no parquet")
    with pytest.warns(UserWarning, match="broken"):
        assert [run.id for run in warpladder.runs(data_dir=tmp_path)] == ["fine"]
    assert {run.id for run in warpladder.runs()} >= {path.name for path in store.RECORDED.iterdir()}


def test_a_name_is_never_markup(folder: Path, tmp_path: Path) -> None:
    run = Run(store.open_run(hostile_run.write(folder / "host", tmp_path / "host")))
    shown = [run._repr_html_(), run.table()._repr_html_(), run.compare(run)._repr_html_()]
    for text in shown:
        assert "evil.example" in text
        assert "<img" not in text and "<a " not in text
