"""The summaries of `nsys stats` and the queries on copies, on a trace whose figures are counted by hand."""

from dataclasses import replace
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.synthetic import made_runs, made_traces
from tests.synthetic.made_traces import GEMM, HOSTILE
from warpladder.dashboard.core.run_data import RunData, load
from warpladder.dashboard.core.traces import GRAPH, Traces
from warpladder.dashboard.trace.describe import describe, rounded
from warpladder.dashboard.ui.template import Look
from warpladder.dashboard.views.time.calls import chart as call_charts
from warpladder.dashboard.views.time.calls import query as trace_sums
from warpladder.dashboard.views.time.transfers import chart as charts
from warpladder.dashboard.views.time.transfers import query as transfers
from warpladder.data import store
from warpladder.data.arrays import NONE

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> RunData:
    return load(store.open_run(made_traces.write(tmp_path_factory.mktemp("runs"))))


def rows(frame: pd.DataFrame) -> list[tuple[Any, ...]]:
    return [
        tuple(None if pd.isna(value) else value for value in row)
        for row in frame.astype(object).itertuples(index=False, name=None)
    ]


def test_kernels_are_summed_by_their_demangled_name(trace: RunData) -> None:
    found = trace_sums.summary(trace, "cuda_gpu_kern_sum")
    assert list(found.columns) == [
        "Time (%)", "Total Time (ns)", "Instances", "Avg (ns)", "Med (ns)", "Min (ns)", "Max (ns)", "StdDev (ns)", "Name",
    ]  # fmt: skip
    # 4900 ns in all. gemm 1000, 2000, 600: squares 40000 + 640000 + 360000 over 2; relu 500, 400, 100.
    assert rows(found) == [
        (73.5, 3600, 3, 1200.0, 1000.0, 600, 2000, 721.1, GEMM),
        (20.4, 1000, 3, 333.3, 400.0, 100, 500, 208.2, "relu"),
        (6.1, 300, 1, 300.0, 300.0, 300, 300, 0.0, HOSTILE),
    ]


def test_api_calls_are_summed_by_function(trace: RunData) -> None:
    found = trace_sums.summary(trace, "cuda_api_sum")
    assert list(found.columns)[2] == "Num Calls"
    assert rows(found) == [
        (71.4, 4000, 1, 4000.0, 4000.0, 4000, 4000, 0.0, "cudaDeviceSynchronize"),
        (12.5, 700, 6, 116.7, 100.0, 100, 200, 40.8, "cudaLaunchKernel"),
        (12.5, 700, 2, 350.0, 350.0, 300, 400, 70.7, "cudaMemcpy"),
        (1.8, 100, 1, 100.0, 100.0, 100, 100, 0.0, "cudaMemcpyAsync"),
        (1.8, 100, 1, 100.0, 100.0, 100, 100, 0.0, "cudaMemsetAsync"),
    ]


def test_memory_operations_are_summed_by_time_and_by_size(trace: RunData) -> None:
    assert rows(trace_sums.summary(trace, "cuda_gpu_mem_time_sum")) == [
        (48.8, 2000, 1, 2000.0, 2000.0, 2000, 2000, 0.0, "[CUDA memcpy Device-to-Host]"),
        (48.8, 2000, 2, 1000.0, 1000.0, 1000, 1000, 0.0, "[CUDA memcpy Host-to-Device]"),
        (2.4, 100, 1, 100.0, 100.0, 100, 100, 0.0, "[CUDA memset]"),
    ]
    found = trace_sums.summary(trace, "cuda_gpu_mem_size_sum")
    assert list(found.columns) == [
        "Total (MB)", "Count", "Avg (MB)", "Med (MB)", "Min (MB)", "Max (MB)", "StdDev (MB)", "Operation",
    ]  # fmt: skip
    assert rows(found) == [
        (2.0, 1, 2.0, 2.0, 2.0, 2.0, 0.0, "[CUDA memcpy Device-to-Host]"),
        (1.5, 2, 0.75, 0.75, 0.5, 1.0, 0.354, "[CUDA memcpy Host-to-Device]"),
        (0.004, 1, 0.004, 0.004, 0.004, 0.004, 0.0, "[CUDA memset]"),
    ]


