"""The roofline of a few small cells, with every figure worked out by hand, its chart, and its page."""

from dataclasses import replace
from pathlib import Path

import pandas as pd
import plotly.graph_objects as go
import pytest

from tests.dashboard.core.test_queries_cells import BY_SIZE, COLD, frame, run_of, samples, variant, with_ceilings
from tests.dashboard.test_app import Open, open_app, words
from tests.synthetic import made_runs, made_sweeps
from warpladder.dashboard.core.cell import Timing, records
from warpladder.dashboard.core.run_data import RunData, load
from warpladder.dashboard.export import charts_of
from warpladder.dashboard.ui.template import look
from warpladder.dashboard.views.ladder.roofline import chart as charts
from warpladder.dashboard.views.ladder.roofline import query as queries
from warpladder.data import metrics, store
from warpladder.data.names import Ceiling, Phase

__all__ = ["open_app"]

pytestmark = pytest.mark.slow
#: 30 operations in 100 bytes, and 600 in 100: 0.3 and 6 operations a byte. The ridge of fp32 is at 1 GFLOP/s over 2 GB/s = 0.5.
CASES = [
    {"workload": "w", "case": "n=1", "size_rank": 0, "params": '{"n":1}', "flops": 30, "min_bytes": 100},
    {"workload": "w", "case": "n=2", "size_rank": 1, "params": '{"n":2}', "flops": 600, "min_bytes": 100},
]
PRECISIONS = {"v01_a": "fp32", "v02_b": "3xtf32", "v03_c": "tf32"}


def of_three() -> RunData:
    """Rungs of three precisions at both cases: 100 ns at the first, 1000, 500 and 200 ns at the second."""
    timed = [row for name in PRECISIONS for row in samples(name, [80, 100, 120, 90, 110, 100])]
    for name, duration_ns in zip(PRECISIONS, (1000, 500, 200), strict=True):
        timed += samples(name, [duration_ns] * 6, "n=2")
    variants = [variant(name, precision=precision, source_sha256=f"of {name}") for name, precision in PRECISIONS.items()]
    return run_of(variants, timed, cases=CASES)


def at(data: RunData, case: str) -> pd.DataFrame:
    points = queries.points(data, "w", COLD)
    return points[points["case"] == case].set_index("variant")


def test_roofs_are_the_measured_ceilings_with_a_third_of_tf32_for_3xtf32() -> None:
    roofs = queries.roofs(run_of([], []))
    assert [(roof.name, roof.kind, roof.precision, roof.value, roof.unit) for roof in roofs] == [
        ("device_copy", "memory", "", 2.0, "GB/s"),
        ("fp32_fma", "compute", "fp32", 1.0, "GFLOP/s"),
        ("tf32_mma", "compute", "tf32", 6.0, "GFLOP/s"),
        ("tf32_mma", "compute", "3xtf32", 2.0, "GFLOP/s"),
        ("bf16_wgmma", "compute", "bf16", 10.0, "GFLOP/s"),
    ]


def test_the_roof_of_tensor_cores_is_the_higher_of_two_ways_to_use_them() -> None:
    """0.009 TFLOP/s by warpgroups where mma.sync reached 0.006; the floor of 600 operations in TF32 is 600 / 9 ns."""
    data = of_three()
    by_warpgroups = frame("ceilings", [{"name": "tf32_wgmma", "device": "cuda:0", "value": 0.009}])
    data = replace(data, ceilings=pd.concat([data.ceilings, by_warpgroups], ignore_index=True))
    roofs = queries.roofs(data)
    assert [roof.name for roof in roofs[2:4]] == ["tf32_wgmma", "tf32_wgmma"]
    assert [roof.value for roof in roofs[2:4]] == pytest.approx([9, 3])
    rows = at(data, "n=2")
    assert rows["roof"].to_dict() == {"v01_a": "fp32_fma", "v02_b": "tf32_wgmma", "v03_c": "tf32_wgmma"}
    assert rows["floor_ns"].to_dict() == pytest.approx({"v01_a": 600, "v02_b": 200, "v03_c": 600 / 9})


