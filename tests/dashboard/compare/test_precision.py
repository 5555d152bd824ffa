"""Precisions on every page: what is compared with what, what each costs in accuracy, and that no bar lacks its label."""

from pathlib import Path

import pytest

from tests.dashboard.compare.test_within_run import gains
from tests.dashboard.core.test_queries_cells import COLD, run_of, samples, variant
from tests.dashboard.pages import rows
from tests.dashboard.test_app import Open, open_app, words
from tests.synthetic import made_runs
from warpladder.dashboard.compare import overview as overviews
from warpladder.dashboard.compare import winners
from warpladder.dashboard.core import numbers
from warpladder.dashboard.core.cells import cells
from warpladder.dashboard.core.run_data import RunData, load
from warpladder.dashboard.export import charts_of
from warpladder.dashboard.ui.template import look
from warpladder.dashboard.views.ladder import chart as ladder
from warpladder.dashboard.views.ladder import errors
from warpladder.dashboard.views.ladder import query as ladders
from warpladder.dashboard.views.reports.details import copies
from warpladder.dashboard.views.reports.details import copies as copy_charts
from warpladder.dashboard.views.sizes import chart as sizes
from warpladder.dashboard.views.sizes import query as over_sizes
from warpladder.dashboard.views.trust import query as trust
from warpladder.data import store

__all__ = ["open_app"]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("precisions")
    made_runs.write_precisions(made, "run")
    return made


@pytest.fixture(scope="module")
def data(folder: Path) -> RunData:
    return load(store.open_run(folder / "run"))


def errors_and_times(*found: tuple[str, str, int, float | None]) -> RunData:
    """A run of one case: variant, precision, nanoseconds and relative error of each."""
    variants = [variant(name, "rung" if name[0] == "v" else "peer", precision=precision) for name, precision, _, _ in found]
    timed = [row for name, _, duration_ns, _ in found for row in samples(name, [duration_ns] * 6)]
    cell = {"workload": "w", "config": "", "case": "n=1", "status": "ok"}
    return run_of(variants, timed, [{**cell, "variant": name, "rel_l2_error": error} for name, _, _, error in found])


def test_a_name_carries_its_precision_where_the_workload_has_several(data: RunData) -> None:
    variant_name = look(data).variant_name
    assert [variant_name("gemm", name) for name in ("v01_naive", "v04_split", "cublas_tf32", "numpy")] == [
        "v01_naive · fp32", "v04_split · 3xTF32", "cublas_tf32", "numpy · fp32",
    ]  # fmt: skip
    alone = errors_and_times(("v01_a", "fp32", 100, 1e-7), ("cublas", "fp32", 90, 1e-7))
    assert look(alone).variant_name("w", "v01_a") == "v01_a"


def test_the_overview_has_a_row_a_precision_beside_the_peer_that_it_replaces(data: RunData) -> None:
    found = overviews.overview(data).set_index("precision")
    assert found.index.tolist() == ["fp32", "3xtf32", "tf32"]
    assert found["best"].tolist() == ["v02_tile", "v04_split", "v05_pipelined"]
    assert found["peer"].tolist() == ["cublas", "cublas", "cublas_tf32"]
    # Shares of the fp32 rate: 0.8 and 1.6 against cuBLAS at 0.9, and 4.8 against cuBLAS in TF32 at 4.0.
    assert found["over_peer"].tolist() == pytest.approx([0.8 / 0.9, 1.6 / 0.9, 4.8 / 4.0], rel=0.02)
    # TF32 has 6 of the fp32 rate, and 3xTF32 2.
    assert found["percent_of_floor"].tolist() == pytest.approx([80, 80, 80], rel=0.02)


def test_a_tf32_peer_is_never_the_peer_of_an_fp32_rung() -> None:
    data = errors_and_times(("v01_a", "fp32", 100, 1e-7), ("lib_tf32", "tf32", 10, 1e-4))
    (row,) = overviews.overview(data).to_dict("records")
    assert row["best"] == "v01_a"
    assert row["peer"] != row["peer"], "null: there is no peer of fp32"