def test_ranges_are_summed_by_domain_and_text_and_an_open_one_lasts_to_the_end(trace: RunData) -> None:
    # 30000 ns in all; the open range starts at 2000 and the last one ends at 10000.
    assert rows(trace_sums.summary(trace, "nvtx_sum")) == [
        (36.7, 11000, 3, 3666.7, 3000.0, 2500, 5500, 1607.3, "PushPop", "step"),
        (33.3, 10000, 1, 10000.0, 10000.0, 10000, 10000, 0.0, "PushPop", "train"),
        (26.7, 8000, 1, 8000.0, 8000.0, 8000, 8000, 0.0, "PushPop", "open"),
        (3.0, 900, 1, 900.0, 900.0, 900, 900, 0.0, "PushPop", "lib:inner"),
        (0.3, 100, 1, 100.0, 100.0, 100, 100, 0.0, "PushPop", "idle"),
    ]


def test_ranges_are_projected_to_their_device_work_with_launches(trace: RunData) -> None:
    found = trace_sums.summary(trace, "nvtx_gpu_proj_sum")
    assert list(found.columns) == [
        "Range", "Style", "Total Proj Time (ns)", "Total Range Time (ns)", "Range Instances", "Proj Avg (ns)", "Proj Med (ns)", "Proj Min (ns)",
        "Proj Max (ns)", "Proj StdDev (ns)", "Total GPU Ops", "Avg GPU Ops",
    ]  # fmt: skip
    assert rows(found) == [
        ("train", "PushPop", 8800, 10000, 1, 8800.0, 8800.0, 8800, 8800, 0.0, 5, 5.0),
        ("step", "PushPop", 6100, 11000, 3, 2033.3, 1500.0, 1400, 3200, 1011.6, 6, 2.0),
        ("open", "PushPop", 2200, 8000, 1, 2200.0, 2200.0, 2200, 2200, 0.0, 2, 2.0),
        ("lib:inner", "PushPop", 1000, 900, 1, 1000.0, 1000.0, 1000, 1000, 0.0, 1, 1.0),
    ]


def test_kernels_belong_to_every_range_open_at_their_launch(trace: RunData) -> None:
    found = trace_sums.summary(trace, "nvtx_kern_sum")
    assert list(found.columns) == [
        "NVTX Range", "Style", "PID", "TID", "NVTX Inst", "Kern Inst", "Total Time (ns)", "Avg (ns)", "Med (ns)", "Min (ns)", "Max (ns)",
        "StdDev (ns)", "Kernel Name",
    ]  # fmt: skip
    assert rows(found) == [
        (None, None, None, None, 0, 1, 300, 300.0, 300.0, 300, 300, 0.0, HOSTILE),
        (None, None, 100, 101, 0, 1, 100, 100.0, 100.0, 100, 100, 0.0, "relu"),
        ("lib:inner", "PushPop", 100, 101, 1, 1, 1000, 1000.0, 1000.0, 1000, 1000, 0.0, GEMM),
        ("open", "PushPop", 200, 201, 1, 1, 600, 600.0, 600.0, 600, 600, 0.0, GEMM),
        ("step", "PushPop", 100, 101, 2, 2, 3000, 1500.0, 1500.0, 1000, 2000, 707.1, GEMM),
        ("step", "PushPop", 100, 101, 1, 1, 500, 500.0, 500.0, 500, 500, 0.0, "relu"),
        ("step", "PushPop", 100, 102, 1, 1, 400, 400.0, 400.0, 400, 400, 0.0, "relu"),
        ("train", "PushPop", 100, 101, 1, 2, 3000, 1500.0, 1500.0, 1000, 2000, 707.1, GEMM),
        ("train", "PushPop", 100, 101, 1, 1, 500, 500.0, 500.0, 500, 500, 0.0, "relu"),
    ]