def test_left_of_the_ridge_memory_is_the_roof_and_the_share_is_that_of_the_floor() -> None:
    row = at(of_three(), "n=1").loc["v01_a"]
    # 30 operations in 100 ns; 0.3 FLOP/byte at 2 GB/s allow 0.6 GFLOP/s.
    assert (row["flop_per_byte"], row["gflop_per_s"], row["roof_gflop_per_s"], row["roof"]) == (0.3, 0.3, 0.6, "device_copy")
    assert row["percent_of_roof"] == pytest.approx(row["percent_of_floor"]) == pytest.approx(50)
    # The interval of the median is 80 to 120 ns: 0.3 * 100 / 120 = 0.25 and 0.3 * 100 / 80 = 0.375 of 0.6.
    assert row["percent_of_roof_low"] == pytest.approx(100 * 0.25 / 0.6)
    assert row["percent_of_roof_high"] == pytest.approx(100 * 0.375 / 0.6)


def test_right_of_the_ridge_each_precision_has_a_roof_of_its_own() -> None:
    rows = at(of_three(), "n=2")
    # At 6 FLOP/byte memory would allow 12 GFLOP/s. 600 operations in 1000, 500 and 200 ns.
    assert rows["gflop_per_s"].to_dict() == {"v01_a": 0.6, "v02_b": 1.2, "v03_c": 3.0}
    assert rows["roof_gflop_per_s"].to_dict() == {"v01_a": 1.0, "v02_b": 2.0, "v03_c": 6.0}
    assert rows["roof"].to_dict() == {"v01_a": "fp32_fma", "v02_b": "tf32_mma", "v03_c": "tf32_mma"}
    assert rows["percent_of_roof"].to_dict() == pytest.approx({"v01_a": 60, "v02_b": 60, "v03_c": 50})


def test_what_has_no_place_under_the_roofs_of_one_device_is_left_out() -> None:
    variants = [variant("v01_a"), variant("copy", "ceiling"), variant("v02_b")]
    timed = samples("v01_a", [100] * 6) + samples("copy", [60] * 6) + samples("v02_b", [50] * 6, gpus=2)
    assert queries.points(run_of(variants, timed, cases=CASES), "w", COLD)["variant"].tolist() == ["v01_a"]
    assert not queries.computes(run_of(variants, timed, cases=[CASES[0] | {"flops": 0}]), "w")


def test_views_are_of_device_time_alone_cold_first() -> None:
    timed = [row for scope, cache in (("device", "hot"), ("operation", "hot"), ("device", "cold"), (Phase.H2D, "hot"))
             for row in samples("v01_a", [100] * 6, scope=scope, cache=cache)]  # fmt: skip
    assert queries.timings(run_of([variant("v01_a")], timed), "w") == (COLD, Timing("device", "hot"))


def test_a_run_without_ceilings_has_points_without_a_roof() -> None:
    data = of_three()
    bare = RunData(data.info, frame("ceilings", []), data.variants, data.cases, data.results, data.samples, data.diagnostics)
    assert queries.points(bare, "w", COLD)["roof_gflop_per_s"].isna().all()
    assert queries.roofs(bare) == []


def test_counted_points_are_of_operations_executed_and_bytes_moved_and_of_the_same_source() -> None:
    counted = pd.DataFrame(
        {
            "variant": ["v01_a", "v02_b"], "config": ["", ""], "case": ["n=1", "n=1"], "executed_flop": [90.0, 90.0],
            "dram_bytes": [150.0, 150.0], "dram_read_bytes": [75.0, 75.0], "source_sha256": ["of v01_a", "another by now"],
        }
    )  # fmt: skip
    (row,) = queries.points(of_three(), "w", COLD, counted).to_dict("records")
    # 90 operations in 100 ns and in 150 bytes: 0.9 GFLOP/s at 0.6 FLOP/byte, where fp32_fma, 1 GFLOP/s, is below memory's 1.2.
    assert (row["variant"], row["gflop_per_s"], row["flop_per_byte"]) == ("v01_a", 0.9, 0.6)
    assert (row["roof"], row["percent_of_roof"]) == ("fp32_fma", pytest.approx(90))


def test_cells_that_used_tensor_cores_have_no_counted_operations(counted: RunData) -> None:
    found = queries.executed(counted, "conv2d").set_index("variant")
    # 2 * 1000 + 500 operations; 100 bytes read and 150 written.
    assert found[["executed_flop", "dram_bytes", "dram_read_bytes"]].to_numpy().tolist() == [[2500.0, 250.0, 100.0]]
    assert found.index.tolist() == ["v03_register_tile"]


