"""Work that a thread without a range launches, as PyTorch's backward pass: attributed by time, told apart, and never ranked on a rest of it."""

from collections.abc import Callable
from dataclasses import astuple
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from tests.collectors.nsight_systems.reports import Tables, write
from tests.collectors.nsight_systems.training import BY_TIME_NS, OUTSIDE_NS, OWN_NS, STEPS, training
from warpladder.collectors.nsight_systems.parse import import_report
from warpladder.dashboard.core import cells
from warpladder.dashboard.core.run_data import RunData, load
from warpladder.dashboard.trace import attribution
from warpladder.dashboard.trace import lanes as timeline_lanes
from warpladder.dashboard.views.time.calls import query as trace_sums
from warpladder.dashboard.views.timeline import query as timeline
from warpladder.dashboard.views.timeline import selection as timeline_selection
from warpladder.dashboard.views.timeline.selection import ChosenEvent
from warpladder.data import store
from warpladder.data.naming import Naming

pytestmark = pytest.mark.slow

FIXTURES: Final = sorted(
    (Path(__file__).resolve().parents[2] / "fixtures").glob("nsight-systems-*/torch_training/report.sqlite")
)
PHASES: Final = Naming.parse("nvtx:^(?P<variant>data|forward|backward|optimizer)$")
LATER: Final = ("time_range_id", "time_gpu_start_ns", "time_gpu_end_ns", "time_gpu_busy_ns")


def run_of(folder: Path, tables: Tables, naming: Naming | None = None) -> store.Run:
    report = write(folder / "report.sqlite", tables)
    return store.open_run(folder / "runs" / import_report(report, folder / "runs", "", naming, []))


def as_older(run: store.Run) -> store.Run:
    """The run as it was written before attribution by time."""
    for table in ("ranges", "kernels"):
        file = run.path / f"{table}.parquet"
        rows = pq.read_table(file)
        pq.write_table(rows.drop_columns([name for name in LATER if name in rows.column_names]), file)
    return store.open_run(run.path)


def device_ns(data: RunData) -> dict[str, float]:
    """Median device time of each variant that is ranked."""
    every = cells.cells(data)
    ranked = every[(every["scope"] == "device") & (every["n"] > 0) & (every["status"] == "ok")]
    return dict(zip(ranked["variant"], ranked["median_ns"], strict=True))


def test_work_of_a_thread_without_a_range_is_attributed_by_time_in_a_column_of_its_own(tmp_path: Path) -> None:
    run = run_of(tmp_path, training())
    text = run.table("ranges").set_index("range_id")["text"]
    kernels = run.table("kernels")
    both = [[text.get(number, "") for number in kernels[name]] for name in ("range_id", "time_range_id")]
    of_step = [["data", "forward", "forward", "backward", "", "", "optimizer"], ["", "", "", "", "backward", "backward", ""]]
    assert both == [STEPS * part + [""] for part in of_step]
    ranges = run.table("ranges")
    backward = ranges[ranges["text"] == "backward"]
    assert backward["gpu_busy_ns"].tolist() == STEPS * [10]
    assert backward["time_gpu_busy_ns"].tolist() == STEPS * [590]
    assert ranges.loc[ranges["text"] == "step", "time_gpu_busy_ns"].tolist() == STEPS * [OWN_NS + BY_TIME_NS]
    assert ranges.loc[ranges["text"] == "forward", list(LATER[1:])].isna().all(axis=None)
    told = run.table("diagnostics").query("source == 'attribution'")
    assert told["text"].str.startswith("6 kernels, copies and sets were launched by threads that had no NVTX range open").all()


def test_the_shares_of_device_time_add_up(tmp_path: Path) -> None:
    found = attribution.shares(load(run_of(tmp_path, training())))
    assert found == attribution.Shares(STEPS * OWN_NS, STEPS * BY_TIME_NS, OUTSIDE_NS)
    # 1260, 1740 and 30 of 3030 ns.
    assert found.percent == (41.6, 57.4, 1.0)
    assert attribution.sentence(found) == (
        "Of the device time, 41.6 % was launched inside NVTX ranges of the launching thread, 57.4 % is attributed by time to a range of "
        "another thread, and 1 % to no range."
    )


@pytest.mark.parametrize("parts", [(1, 1, 1), (2, 2, 1), (1, 0, 999_999), (0, 0, 0), (333, 333, 334), (5, 5, 9990)])
def test_rounded_shares_add_up_too(parts: tuple[int, int, int]) -> None:
    assert sum(attribution.Shares(*parts).percent) == pytest.approx(100 if any(parts) else 0)