def test_a_kernel_in_two_nested_ranges_of_one_name_is_one_instance_whose_time_counts_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    renamed = [(*row[:6], "step", *row[7:]) if row[0] == 1 else row for row in made_traces.RANGES]
    monkeypatch.setattr(made_traces, "RANGES", renamed)
    found = trace_sums.summary(load(store.open_run(made_traces.write(tmp_path))), "nvtx_kern_sum")
    gemm = found[(found["NVTX Range"] == "step") & (found["TID"] == 101) & (found["Kernel Name"] == GEMM)]
    # Ranges 2 and 4 and the one around both; kernels of 1000 and 2000 ns, each in two of them.
    assert gemm[["NVTX Inst", "Kern Inst", "Total Time (ns)"]].to_numpy().tolist() == [[3, 2, 6000]]


def test_graphs_traced_as_a_whole_stand_in_a_summary_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graphs = [(*row[:5], GRAPH, *row[6:]) if row[5] == GEMM else row for row in made_traces.KERNELS]
    monkeypatch.setattr(made_traces, "KERNELS", graphs)
    some = load(store.open_run(made_traces.write(tmp_path / "some")))
    assert trace_sums.available(some) == (*trace_sums.SUMMARIES, "graph_launches")
    assert trace_sums.summary(some, "cuda_gpu_kern_sum")["Name"].tolist() == ["relu", HOSTILE]
    assert rows(trace_sums.summary(some, "graph_launches")) == [(100.0, 3600, 3, 1200.0, 1000.0, 600, 2000, 721.1, GRAPH)]
    assert set(trace_sums.summary(some, "nvtx_kern_sum")["Kernel Name"]) == {"relu", HOSTILE}
    # Without their graphs, train holds a kernel from 2000 and a set to 9800; the inner range held a graph alone.
    found = trace_sums.summary(some, "nvtx_gpu_proj_sum")
    assert found.loc[found["Range"] == "train", ["Total Proj Time (ns)", "Total GPU Ops"]].to_numpy().tolist() == [[7800, 3]]
    assert "lib:inner" not in set(found["Range"])
    monkeypatch.setattr(made_traces, "KERNELS", [row for row in graphs if row[5] == GRAPH])
    alone = load(store.open_run(made_traces.write(tmp_path / "alone")))
    assert set(trace_sums.SUMMARIES) - set(trace_sums.available(alone)) == {"cuda_gpu_kern_sum", "nvtx_kern_sum"}


def test_ranges_without_device_work_are_not_projected(tmp_path: Path) -> None:
    idle = load(store.open_run(made_traces.write(tmp_path, without=("kernels", "memory_ops"))))
    assert trace_sums.summary(idle, "nvtx_gpu_proj_sum").empty


def test_ranges_that_overlap_without_nesting_hold_each_kernel_launched_in_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Of one thread: a from 0 to 1650 and b from 650 to 3000 hold the first launch, at 700; b alone that at 1600, which a does not outlast.
    ranges = [
        (1, None, 0, 100, 101, "", "a", 0, 1_650, 1_000, 2_000),
        (2, None, 0, 100, 101, "", "b", 650, 3_000, 1_000, 2_500),
    ]
    monkeypatch.setattr(made_traces, "RANGES", ranges)
    monkeypatch.setattr(made_traces, "API_CALLS", [(*row[:6], 2) for row in made_traces.API_CALLS[:2]])
    monkeypatch.setattr(made_traces, "KERNELS", [(*row[:6], 2) for row in made_traces.KERNELS[:2]])
    run = load(store.open_run(made_traces.write(tmp_path, without=("memory_ops",))))
    found = trace_sums.summary(run, "nvtx_kern_sum")
    assert rows(found[["NVTX Range", "NVTX Inst", "Kern Inst", "Total Time (ns)", "Kernel Name"]]) == [
        ("a", 1, 1, 1000, GEMM),
        ("b", 1, 1, 1000, GEMM),
        ("b", 1, 1, 500, "relu"),
    ]
    projected = trace_sums.summary(run, "nvtx_gpu_proj_sum")
    assert rows(projected[["Range", "Total Proj Time (ns)", "Total GPU Ops"]]) == [
        ("b", 1500, 2),
        ("a", 1000, 1),
    ]


