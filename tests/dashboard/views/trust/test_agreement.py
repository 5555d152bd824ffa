"""Collectors compared, and what a recording's own trace says against it, on runs whose figures are counted by hand."""

import math
from pathlib import Path

import pandas as pd
import pytest

from tests.dashboard.pages import choose_run
from tests.dashboard.test_app import Open, open_app, words
from tests.synthetic import made_traces
from warpladder.dashboard.core.run_data import RunData, load
from warpladder.dashboard.views.trust import query
from warpladder.data.store import RECORDED, list_runs, open_run

__all__ = ["open_app"]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("recorded")
    for collector in made_traces.TIMES:
        made_traces.write_collected(folder, collector)
    made_traces.write_collected(folder, "cupti", "older", day=1)
    made_traces.write_collected(folder, "cupti", "elsewhere", day=9, device="another GPU")
    made_traces.write_traced(folder)
    made_traces.write_traced(folder, "wrong", wrong=True, dropped=True)
    return folder


def data_of(folder: Path, run_id: str) -> RunData:
    return load(open_run(folder / run_id))


@pytest.fixture(scope="module")
def compared(recorded: Path) -> pd.DataFrame:
    times = {name: query.device_times(data_of(recorded, name)) for name in made_traces.TIMES}
    return query.compare(times.pop("cuda_events"), times)


def test_the_time_of_a_cell_is_its_median_or_the_sum_over_the_launches_that_were_counted(recorded: Path) -> None:
    sampled = query.device_times(data_of(recorded, "cuda_events"))
    assert sampled[["variant", "n", "median_ns", "low_ns", "high_ns"]].to_numpy().tolist()[0] == [
        "v01_long",
        7,
        100_000,
        97_000,
        103_000,
    ]
    counted = query.device_times(data_of(recorded, "nsight_compute"))
    assert counted[["variant", "cache", "gpus", "n", "median_ns", "low_ns", "high_ns"]].to_numpy().tolist() == [
        ["v01_long", "cold", 1, 1, 102_000, 102_000, 102_000],
        ["v03_short", "cold", 1, 1, 5_200, 5_200, 5_200],
    ]


def test_cells_above_20_us_agree_within_2_percent_or_do_not(compared: pd.DataFrame) -> None:
    told = compared.set_index(["collector", "variant"])[["ratio", "difference_ns", "above", "agrees"]]
    assert told.loc[("cupti", "v01_long")].tolist() == [0.99, -1_000, True, True]
    assert told.loc[("cupti", "v02_longer")].tolist() == [1.03, 6_000, True, False]
    assert told.loc[("nsight_compute", "v01_long")].tolist() == [1.02, 2_000, True, True], "the end of the band is within it"
    assert told.loc[("cupti", "v03_short")].tolist() == [0.7, -1_500, False, False]
    assert len(told) == 6, "Nsight Compute has two of the four cells"


def test_the_interval_of_a_ratio_adds_both_halves_as_independent_errors(compared: pd.DataFrame) -> None:
    both = compared.set_index(["collector", "variant"]).loc[("cupti", "v01_long")]
    # Each median's interval is from 0.97 to 1.03 of it.
    assert both["high"] == pytest.approx(0.99 * math.exp(math.hypot(math.log(1.03), math.log(1 / 0.97))))
    assert both["low"] == pytest.approx(0.99 / math.exp(math.hypot(math.log(1.03), math.log(1 / 0.97))))
    one = compared.set_index(["collector", "variant"]).loc[("nsight_compute", "v01_long")]
    assert one["high"] == pytest.approx(1.02 / 0.97), "a single execution adds nothing"


def test_a_cell_whose_source_changed_is_left_out_and_counted(tmp_path: Path) -> None:
    made_traces.write_collected(tmp_path, "cuda_events")
    made_traces.write_collected(tmp_path, "cupti", sources={"v01_long": "changed"})
    mine, other = (query.device_times(data_of(tmp_path, name)) for name in ("cuda_events", "cupti"))
    assert "v01_long" not in set(query.compare(mine, {"cupti": other})["variant"])
    assert query.left_out(mine, {"cupti": other}) == 1
    assert query.compare(mine, {}).empty


def test_what_differs_below_20_us_is_told_in_nanoseconds(compared: pd.DataFrame) -> None:
    rows = query.by_collector(compared)
    # cupti: 1500 and 500 less; nsight_compute: 200 more.
    assert rows.to_numpy().tolist() == [["cupti", 2, 1, 2, 2, 1_000], ["nsight_compute", 1, 1, 1, 0, 200]]
    assert query.in_words(rows.to_dict("records")[0], "cuda_events") == (
        "cupti: 1 of 2 cells above 20.0 µs within 2 % of cuda_events; below 20.0 µs it differs from cuda_events by 1.00 µs (median of 2) and "
        "measures less in 2."
    )
    long = query.by_collector(compared[compared["above"]]).to_dict("records")[1]
    assert query.in_words(long, "cuda_events") == "nsight_compute: 1 of 1 cells above 20.0 µs within 2 % of cuda_events."


def test_the_title_gives_the_agreement(compared: pd.DataFrame) -> None:
    assert query.agreement_title(compared) == (
        "2 of 3 cells above 20.0 µs agree within 2 %; the largest difference is cupti +3.00 % for v02_longer at n=512"
    )
    assert query.agreement_title(compared[~compared["above"]]) == (
        "No cell above 20.0 µs to compare; the largest difference of shorter cells is cupti −30.0 % for v03_short at n=512"
    )