def test_variants_of_phases_count_the_work_of_both_threads(tmp_path: Path) -> None:
    data = load(run_of(tmp_path, training(), PHASES))
    assert device_ns(data) == {"data": 10, "forward": 300, "backward": 590, "optimizer": 100}


def test_a_range_whose_work_is_mostly_unattributed_is_not_ranked_and_says_why(tmp_path: Path) -> None:
    run = run_of(tmp_path, training(other_ranges=True), PHASES)
    assert "6 kernels, copies and sets were launched by threads that had no NVTX range open while several threads" in "\n".join(
        run.table("diagnostics")["text"]
    )
    data = load(run)
    assert device_ns(data) == {"data": 10, "forward": 300, "optimizer": 100}
    assert "backward" not in set(data.samples["variant"])
    row = data.results.set_index("variant").loc["backward"]
    # 580 of 590 ns.
    assert row["status"] == "skipped"
    assert row["detail"].startswith("not ranked: 98 % of the device time launched while its ranges were open")
    assert attribution.shares(data) == attribution.Shares(STEPS * OWN_NS, 0, STEPS * BY_TIME_NS + OUTSIDE_NS)


def test_a_run_that_is_older_than_attribution_by_time_opens(tmp_path: Path) -> None:
    data = load(as_older(run_of(tmp_path, training())))
    assert attribution.shares(data) == attribution.Shares(STEPS * OWN_NS, 0, STEPS * BY_TIME_NS + OUTSIDE_NS)
    assert timeline_selection.busy_ns(data.traces, chosen(data, "backward")) == 10


def test_what_nsys_stats_sums_is_untouched_by_attribution_by_time(tmp_path: Path) -> None:
    run = run_of(tmp_path, training())
    data = load(run)
    sums = {name: trace_sums.summary(data, name) for name in trace_sums.available(data)}
    assert sums["nvtx_gpu_proj_sum"].set_index("Range").loc["backward", "Total GPU Ops"] == STEPS
    older = load(as_older(run))
    for name, frame in sums.items():
        pd.testing.assert_frame_equal(trace_sums.summary(older, name), frame)


def chosen(data: RunData, text: str) -> ChosenEvent:
    """The first range of that text."""
    return ChosenEvent("ranges", list(data.traces.texts("ranges", "text")).index(text))


def test_the_timeline_shows_work_by_time_in_its_range_and_says_how_it_is_known(tmp_path: Path) -> None:
    data = load(run_of(tmp_path, training()))
    traces, backward = data.traces, chosen(data, "backward")
    assert timeline_selection.busy_ns(traces, backward) == 590
    assert timeline_selection.by_time_ns(traces, backward) == 580
    assert timeline_selection.work(traces, backward, 0)["count"].tolist() == [3]
    assert timeline_selection.by_time_ns(traces, chosen(data, "forward")) == 0
    lanes = timeline_lanes.build(traces)
    (lane,) = [lane for lane in lanes.lanes if lane.kind == "device"]
    ranges = timeline.facts(traces, lanes, lane, np.arange(7))["range"].tolist()
    assert ranges == ["data", "forward", "forward", "backward", "backward, by time", "backward, by time", "optimizer"]
    around = timeline_selection.around(traces, ChosenEvent("kernels", 4), 0)
    assert around.loc[around["what"] == "range", "name"].tolist() == ["backward", "step"]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], RunData]:
    def get(report: Path) -> RunData:
        folder = tmp_path_factory.mktemp("training")
        return load(store.open_run(folder / import_report(report, folder, "", PHASES, [])))

    return get


def test_a_training_was_recorded() -> None:
    assert FIXTURES


@pytest.mark.parametrize("report", FIXTURES, ids=lambda report: report.parent.parent.name)
def test_of_a_recorded_training_the_backward_pass_is_ranked_with_its_own_work(
    report: Path, recorded: Callable[[Path], RunData]
) -> None:
    data = recorded(report)
    found = attribution.shares(data)
    total = sum(int(data.traces.durations(table).sum()) for table in attribution.TABLES if table in data.traces.tables)
    assert sum(astuple(found)) == total
    assert sum(found.percent) == pytest.approx(100)
    assert found.by_time_ns > 0
    times = device_ns(data)
    assert set(times) == {"data", "forward", "backward", "optimizer"}
    # As much as the forward pass, about; what its own thread launched is 768 ns.
    assert times["backward"] > 0.5 * times["forward"]