def test_columns_are_read_piece_by_piece_or_at_once_alike(tmp_path: Path) -> None:
    traces = load(store.open_run(made_traces.write(tmp_path))).traces
    for _ in ("from the files", "from what is kept"):
        rows_found, correlation, thread = traces.find("api_calls", "correlation", np.array([9, 3]), "thread")
        kept = np.isin(correlation, [9, 3])
        assert list(zip(rows_found[kept], thread[kept], strict=True)) == [(2, 101), (10, 102)]
        assert [column.tolist() for column in traces.at("kernels", np.array([1, 6]), "start_ns", "range_id")] == [
            [2000, 12_000],
            [2, -1],
        ]
        traces.read("api_calls", "correlation", "thread")
        traces.read("kernels", "start_ns", "range_id")


def test_a_text_column_that_came_later_is_null_in_a_run_without_it(tmp_path: Path) -> None:
    folder = made_traces.write(tmp_path)
    file = folder / "kernels.parquet"
    pq.write_table(pq.read_table(file).drop_columns(["collective"]), file)
    column = Traces(store.open_run(folder)).texts("kernels", "collective")
    assert len(column) == store.open_run(folder).rows("kernels") > 0 and (column.codes == NONE).all()


def test_a_run_offers_the_summaries_that_its_tables_allow(tmp_path: Path, trace: RunData) -> None:
    assert trace_sums.available(trace) == tuple(trace_sums.SUMMARIES)
    bare = load(store.open_run(made_traces.write(tmp_path, without=("ranges", "memory_ops", "kernels"))))
    assert trace_sums.available(bare) == ("cuda_api_sum",)
    recording = load(store.open_run(made_runs.write_host_run(tmp_path, "host", rounds=8)))
    assert not recording.traces
    assert trace_sums.available(recording) == ()


def test_kernels_without_traced_calls_have_no_thread(tmp_path: Path) -> None:
    found = trace_sums.summary(load(store.open_run(made_traces.write(tmp_path, without=("api_calls",)))), "nvtx_kern_sum")
    assert found.loc[found["NVTX Range"].isna(), "TID"].isna().tolist() == [True, True]


def test_the_leading_rows_are_the_fewest_that_make_up_the_share(trace: RunData) -> None:
    kernels = trace_sums.summary(trace, "cuda_gpu_kern_sum")
    # 73.5 % and 93.9 %.
    assert trace_sums.leading(kernels)["Name"].tolist() == [GEMM, "relu"]
    assert trace_sums.leading(kernels)["cumulative_percent"].round(1).tolist() == [73.5, 93.9]
    assert len(trace_sums.leading(kernels, 70)) == 1
    assert len(trace_sums.leading(kernels, 100)) == 3


def test_copies_are_told_apart_by_kind_and_host_memory_with_what_kernels_hide(trace: RunData) -> None:
    found = transfers.transfers(trace)
    # The trace lasts from the first call at 700 to the last kernel's end at 12300. Of the copy back, kernel 3000 to 3600 hides 400 ns.
    assert rows(found[["kind", "host_memory", "n", "bytes", "time_ns", "gb_per_s", "overlap_ns", "overlap_percent"]]) == [
        ("d2h", "pageable", 1, 2_000_000, 2000, 1000.0, 400, 20.0),
        ("h2d", "pinned", 1, 1_000_000, 1000, 1000.0, 0, 0.0),
        ("h2d", "pageable", 1, 500_000, 1000, 500.0, 0, 0.0),
        ("memset", "", 1, 4096, 100, 40.96, 0, 0.0),
    ]
    assert found["percent_of_run"].tolist() == pytest.approx([100 * part / 11_600 for part in (2000, 1000, 1000, 100)])