def test_the_chart_states_what_is_nearest_and_names_each_point_with_its_precision() -> None:
    data = of_three()
    points = queries.points(data, "w", COLD)
    chart = charts.roofline(points[points["case"] == "n=2"], queries.roofs(data), look(data))
    assert (
        chart.title
        == "w, n=2: v01_a · fp32 is nearest to its roof, at 60.0 % of what fp32 arithmetic allows (fp32_fma 1.00 GFLOP/s)"
    )
    names = [trace.name for trace in chart.figure.data if trace.mode == "markers"]
    assert names == ["v03_c · TF32, 50.0 %", "v02_b · 3xTF32, 60.0 %", "v01_a · fp32, 60.0 %"]
    (path,) = [trace for trace in chart.figure.data if trace.name == "the ladder, rung by rung"]
    assert list(path.y) == [0.6, 1.2, 3.0], "in the order of the rungs"
    roofs = {word.text for word in chart.figure.layout.annotations}
    assert {
        "memory 2.00 GB/s",
        "fp32_fma 1.00 GFLOP/s",
        "tf32_mma 6.00 GFLOP/s",
        "tf32_mma / 3, for 3xTF32, 2.00 GFLOP/s",
    } <= roofs
    assert "on paper" in chart.figure.layout.xaxis.title.text


def of_two_mixes() -> RunData:
    """A case that only reads, at 4 GB/s, and one whose mix is a copy's, at 2 GB/s."""
    cases = [CASES[0] | {"h2d_bytes": 100}, CASES[1] | {"h2d_bytes": 50, "d2h_bytes": 50, "flops": 30}]
    timed = samples("v01_a", [100] * 6) + samples("v01_a", [100] * 6, "n=2")
    return with_ceilings(run_of([variant("v01_a")], timed, cases=cases), {Ceiling.DEVICE_READ: 4.0})


def test_memory_has_the_roof_of_each_mix_of_reads_and_writes() -> None:
    data = of_two_mixes()
    points = queries.points(data, "w", COLD).set_index("case")
    assert points["memory_roof"].to_dict() == {"n=1": "device_read", "n=2": "device_copy"}
    # 0.3 FLOP/byte: at 4 GB/s fp32_fma, 1 GFLOP/s, is the lower roof of 1.2; at 2 GB/s memory is, with 0.6.
    assert points["roof_gflop_per_s"].to_dict() == pytest.approx({"n=1": 1.0, "n=2": 0.6})
    assert points["percent_of_roof"].to_dict() == pytest.approx({"n=1": 30, "n=2": 50})
    assert points["percent_of_roof"].to_dict() == pytest.approx(points["percent_of_floor"].to_dict())


def test_of_several_mixes_the_lowest_and_the_highest_roof_of_memory_are_drawn() -> None:
    data = of_two_mixes()
    points, roofs = queries.points(data, "w", COLD), queries.roofs(data)
    assert [(roof.name, roof.value) for roof in queries.slopes(points, roofs)] == [("device_copy", 2.0), ("device_read", 4.0)]
    chart = charts.roofline(points, roofs, look(data))
    words = {word.text for word in chart.figure.layout.annotations}
    assert {"memory 2.00 GB/s", "memory 4.00 GB/s"} <= words
    one = charts.roofline(points[points["case"] == "n=2"], roofs, look(data))
    assert not any("4.00 GB/s" in word.text for word in one.figure.layout.annotations)
    assert one.title.endswith("at 50.0 % of what memory allows (2.00 GB/s)")


def test_counted_bytes_have_the_roof_of_their_own_mix() -> None:
    data = with_ceilings(of_three(), {Ceiling.DEVICE_READ: 4.0})
    counted = pd.DataFrame(
        {"variant": ["v01_a"], "config": [""], "case": ["n=1"], "executed_flop": [9.0], "dram_bytes": [100.0],
         "dram_read_bytes": [50.0], "source_sha256": ["of v01_a"]}
    )  # fmt: skip
    for read, rate in ((50.0, 2.0), (100.0, 4.0)):
        (row,) = queries.points(data, "w", COLD, counted.assign(dram_read_bytes=read)).to_dict("records")
        assert row["memory_gb_per_s"] == pytest.approx(rate)


def test_where_the_floor_is_a_time_by_size_the_roof_stays_a_rate_and_the_note_says_so() -> None:
    words = "Those of memory are rates of large arrays; a percent of floor is of the time"
    for data, floor_ns in ((of_three(), 50), (with_ceilings(of_three(), BY_SIZE), 40)):
        points = queries.points(data, "w", COLD)
        points = points[points["case"] == "n=1"]
        row = points.set_index("variant").loc["v01_a"]
        # 0.3 FLOP/byte at 2 GB/s, as without times by size; 100 bytes take 40 ns with a cold L2.
        assert (row["memory_roof"], row["roof_gflop_per_s"], row["floor_ns"]) == ("device_copy", 0.6, pytest.approx(floor_ns))
        assert (words in charts.roofline(points, queries.roofs(data), look(data)).note) == (floor_ns == 40)


