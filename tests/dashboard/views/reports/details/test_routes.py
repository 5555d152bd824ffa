"""What each route from Python costs, of a run whose figures are counted by hand."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from tests.dashboard.test_app import Open, open_app
from tests.synthetic import made_runs
from warpladder.dashboard.core.run_data import RunData, load
from warpladder.dashboard.ui.template import look
from warpladder.dashboard.views.reports.details import routes
from warpladder.dashboard.views.reports.details import routes as charts
from warpladder.data import hand_over, store
from warpladder.data.store import to_json

__all__ = ["open_app"]


#: Medians in ns by variant, then by case, scope and cache.
ONE, ROW, REPORT = routes.ONE_CASE, routes.ROW_CASE, routes.REPORT_CASE
TIMES: Mapping[str, Mapping[tuple[str, str, str], int]] = {
    "v01_padded_tile": {
        (ONE, "operation", "hot"): 9000,
        (ROW, "operation", "hot"): 400_000,
        (REPORT, "operation", "hot"): 12_000,
    },
    "pybind11": {
        (ONE, "operation", "hot"): 6000,
        (ROW, "operation", "hot"): 200_000,
        (ROW, "device", "hot"): 190_000,  # 95 %: the device is busy
        (REPORT, "phase:import", "cold"): 3_000_000,
        (REPORT, "phase:compile", "cold"): 12_000_000_000,
        (REPORT, "phase:compile", "hot"): 2_000_000,
        (REPORT, "phase:load", "cold"): 4_000_000,
        (REPORT, "phase:first_call", "cold"): 5_000_000,
        (REPORT, "phase:hand_over", "cold"): 700,
    },
    "numba_cuda": {(ONE, "operation", "hot"): 40_000, (ROW, "operation", "hot"): 3_000_000, (ROW, "device", "hot"): 190_000},
}
ROLES = {"v01_padded_tile": "rung", "numpy_view": "specimen"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with three routes that were timed, one that was skipped, and a specimen."""
    data_dir = tmp_path_factory.mktemp("routes")
    sizes = {ONE: 64, ROW: 64, REPORT: 1024}
    cases = [
        made_runs.row(
            "cases",
            workload="call_routes",
            case=case,
            size_rank=0,
            min_bytes=8 * n * n,
            params=to_json({"n": n, "calls": case[-1]}),
        )
        for case, n in sizes.items()
    ]
    names = (*TIMES, "pycuda", "numpy_view")
    variants = [
        made_runs.row(
            "variants", workload="call_routes", variant=name, kind="library", role=ROLES.get(name, "peer"), precision="fp32",
            title=f"title of {name}",
        )
        for name in names
    ]  # fmt: skip
    details = {
        "pybind11": hand_over.text_of(True, "__cuda_array_interface__"),
        "numba_cuda": hand_over.text_of(False, "a copy"),
    }
    results = [
        made_runs.row(
            "results", workload="call_routes", variant=name, case=case, status="skipped" if name == "pycuda" else "ok",
            detail="needs the Python package pycuda, which is not installed" if name == "pycuda" else details.get(name, ""),
        )
        for name in names
        for case in sizes
    ]  # fmt: skip
    times = {**TIMES, "numpy_view": {(ONE, "operation", "hot"): 200, (ROW, "operation", "hot"): 200}}
    samples = [
        made_runs.row(
            "samples", workload="call_routes", variant=name, case=case, gpus=1, scope=scope, cache=cache, round=number,
            duration_ns=duration_ns + number - 4,
        )
        for name, of_variant in times.items()
        for (case, scope, cache), duration_ns in of_variant.items()
        for number in range(9)
    ]  # fmt: skip
    run = {**made_runs.run_row("routes", "routes"), "kind": "recording", "collector": "cuda_events", "source": ""}
    made_runs.write_tables(data_dir, run, {"cases": cases, "variants": variants, "results": results, "samples": samples})
    return data_dir


@pytest.fixture(scope="module")
def data(folder: Path) -> Iterator[RunData]:
    yield load(store.open_run(folder / "routes"))


@pytest.fixture(scope="module")
def frame(data: RunData) -> pd.DataFrame:
    return routes.routes(data).set_index("variant", drop=False)