def test_every_round_that_copied_the_bytes_of_its_case_is_equal(recorded: Path) -> None:
    found = query.rounds(data_of(recorded, "traced"))
    assert found[["range", "h2d_bytes", "d2h_bytes", "equal"]].to_numpy().tolist() == [
        ["end_to_end.hot#0", 4_096, 2_048, True],
        ["end_to_end.hot#1", 4_096, 2_048, True],
        ["end_to_end.hot.twin#1", 4_096, 2_048, True],
    ]
    assert query.by_case(found).to_numpy().tolist() == [["conv2d", "n=512", 3, 3, 4_096, 2_048]]


def test_a_round_that_copied_less_or_nothing_is_not_equal(recorded: Path) -> None:
    found = query.rounds(data_of(recorded, "wrong"))
    differing = found[~found["equal"]]
    assert differing[["range", "h2d_bytes", "d2h_bytes"]].to_numpy().tolist() == [
        ["end_to_end.hot#2", 4_000, 2_048],
        ["end_to_end.hot#3", 0, 0],
    ]


def test_kernels_outside_of_ranges_and_without_launch_are_counted_with_their_time(recorded: Path, tmp_path: Path) -> None:
    assert query.attribution(data_of(recorded, "traced")) == query.Attribution(5, 500, 0, 0, 0, 0)
    assert query.unattributed(data_of(recorded, "traced")).empty
    wrong = data_of(recorded, "wrong")
    assert query.attribution(wrong) == query.Attribution(7, 1_000, 1, 300, 1, 200)
    assert query.unattributed(wrong).to_numpy().tolist() == [["outside", 1, 0, 300], ["inside", 0, 1, 200]]
    assert query.dropped(wrong) == ("CUPTI dropped 12 records",)
    foreign = load(open_run(made_traces.write(tmp_path, without=("kernels",))))
    assert query.attribution(foreign).kernels == 0
    assert query.rounds(foreign).empty
    assert query.unattributed(foreign).empty


@pytest.mark.thorough
def test_the_page_compares_with_the_newest_run_of_each_other_collector_on_the_device(open_app: Open, recorded: Path) -> None:
    app = open_app(recorded, "trust", run="cuda_events", topic="collectors")
    assert app.query_params["with.cupti"] == "cupti"
    assert app.query_params["with.nsight_compute"] == "nsight_compute"
    options = app.selectbox(key="choose with.cupti").options
    # Its older run and the two traced ones too, but not the one on another device.
    assert len(options) == 5
    assert options[0].startswith("cupti")
    assert options[-1] == "none"
    assert "2 of 3 cells above 20.0 µs agree within 2 %" in words(app)
    assert "below 20.0 µs it differs from cuda_events by 1.00 µs (median of 2) and measures less in 2." in words(app)
    assert app.main.dataframe[-1].value["variant"].iloc[0] == "v03_short"
    app.selectbox(key="choose with.cupti").select("none").run()
    assert "1 of 1 cells above 20.0 µs agree within 2 %" in words(app)


@pytest.mark.thorough
def test_the_page_begins_with_a_run_that_has_a_cell_in_common_though_a_newer_one_has_none(
    open_app: Open, tmp_path: Path
) -> None:
    changed = dict.fromkeys(made_traces.TIMES["cupti"], "changed")
    made_traces.write_collected(tmp_path, "cuda_events", "mine", day=2)
    made_traces.write_collected(tmp_path, "cupti", "older", day=3)
    made_traces.write_collected(tmp_path, "cupti", "newer", day=4, sources=changed)
    app = open_app(tmp_path, "trust", run="mine", topic="collectors")
    assert app.query_params["with.cupti"] == "older"
    assert "2 of 2 cells" in words(app) or "1 of 2 cells" in words(app)
    app.selectbox(key="choose with.cupti").select("newer").run()
    assert "Run newer has no cell in common with this run." in words(app)
    # The choice belongs to the run: another begins with its own.
    choose_run(app, "newer", topic="collectors")
    assert app.query_params["with.cuda_events"] == "none"
    assert "No run of cuda_events has a cell in common with this run." in words(app)
    assert "No run is chosen to compare with." in words(app)


@pytest.mark.thorough
def test_the_page_says_what_to_record_where_no_other_collector_ran_on_the_device(open_app: Open, recorded: Path) -> None:
    assert "No other collector has a run on another GPU here" in words(
        open_app(recorded, "trust", run="elsewhere", topic="collectors")
    )


@pytest.mark.thorough
def test_the_page_says_that_all_rounds_copied_their_bytes_or_lists_those_that_did_not(open_app: Open, recorded: Path) -> None:
    text = words(open_app(recorded, "trust", run="traced", topic="copies"))
    assert "All 5 kernels were launched inside a range, by a call that was traced. No record is reported lost." in text
    assert "All 3 end-to-end rounds copied exactly the case's bytes: 12.00 KiB to the device and 6.00 KiB back." in text
    app = open_app(recorded, "trust", run="wrong", topic="copies")
    assert "CUPTI dropped 12 records" in app.error[0].value
    assert "In 2 of 5 end-to-end rounds, the copied bytes differ from the case's" in words(app)
    assert (
        "Of 7 kernels 1 (30 % of their time) were launched outside of any range and 1 (20 % of their time) have a launch"
        in words(app)
    )


def test_a_run_without_a_trace_has_no_launches_to_check(open_app: Open, recorded: Path) -> None:
    assert "This run has no trace" in words(open_app(recorded, "trust", run="cuda_events", topic="copies"))


def test_what_a_tracer_found_of_events_around_the_same_executions_is_told() -> None:
    traced = [run for run in list_runs([RECORDED])[0] if run.info["collector"] in ("cupti", "nsight_systems")]
    told = [query.within_the_run(load(run)) for run in traced]
    assert [len(lines) for lines in told] == [1] * len(traced)
    assert all(lines[0].startswith("Within this run: CUDA events around the same cold executions") for lines in told)