def test_above_a_roof_the_note_says_how_that_can_be() -> None:
    data = run_of([variant("v01_a")], samples("v01_a", [40] * 6), cases=CASES)
    chart = charts.roofline(queries.points(data, "w", COLD), queries.roofs(data), look(data))
    assert "Above its roof: served by a cache" in chart.note
    below = run_of([variant("v01_a")], samples("v01_a", [60] * 6), cases=CASES)
    assert "Above" not in charts.roofline(queries.points(below, "w", COLD), queries.roofs(below), look(below)).note


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that has counters of two variants of conv2d besides its samples, the one of them on tensor cores; and a host run."""
    made = tmp_path_factory.mktemp("roofline")
    path = made_runs.write(made, "gpu", rounds=8)
    values = {
        **{metrics.operation_metric(name): 0.0 for name in ("fmul", "dadd", "dmul", "dfma")},
        metrics.operation_metric("ffma"): 1000.0, metrics.operation_metric("fadd"): 500.0, metrics.TIME: 1000.0,
        metrics.DRAM_READ: 100.0, metrics.DRAM_WRITE: 150.0,
    }  # fmt: skip
    cell = {"workload": "conv2d", "config": "", "case": "n=2048", "kernel": "k", "launch_index": 0, "unit": ""}
    made_sweeps.add(path, "counters", [
        {**cell, "variant": name, "metric": metric, "value": value}
        for name, tensor in (("v03_register_tile", 0.0), ("cudnn", 40.0))
        for metric, value in {**values, metrics.TENSOR: tensor}.items()
    ])  # fmt: skip
    made_runs.write_host_run(made, "host", rounds=8)
    return made


@pytest.fixture(scope="module")
def counted(folder: Path) -> RunData:
    return load(store.open_run(folder / "gpu"))


@pytest.mark.thorough
def test_the_export_has_the_roofline_on_paper_and_by_counters(counted: RunData) -> None:
    names = [chart.name for chart in charts_of(counted, topics=["roofline"])]
    assert names == [
        "roofline-conv2d-n-8192-cold", "roofline-conv2d-n-2048-cold-counted",
    ]  # fmt: skip


def test_the_page_goes_by_counters_where_there_are_some(open_app: Open, folder: Path) -> None:
    app = open_app(folder, "roofline", run="gpu", workload="conv2d", intensity="counters")
    assert "conv2d, n=2048: v03_register_tile is nearest to its roof" in words(app)
    assert "Nsight Compute's counters of the same source, run gpu" in words(app)


@pytest.mark.thorough
def test_on_a_processor_the_roofs_are_those_of_the_host(open_app: Open, folder: Path) -> None:
    app = open_app(folder, "roofline", run="host", workload="conv2d")
    assert "conv2d, n=8192: numba_parallel is nearest to its roof" in words(app)
    assert "host_copy" in words(app) or "host_fma" in words(app)


def test_the_first_workload_that_computes_is_shown_first(open_app: Open, folder: Path) -> None:
    assert "conv2d, n=8192: v04_sliding is nearest to its roof" in words(open_app(folder, "roofline", run="gpu"))


def test_a_workload_without_arithmetic_points_to_its_percent_of_floor(open_app: Open, folder: Path) -> None:
    app = open_app(folder, "roofline", run="gpu", workload="tensor_transpose")
    assert "The cases of tensor_transpose count no operations" in words(app)


def test_the_name_of_the_best_is_not_drawn_over_a_flat_roof() -> None:
    """At 97 % of its roof, which is 2 pixels above the point."""
    data = load(store.find_run("H200 conv2d", [store.RECORDED]))
    rows = queries.points(data, "conv2d", Timing("device", "cold"))
    rows = rows[rows["case"] == "n=8192"].head(1)
    point = records(rows)[0]
    roof = replace(queries.roofs(data)[-1], value=point.gflop_per_s.value / 0.97)
    shifts = []
    for flats in ([], [roof]):
        figure = go.Figure()
        charts._name_point(figure, point, "best", (0.1, 100.0, roof.value / 500, roof.value * 2), flats, look(data))
        shifts.append(figure.layout.annotations[0].yshift)
    assert shifts[0] == 0 and abs(shifts[1] - 1) >= charts._TEXT_PX