@pytest.mark.slow
def test_routes_stand_from_the_fastest_in_a_row_to_those_without_samples(frame: pd.DataFrame) -> None:
    assert frame["variant"].tolist() == ["pybind11", "v01_padded_tile", "numba_cuda", "pycuda"]
    assert routes.timed(frame)["variant"].tolist() == ["pybind11", "v01_padded_tile", "numba_cuda"]


def test_a_call_in_a_row_is_a_hundredth_of_a_hundred(frame: pd.DataFrame) -> None:
    assert frame.loc["pybind11", ["call", "in_a_row", "n"]].tolist() == [6000, 2000, 9]
    assert frame.loc["numba_cuda", "in_a_row"] == 30_000
    assert frame.loc["pybind11", "in_a_row_low"] < 2000 < frame.loc["pybind11", "in_a_row_high"]
    assert frame.loc["v01_padded_tile", "report"] == 12_000 and pd.isna(frame.loc["pybind11", "report"])


def test_the_device_bounds_a_row_of_calls_where_it_is_busy_nearly_all_of_the_time(frame: pd.DataFrame) -> None:
    assert frame["device_bound"].to_dict() == {"pybind11": True, "v01_padded_tile": False, "numba_cuda": False, "pycuda": False}


def test_the_steps_of_the_first_call_are_those_with_empty_caches_and_compiling_also_that_with_a_cache(
    frame: pd.DataFrame,
) -> None:
    steps = frame.loc["pybind11", ["import", "compile", "compile_cached", "load", "first_call", "hand_over"]].tolist()
    assert steps == [3_000_000, 12_000_000_000, 2_000_000, 4_000_000, 5_000_000, 700]
    assert frame.loc["numba_cuda", ["import", "compile", "compile_cached", "load"]].isna().all()


def test_how_the_arrays_came_is_read_from_the_verdict(frame: pd.DataFrame) -> None:
    told: dict[str, Any] = {row["variant"]: (row["zero_copy"], row["interface"]) for row in frame.to_dict("records")}
    assert told["pybind11"] == (True, "__cuda_array_interface__") and told["numba_cuda"] == (False, "a copy")
    assert told["v01_padded_tile"][1] == ""


def test_a_route_that_was_skipped_says_why(frame: pd.DataFrame) -> None:
    assert frame.loc["pycuda", "why"] == "needs the Python package pycuda, which is not installed"
    assert (frame.loc[["pybind11", "numba_cuda"], "why"] == "").all()


def test_another_workload_has_no_routes(tmp_path: Path) -> None:
    assert routes.routes(load(store.open_run(made_runs.write(tmp_path, rounds=6, workloads=("conv2d",))))).empty


def test_the_chart_has_two_bars_a_route_and_names_the_fastest_and_the_slowest(frame: pd.DataFrame, data: RunData) -> None:
    chart = charts.chart(routes.timed(frame), look(data))
    assert chart.title == "In a row, a call takes 2.00 µs by pybind11 and 30.0 µs by numba_cuda"
    one, row = chart.figure.data
    assert (one.name, row.name) == ("one call", "each of 100 in a row")
    assert list(one.x) == [6.0, 9.0, 40.0] and list(row.x) == [2.0, 4.0, 30.0]
    assert "the device takes this time" in row.hovertext[0] and "the device" not in row.hovertext[2]


@pytest.mark.slow
def test_the_page_shows_the_routes_first_for_a_run_of_these_alone(open_app: Open, folder: Path) -> None:
    app: AppTest = open_app(folder, "details", run="routes")
    assert app.button_group(key="choose topic").value == "routes"
    (table,) = (shown.value for shown in app.dataframe if "arrays" in shown.value)
    assert table["title"].tolist()[0] == "title of pybind11"
    assert table["arrays"].tolist() == ["zero-copy, __cuda_array_interface__", "", "copied, a copy", ""]
    assert table["compile"].tolist()[0] == pytest.approx(12_000)


@pytest.mark.slow
def test_a_run_without_the_routes_says_how_to_record_them(open_app: Open, tmp_path: Path) -> None:
    made_runs.write(tmp_path, "gpu", rounds=6, workloads=("conv2d",))
    app = open_app(tmp_path, "details", run="gpu", topic="routes")
    assert any("warpladder record call_routes" in info.value.replace("\\", "") for info in app.info)