def test_copies_of_unknown_size_have_a_time_and_no_rate(trace: RunData) -> None:
    """The two h2d copies from pageable and pinned memory, the first without a size; a d2h copy whose size is not known either."""
    traces = Traces(trace.traces.run)
    kind, size = np.asarray(traces.texts("memory_ops", "kind")), traces.numbers("memory_ops", "bytes").copy()
    memory = np.asarray(traces.texts("memory_ops", "src_memory"))
    size[(kind == "d2h") | (kind == "h2d") & (memory == "pageable")] = NONE
    traces._columns["memory_ops", "bytes"] = size
    found = transfers.transfers(replace(trace, traces=traces))
    assert rows(found[["kind", "n", "bytes", "unknown", "time_ns", "gb_per_s"]]) == [
        ("d2h", 1, None, 1, 2000, None),
        ("h2d", 1, 1_000_000, 0, 1000, 1000.0),
        ("h2d", 1, None, 1, 1000, None),
        ("memset", 1, 4096, 0, 100, 40.96),
    ]
    chart = charts.transfers(found, Look("light", {}, "", on_gpu=True))
    assert chart.title == "Copies take 4.00 µs, 50.0 % of it device to host, pageable: size not known"
    assert "<b>–</b>  1 of unknown size, 17.2 % of the run" in [each.text for each in chart.figure.layout.annotations]
    sizes = trace_sums.summary(replace(trace, traces=traces), "cuda_gpu_mem_size_sum")
    assert rows(sizes[["Operation", "Total (MB)", "Count"]]) == [
        ("[CUDA memcpy Host-to-Device]", 1.0, 1),
        ("[CUDA memset]", 0.004, 1),
    ]


@given(st.lists(st.integers(0, 10**13), min_size=1, max_size=20), st.sampled_from([1, 2, 3, 7, 10, 20, 40]))
def test_a_number_is_rounded_as_it_is_written_however_great(values: list[int], by: int) -> None:
    quotients = [value / by for value in values]
    written = [float(Decimal(repr(each)).quantize(Decimal("0.1"), ROUND_HALF_UP)) for each in quotients]
    assert rounded(pd.Series(quotients)).tolist() == written


def test_a_speedup_shrinks_by_launch_and_copies(tmp_path: Path) -> None:
    found = transfers.stages(load(store.open_run(made_traces.write_variants(tmp_path))))
    assert rows(found[["variant", *transfers.STAGES, "copies_ns", "n"]]) == [
        ("v01_slow", 8000.0, 9000.0, 17000.0, 18000.0, 8000.0, 2),
        ("v02_fast", 2000.0, 3000.0, 11000.0, 12000.0, 8000.0, 2),
    ]
    speedups = found.loc[1, [name for name in found if name.startswith("speedup_")]]
    assert speedups.tolist() == pytest.approx([4.0, 3.0, 17 / 11, 1.5])


def stages_of(*rows: tuple[str, str, str, float]) -> pd.DataFrame:
    """Stages of cells (variant, config, case, kernel's speedup over the first of its case), each 1 us of kernel over its speedup."""
    frame = pd.DataFrame(rows, columns=["variant", "config", "case", "speedup_kernel"]).assign(workload="w", n=3, role="rung")
    for place, stage in enumerate(transfers.STAGES):
        frame[stage] = 1000 / frame["speedup_kernel"] + 1000 * place
        frame[f"speedup_{stage.removesuffix('_ns')}"] = frame["speedup_kernel"]
    return frame


