"""What of a recording's trace is the variants' own work: counted by hand, under the texts that the collectors write."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.dashboard.test_app import Open, open_app, words
from tests.synthetic import made_traces
from tests.synthetic.made_runs import row, run_row, write_tables
from warpladder.collectors.core.nvtx_ranges import DOMAIN, TWIN, WARM_UP, executions_text, sample_text
from warpladder.dashboard.core.run_data import RunData, load
from warpladder.dashboard.core.traces import GRAPH, Traces
from warpladder.dashboard.export import charts_of
from warpladder.dashboard.trace import samples as trace_samples
from warpladder.dashboard.views.time.calls import query as trace_sums
from warpladder.dashboard.views.trust import query as trust
from warpladder.data import store

__all__ = ["open_app"]


# range_id, parent_id, domain, text.
RANGES = (
    (1, None, DOMAIN, "conv2d"),
    (2, 1, DOMAIN, "n=8"),
    (3, 2, DOMAIN, "v01_tile[block=16]"),
    (4, 3, DOMAIN, sample_text("device", "cold", WARM_UP, 0)),
    (5, 4, DOMAIN, executions_text(1)),
    (6, 3, DOMAIN, sample_text("device", "cold", "", 0)),
    (7, 6, DOMAIN, executions_text(1)),
    (8, 7, "CCCL", "cub::DeviceReduce::Sum"),
    (9, 3, DOMAIN, sample_text("device", "cold", TWIN, 0)),
    (10, 9, DOMAIN, executions_text(1)),
    (11, 3, DOMAIN, sample_text("operation", "hot", "", 0)),
    (12, 3, DOMAIN, sample_text("end_to_end", "hot", "", 0)),
    (13, 3, DOMAIN, sample_text("end_to_end", "hot", WARM_UP, 0)),
    (14, 2, "", sample_text("operation", "hot", "", 0)),
)
# name, duration, range_id.
KERNELS = (
    ("check", 1000, 2), ("flush", 700, 4), ("tile", 90, 5), ("flush", 500, 6), ("hold", 300, 6), ("tile", 10, 7), ("sum", 20, 8),
    ("flush", 500, 9), ("tile", 12, 10), ("tile", 30, 11), ("tile", 31, 12), ("tile", 33, 13), ("foreign", 5, 14), ("check", 40, None),
)  # fmt: skip
API_CALLS = (
    ("cuLaunchKernel", 4, 7),
    ("cuLaunchKernel", 9, 6),
    ("cuLaunchKernel", 6, 11),
    ("cudaDeviceSynchronize", 900, None),
)
# kind, bytes, duration, range_id.
MEMORY_OPS = (("h2d", 1_000_000, 100, 12), ("h2d", 2_000_000, 150, 13), ("memset", 4_096, 60, 2))


def depth_of(parent: int | None) -> int:
    """How many ranges are around one with that parent."""
    return 0 if parent is None else 1 + depth_of(next(above for number, above, *_ in RANGES if number == parent))


def write(data_dir: Path, run_id: str = "recorded", *, kind: str = "recording", kernels: Any = KERNELS) -> Path:
    """A run of that trace, one event after the other."""
    tables: dict[str, list[dict[str, Any]]] = {
        "ranges": [
            {
                "range_id": number,
                "parent_id": parent,
                "depth": depth_of(parent),
                "domain": domain,
                "text": text,
                "style": "push_pop",
                "end_ns": 1,
            }
            for number, parent, domain, text in RANGES
        ],
        "kernels": [{"name": name, "full_name": name, "end_ns": ns, "range_id": inside} for name, ns, inside in kernels],
        "api_calls": [{"name": name, "end_ns": ns, "range_id": inside} for name, ns, inside in API_CALLS],
        "memory_ops": [
            {"kind": what, "bytes": size, "end_ns": ns, "range_id": inside} for what, size, ns, inside in MEMORY_OPS
        ],
    }
    filled = {name: [row(name, **given) for given in rows] for name, rows in tables.items()}
    return write_tables(data_dir, run_row(run_id, run_id) | {"kind": kind}, filled)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    data_dir = tmp_path_factory.mktemp("runs")
    write(data_dir)
    write(data_dir, "imported", kind="import")
    return data_dir


@pytest.fixture(scope="module")
def recorded(folder: Path) -> RunData:
    return load(store.open_run(folder / "recorded"))


def test_a_recording_offers_its_samples_first_and_an_import_all_alone(folder: Path, recorded: RunData, tmp_path: Path) -> None:
    assert trace_samples.extents(recorded) == ("samples", "all")
    assert trace_samples.extents(load(store.open_run(folder / "imported"))) == ("all",)
    foreign = load(store.open_run(made_traces.write(tmp_path)))
    foreign = replace(foreign, info={**foreign.info, "kind": "recording"})
    assert trace_samples.extents(foreign) == ("all",), "no range of it is a sample"


def test_samples_are_what_their_executions_launch_and_all_that_the_host_times_but_no_warm_up(recorded: RunData) -> None:
    own = trace_samples.sampled(recorded.traces)
    assert [row[0] for row, each in zip(RANGES, own, strict=True) if each] == [7, 8, 10, 11, 12]
    assert trace_samples.rows(recorded.traces, "kernels").tolist() == [5, 6, 8, 9, 10]


def test_summaries_of_samples_leave_out_the_measurements_own_work(recorded: RunData) -> None:
    def totals(name: str, *columns: str) -> list[list[Any]]:
        rows: list[list[Any]] = trace_sums.summary(recorded, name, "samples")[list(columns)].to_numpy().tolist()
        return rows

    # tile 10 + 12 + 30 + 31 of 103 ns.
    assert totals("cuda_gpu_kern_sum", "Name", "Instances", "Total Time (ns)", "Time (%)") == [
        ["tile", 4, 83, 80.6],
        ["sum", 1, 20, 19.4],
    ]
    assert totals("cuda_api_sum", "Name", "Num Calls", "Total Time (ns)") == [["cuLaunchKernel", 2, 10]]
    assert totals("cuda_gpu_mem_time_sum", "Operation", "Count", "Total Time (ns)") == [
        ["[CUDA memcpy Host-to-Device]", 1, 100]
    ]
    assert totals("cuda_gpu_mem_size_sum", "Count", "Total (MB)") == [[1, 1.0]]


def test_summaries_of_all_and_those_of_ranges_are_of_the_whole_trace(recorded: RunData) -> None:
    every = trace_sums.summary(recorded, "cuda_gpu_kern_sum", "all").set_index("Name")["Total Time (ns)"]
    assert every.to_dict() == {"flush": 1700, "check": 1040, "hold": 300, "tile": 206, "sum": 20, "foreign": 5}
    assert trace_sums.summary(recorded, "nvtx_sum", "samples").equals(trace_sums.summary(recorded, "nvtx_sum"))


def test_what_has_no_row_in_a_sample_is_not_offered_of_samples(tmp_path: Path) -> None:
    graphs = [(GRAPH if name == "tile" else name, ns, inside) for name, ns, inside in KERNELS if name != "sum"]
    run = load(store.open_run(write(tmp_path, kernels=graphs)))
    assert "cuda_gpu_kern_sum" in trace_sums.available(run)
    assert "cuda_gpu_kern_sum" not in trace_sums.available(run, "samples")
    found = trace_sums.summary(run, trace_sums.GRAPHS, "samples")
    assert found[["Instances", "Total Time (ns)"]].to_numpy().tolist() == [[4, 83]]
    assert set(trace_sums.summary(run, "cuda_gpu_kern_sum")["Name"]) == {"flush", "check", "hold", "foreign"}


@pytest.mark.slow
def test_the_page_shows_the_samples_first_and_all_when_asked(open_app: Open, folder: Path) -> None:
    app = open_app(folder, "calls", run="recorded")
    assert app.segmented_control(key="choose summed").value == "samples"
    assert "2 of 2 kernels make up 100 %: tile 80.6 %" in words(app)
    assert "Sums of the work in the variants' samples, without verification, warm-up" in words(app)
    app = open_app(folder, "calls", run="recorded", summed="all")
    # 1700 + 1040 + 300 of 3271 ns.
    assert "3 of 6 kernels make up 92.9 %: flush 52.0 %" in words(app)
    assert "As nsys stats --report cuda_gpu_kern_sum prints it." in words(app)
    assert "The ranges are those of the whole trace" in words(open_app(folder, "calls", run="recorded", summary="nvtx_sum"))


def test_of_an_import_nothing_is_left_out_and_nothing_is_asked(open_app: Open, folder: Path) -> None:
    app = open_app(folder, "calls", run="imported")
    assert "summed" not in app.query_params
    assert "3 of 6 kernels make up 92.9 %" in words(app)


@pytest.mark.thorough
def test_the_export_draws_what_the_page_shows_first(folder: Path, recorded: RunData) -> None:
    titles = {chart.name: chart.title for chart in charts_of(recorded, topics=["trace"])}
    assert titles["trace-kernels"] == "2 of 2 kernels make up 100 %: tile 80.6 %"
    imported = {chart.name: chart.title for chart in charts_of(load(store.open_run(folder / "imported")), topics=["trace"])}
    assert imported["trace-kernels"] == "3 of 6 kernels make up 92.9 %: flush 52.0 %"


def test_what_only_prepares_a_sample_has_the_colour_of_no_variant_on_the_timeline(tmp_path: Path) -> None:
    traces = load(store.open_run(write(tmp_path))).traces
    only_prepares = trace_samples.of_the_measurement(traces)
    range_ids = traces.numbers("ranges", "range_id")
    # The cold warm-up, the cold sample and its twin, not their executions; the samples of other scopes are all the variant's work.
    assert range_ids[only_prepares].tolist() == [4, 6, 9]


def test_what_another_thread_launched_in_a_sample_is_the_samples_own_work(tmp_path: Path) -> None:
    """The second check, of 40 ns, is attributed by time to the sample of scope operation."""
    data = load(store.open_run(write(tmp_path)))
    data.traces.read("kernels", "time_range_id")
    by_time = data.traces.numbers("kernels", "time_range_id").copy()
    by_time[-1] = 11
    traces = Traces(data.traces.run)
    traces._columns["kernels", "time_range_id"] = by_time
    found = trace_sums.summary(replace(data, traces=traces), "cuda_gpu_kern_sum", "samples").set_index("Name")
    assert found.loc["check", "Total Time (ns)"] == 40
    assert trust.attribution(replace(data, traces=traces)).outside == trust.attribution(data).outside - 1