@pytest.mark.parametrize(
    ("rung", "library", "peer"),
    [
        *(("bf16", "tf32", "higher"), ("bf16", "fp32", "higher"), ("fp16", "tf32", "higher"), ("fp8", "bf16", "higher")),
        *(("tf32", "fp32", "higher"), ("3xtf32", "fp64", "higher"), ("bf16", "fp16", "own"), ("fp16", "bf16", "own")),
        *(("fp32", "3xtf32", "own"), ("tf32", "bf16", "own"), ("fp64", "fp32", "own"), ("int8", "fp8", "own")),
    ],
)
def test_a_rung_is_compared_with_the_fastest_peer_whose_numbers_hold_its_own(rung: str, library: str, peer: str) -> None:
    data = errors_and_times(("v01_a", rung, 100, 1e-4), ("own", rung, 1000, 1e-4), ("higher", library, 500, 1e-4))
    (row,) = overviews.overview(data).to_dict("records")
    assert row["peer"] == peer and row["over_peer"] == pytest.approx({"higher": 5, "own": 10}[peer])
    (won,) = winners.best_per_case(data, "w", COLD).to_dict("records")
    assert (won["variant"], won["runner_up"]) == ("v01_a", peer)


def test_each_gain_is_over_the_rung_before_in_the_same_precision_or_over_fp32() -> None:
    data = errors_and_times(
        ("v01_a", "fp32", 600, None), ("v02_b", "tf32", 200, None), ("v03_c", "3xtf32", 300, None), ("v04_d", "tf32", 100, None)
    )
    found = gains(data)
    assert [row.gain_over for row in found] == ["", "v01_a", "v01_a", "v02_b"]
    assert [row.gain_from for row in found] == ["", "fp32", "fp32", "tf32"]
    assert [row.gain.value for row in found[1:]] == [3.0, 2.0, 2.0]


def test_where_no_fp32_rung_is_before_the_gain_is_over_the_last_one() -> None:
    data = errors_and_times(("v01_a", "tf32", 200, None), ("v02_b", "3xtf32", 300, None))
    _, second = gains(data)
    assert second.gain_over == "v01_a"


def test_each_precision_has_a_winner_of_its_own_at_each_size(data: RunData) -> None:
    found = winners.best_per_size(data, "gemm", COLD)
    of_last = found[found["case"] == "n=4096"]
    assert of_last["compared_in"].tolist() == ["fp32", "3xtf32", "tf32"]
    assert of_last["variant"].tolist() == ["cublas", "v04_split", "v05_pipelined"]
    assert of_last["runner_up"].tolist() == ["v02_tile", "cublas", "cublas_tf32"]


def test_the_front_is_what_no_other_beats_in_both_time_and_error() -> None:
    data = errors_and_times(
        ("v01_a", "fp32", 500, 2e-7), ("v02_b", "3xtf32", 300, 3e-7), ("v03_c", "tf32", 100, 3e-4), ("v04_d", "tf32", 120, 3e-4),
        ("v05_e", "fp32", 700, 1e-6), ("lib", "fp32", 310, 1e-7), ("v06_f", "fp32", 50, None),
    )  # fmt: skip
    frame = ladders.error_and_time(data, "w", "n=1", COLD)
    assert frame["variant"].tolist() == ["v03_c", "v04_d", "v02_b", "lib", "v01_a", "v05_e"], (
        "by time; without an error left out"
    )
    assert frame.loc[frame["on_front"], "variant"].tolist() == ["v03_c", "v02_b", "lib"]