def test_the_title_of_the_stages_names_what_is_drawn_however_many_cases_come_before() -> None:
    """Ten cases of three variants; the fastest kernel is in the last one."""
    frame = stages_of(*((f"v0{rung}_a", "", f"n={case}", 1.0 + case * (rung - 1)) for case in range(10) for rung in (1, 2, 3)))
    chart = charts.stages(frame, Look("light", {}, "", on_gpu=True))
    assert chart.title.startswith("w, n=9: v03_a over v01_a: 19.0× kernel")
    assert [trace.name for trace in chart.figure.data] == ["v01_a n=9", "v02_a n=9", "v03_a n=9"]
    assert "3 of 30 rows are drawn" in chart.note and len(chart.data) == 30


def test_stages_are_compared_with_the_first_variant_that_is_no_ceiling() -> None:
    """A copy, of two configs, takes half as long as the first rung; the second rung is three times as fast as the first."""
    copies = stages_of(("v01_copy", "a", "n=1", 2.0), ("v01_copy", "b", "n=1", 4.0)).assign(role="ceiling")
    rungs = stages_of(("v02_a", "", "n=1", 1.0), ("v03_b", "", "n=1", 3.0))
    title = charts.stages(pd.concat([copies, rungs], ignore_index=True), Look("light", {}, "", on_gpu=True)).title
    assert title.startswith("w, n=1: v03_b over v02_a: 3.00× kernel")


def test_the_speedups_of_stages_are_over_the_first_variant_that_is_no_ceiling(tmp_path: Path) -> None:
    traced = load(store.open_run(made_traces.write_variants(tmp_path)))
    roles = transfers.stages(traced)[["workload", "variant"]].assign(role=["ceiling", "rung"])
    roles = roles.merge(traced.variants.drop(columns="role"), how="left", on=["workload", "variant"])
    found = transfers.stages(replace(traced, variants=roles))
    # 8000 ns of kernel, and 2000.
    assert found["speedup_kernel"].tolist() == [0.25, 1.0]


def test_of_more_configs_than_can_be_told_apart_those_of_the_title_are_drawn() -> None:
    frame = stages_of(*(("v01_copy", f"block={block}", "n=1", 1.0 + block) for block in range(20)))
    chart = charts.stages(frame, Look("light", {}, "", on_gpu=True))
    assert chart.title.startswith("w, n=1: v01_copy [block=19] over v01_copy [block=0]: ")
    drawn = [trace.name for trace in chart.figure.data]
    assert len(drawn) == 12
    assert (drawn[0], drawn[-1]) == ("v01_copy block=0 n=1", "v01_copy block=19 n=1")


def test_in_a_foreign_report_the_outermost_ranges_stand_for_variants(trace: RunData) -> None:
    found = transfers.stages(trace)
    # train: 1000 + 500 + 2000 ns of kernels, 3 launches of 100, one copy of 1000; the memset is no copy.
    assert rows(found[["variant", *transfers.STAGES]]) == [
        ("train", 3500.0, 3800.0, 4800.0, 10000.0),
        ("step", 400.0, 500.0, 1500.0, 3000.0),
        ("open", 600.0, 800.0, 2800.0, 8000.0),
    ]


@pytest.mark.parametrize("large", [0, 2**22, 2**30, 2**61])
def test_statistics_are_those_of_pandas_whatever_the_size_of_the_numbers(large: int) -> None:
    random = np.random.default_rng(5)
    groups, values = random.integers(0, 7, 500), random.integers(0, 1000, 500)
    values[:9] += large
    found = describe(groups, values)
    expected = pd.Series(values).groupby(groups).agg(["sum", "size", "mean", "median", "min", "max", "std"])
    assert found.index.tolist() == list(range(7))
    assert found["total"].tolist() == expected["sum"].tolist()
    assert found["median"].to_numpy() == pytest.approx(expected["median"].to_numpy())
    assert found["stddev"].to_numpy() == pytest.approx(expected["std"].to_numpy())
    assert found["max"].tolist() == expected["max"].tolist()


