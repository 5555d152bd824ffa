"""What a recording's own trace tells against it, on runs whose figures are counted by hand."""

from pathlib import Path

import pytest

from tests.dashboard.test_app import Open, open_app, words
from tests.synthetic import made_traces
from warpladder.dashboard.core.run_data import RunData, load
from warpladder.dashboard.views.trust import query
from warpladder.data.store import open_run

__all__ = ["open_app"]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("recorded")
    made_traces.write_collected(folder, "cuda_events")
    made_traces.write_traced(folder)
    made_traces.write_traced(folder, "wrong", wrong=True, dropped=True)
    return folder


def data_of(folder: Path, run_id: str) -> RunData:
    return load(open_run(folder / run_id))


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