def test_the_chart_of_error_and_time_names_the_front_and_every_precision() -> None:
    data = errors_and_times(("v01_a", "fp32", 500, 2e-7), ("v02_b", "tf32", 100, 3e-4), ("v03_c", "tf32", 400, 3e-4))
    chart = errors.error_and_time(ladders.error_and_time(data, "w", "n=1", COLD), look(data))
    assert chart.title == (
        "w, n=1: v02_b · TF32 takes the least time, with a relative error of 3.0e-4; v01_a · fp32 takes 5.00× its time, with 2.0e-7"
    )
    assert [trace.name for trace in chart.figure.data] == ["front", "v02_b · TF32", "v03_c · TF32", "v01_a · fp32"]
    front = chart.figure.data[0]
    assert list(front.x[1:3]) == [100, 500] and list(front.y[1:3]) == [3e-4, 2e-7]
    assert chart.figure.layout.xaxis.type == chart.figure.layout.yaxis.type == "log"
    assert {"<b>v02_b · TF32</b>  3.0e-4", "<b>v01_a · fp32</b>  2.0e-7"} == {
        word.text for word in chart.figure.layout.annotations
    }


def test_an_exact_variant_stands_at_nought_below_the_others() -> None:
    data = errors_and_times(("v01_a", "fp32", 500, 0.0), ("v02_b", "tf32", 100, 4e-4))
    figure = errors.error_and_time(ladders.error_and_time(data, "w", "n=1", COLD), look(data)).figure
    ticks = dict(zip(figure.layout.yaxis.tickvals, figure.layout.yaxis.ticktext, strict=True))
    assert ticks[1e-4] == "0", "a quarter of 4e-4"
    assert figure.data[2].y[0] == 1e-4


def test_one_that_is_both_the_fastest_and_the_most_exact_is_the_whole_front() -> None:
    data = errors_and_times(("v01_a", "fp32", 500, 2e-7), ("v02_b", "fp32", 100, 1e-7))
    chart = errors.error_and_time(ladders.error_and_time(data, "w", "n=1", COLD), look(data))
    assert chart.title == "w, n=1: v02_b · fp32 takes the least time and is the most exact, with a relative error of 1.0e-7"


def test_the_ladder_labels_every_bar_and_has_an_error_and_a_floor_a_precision(data: RunData) -> None:
    chart = ladder.ladder(ladders.ladder(data, "gemm", "n=4096", COLD), look(data))
    labels = chart.figure.layout.yaxis.ticktext
    names = [label.partition(" <i>")[0] for label in labels]
    assert all(name.endswith(("· fp32", "· TF32", "· 3xTF32", "_tf32")) for name in names), names
    told = [word.text for word in chart.figure.layout.annotations]
    assert {"error", "3.0e-7", "2.0e-7", "3.1e-4"} <= set(told)
    # 2 * 4096^3 operations at 50, 100 and 300 TFLOP/s.
    assert {"fp32 compute floor 2.75 ms", "3xTF32 compute floor 1.37 ms", "TF32 compute floor 458 µs"} <= set(told)
    assert sum(word.endswith("×*") for word in told) == 2, "the first TF32 and the first 3xTF32 rung, over fp32"
    # (2.749 ms / 0.8 + 1.5 µs) / (2.749 ms / 4.8 + 1.5 µs) = 5.99, and the noise of the samples.
    assert "v02_tile · fp32 reaches" in chart.title and "v05_pipelined · TF32 is 5.98× as fast" in chart.title


def test_a_ladder_of_one_precision_has_no_column_of_errors_and_bare_names() -> None:
    data = errors_and_times(("v01_a", "fp32", 100, 1e-7), ("v02_b", "fp32", 50, 1e-7))
    chart = ladder.ladder(ladders.ladder(data, "w", "n=1", COLD), look(data))
    assert list(chart.figure.layout.yaxis.ticktext) == ["v01_a", "v02_b"]
    assert "error" not in [word.text for word in chart.figure.layout.annotations]
    assert "fp32, relative error 1.0e-7 against float64" in chart.figure.data[0].hovertext


def test_over_sizes_each_precision_has_its_first_and_its_floor(data: RunData) -> None:
    frame, regions = over_sizes.sizes(data, "gemm", COLD), over_sizes.regions(data, "gemm")
    chart = sizes.over_size(frame, regions, look(data))
    assert chart.title.startswith("gemm: at n=4096, first are cublas · fp32 with 3.0")
    assert "v04_split · 3xTF32 with 1.7" in chart.title and "v05_pipelined · TF32 with 57" in chart.title
    assert {"floor, fp32", "floor, 3xTF32", "floor, TF32"} <= {trace.name for trace in chart.figure.data}
    none = winners.undecided(data, "gemm", COLD)
    strip = sizes.best_strip(winners.best_per_size(data, "gemm", COLD), look(data), "gemm", "device time", none)
    assert list(strip.figure.data[0].y) == ["fp32", "3xTF32", "TF32"]
    assert "with the peers of that and of higher precisions" in strip.note