def test_groups_of_large_numbers_are_told_apart() -> None:
    found = describe(np.array([5_000_000, 3, 5_000_000]), np.array([4, 7, 9]))
    assert found.index.tolist() == [3, 5_000_000]
    assert found[["total", "n", "median", "max"]].to_numpy().tolist() == [[7, 1, 7, 7], [13, 2, 6.5, 9]]


def test_a_tie_is_rounded_away_from_zero_as_sqlite_does() -> None:
    assert rounded(pd.Series([0.25, 1234.15, 5881830.05, 7.0])).tolist() == [0.3, 1234.2, 5881830.1, 7.0]


def test_a_note_starts_with_the_device_and_without_one_with_a_capital_letter(trace: RunData) -> None:
    bare = Look("light", {}, "", on_gpu=False)
    kernels = trace_sums.summary(trace, "cuda_gpu_kern_sum")
    starts = ("Durations in the trace", "All copies of the trace", "Medians over the ranges")
    for style, before in ((bare, ""), (replace(bare, device="H200"), "H200; ")):
        notes = [
            call_charts.leading(trace_sums.leading(kernels), len(kernels), style, "kernels").note,
            charts.transfers(transfers.transfers(trace), style).note,
            charts.stages(transfers.stages(trace), style).note,
        ]
        for note, start in zip(notes, starts, strict=True):
            assert note.startswith(before + (start.lower() if before else start))


def test_names_that_would_be_cut_alike_are_cut_before_where_they_differ(trace: RunData) -> None:
    start = "sm90_xmma_fprop_implicit_gemm_f32f32_tf32f32_f32_"
    names = [f"{start}tilesize64x64x32", "relu", f"{start}tilesize64x128x32", "void conv2d(const float *, const float *, int)"]
    frame = trace_sums.summary(trace, "cuda_gpu_kern_sum").head(1)
    frame = pd.concat([frame.assign(Name=name) for name in names], ignore_index=True)
    chart = call_charts.leading(trace_sums.leading(frame, 100), 4, Look("light", {}, "", on_gpu=True), "kernels")
    assert list(chart.figure.layout.yaxis.ticktext) == [
        "sm90_xmma_fprop_…tilesize64x64x32", "relu", "sm90_xmma_fprop_…tilesize64x128x32", "conv2d",
    ]  # fmt: skip
    assert chart.title == "4 of 4 kernels make up 100 %: sm90_xmma_fprop_…tilesize64x64x32 73.5 %"
    # The longest bar is 73.5 %.
    assert list(chart.figure.layout.xaxis.ticktext) == ["0", "25 %", "50 %", "75 %"]


def test_one_kernel_has_its_share_once_in_the_title(trace: RunData) -> None:
    frame = trace_sums.leading(trace_sums.summary(trace, "cuda_gpu_kern_sum").head(1), 100)
    look = Look("light", {}, "", on_gpu=True)
    assert call_charts.leading(frame, 1, look, "kernels").title == "The only kernel: gemm"
    assert call_charts.leading(frame, 9, look, "API calls").title == "1 of 9 API calls makes up 100 %: gemm"


def test_the_product_beside_a_bar_is_its_total(trace: RunData) -> None:
    """The median is not what the number of calls multiplies: of 1, 1 and 4 us it is 1."""
    frame = trace_sums.summary(trace, "cuda_gpu_kern_sum").head(1)
    row = {"Total Time (ns)": 6_000, "Instances": 3, "Avg (ns)": 2_000.0, "Med (ns)": 1_000.0}
    chart = call_charts.leading(trace_sums.leading(frame.assign(**row), 100), 1, Look("light", {}, "", on_gpu=True), "kernels")
    assert list(chart.figure.data[0].text) == [" 6.00 µs = 3 × 2.00 µs"]