def test_an_fp32_peer_ahead_of_every_3xtf32_rung_is_named_as_what_it_is() -> None:
    data = errors_and_times(("v01_a", "3xtf32", 100, 1e-7), ("lib", "fp32", 50, 1e-7))
    chart = sizes.over_size(over_sizes.sizes(data, "w", COLD), over_sizes.regions(data, "w"), look(data))
    assert "lib · fp32 (before any in 3xTF32) with 50.0 ns" in chart.title


def test_the_largest_error_of_each_precision_stands_with_what_was_allowed(data: RunData) -> None:
    found = trust.errors(data).set_index("precision")
    assert found.loc["TF32", ["variants", "cells", "rel_l2_error", "tolerance"]].tolist() == [3, 9, 3.1e-4, 1e-3]
    # The naive rung has 4e-7; two configs of one fp32 rung, one each of another, cuBLAS, NumPy and Numba, at three sizes.
    assert found.loc["fp32", ["variants", "cells", "rel_l2_error"]].tolist() == [5, 18, 4.0e-7]
    assert (cells(data)["rel_l2_error"] > 0).all()


def test_errors_are_written_with_two_digits() -> None:
    assert [numbers.format_error(error) for error in (3.14e-4, 2e-7, 0.0, float("nan"), 1.0)] == [
        "3.1e-4",
        "2.0e-7",
        "0",
        "–",
        "1.0e0",
    ]


@pytest.mark.thorough
def test_the_export_has_error_against_time(data: RunData) -> None:
    drawn = list(charts_of(data, topics=["comparisons"]))
    charts = {chart.name: chart for chart in drawn}
    assert "error-gemm-n-4096-device-cold" in charts
    assert "rel_l2_error" in charts["error-gemm-n-4096-device-cold"].data
    assert len(charts) == len(drawn), "no name twice"


def test_speedups_over_the_host_say_its_precision_and_each_variants(data: RunData) -> None:
    chart = copy_charts.chart(copies.with_and_without_copies(data, "gemm"), look(data), "gemm")
    assert chart.title.startswith("Largest speedup over numba_serial · fp32: without the copies, ")
    assert "v05_pipelined · TF32" in {trace.name for trace in chart.figure.data}


@pytest.mark.thorough
def test_the_pages_say_each_precision_and_its_error(open_app: Open, folder: Path) -> None:
    app = open_app(folder, run="run")
    frame = rows(app)
    assert frame["Prec."].tolist() == ["fp32", "3xTF32", "TF32"]
    assert frame["Best rung"].tolist() == ["v02_tile", "v04_split", "v05_pipelined"]
    assert "v05_pipelined · TF32 takes the least time, with a relative error of 3.1e-4" in words(
        open_app(folder, "ladder", run="run", show="error")
    )
    app = open_app(folder, "trust", run="run", topic="verdicts")
    assert "Largest measured errors against float64, by precision" in words(app)


@pytest.mark.thorough
def test_the_overview_shows_below_what_other_runs_of_the_device_have_timed_and_no_workload_twice(
    open_app: Open, tmp_path: Path
) -> None:
    made_runs.write_precisions(tmp_path, "products", rounds=6)
    made_runs.write(tmp_path, "others", rounds=6)
    made_runs.write_precisions(tmp_path, "products-again", rounds=6)
    app = open_app(tmp_path, run="products")
    own, others = rows(app), rows(app, 1)
    assert own["Workload"].tolist() == ["gemm"] * 3
    assert others[["Workload", "Run"]].to_numpy().tolist() == [["conv2d", "others"], ["tensor_transpose", "others"]]
