"""The section Critical path on simulated jobs."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.dashboard.pages import plotted
from tests.dashboard.test_app import Open, open_app, words
from tests.synthetic import made_jobs
from tests.synthetic.made_paths import REDUCE, Host, Kernel, PathJob
from warpladder.dashboard.core.critical_path import CriticalPath
from warpladder.dashboard.core.critical_path.spans import Span
from warpladder.dashboard.core.run_data import RunData, load
from warpladder.dashboard.ui.template import look
from warpladder.dashboard.views.ranks.critical_path import chart as charts
from warpladder.dashboard.views.ranks.critical_path import query as queries
from warpladder.data import store

__all__ = ["open_app"]

pytestmark = pytest.mark.slow
PROGRAM = 2 * [
    Kernel("void gemm<float>(int)", lambda rank, iteration: 300 + iteration if rank == 2 else 200),
    Kernel(REDUCE, 40, 20, after=(7,)),
    Kernel("norm", 20, after=(20,)),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("jobs")
    PathJob(PROGRAM).write(made, "path")
    PathJob(PROGRAM, told=False).write(made, "refused")
    PathJob([Host(100)]).write(made, "idle")
    made_jobs.write(made, "without")
    (PathJob(PROGRAM, numbered=False).write(made, "gone") / "ranks").rename(made / ".ranks")
    return made


@pytest.fixture(scope="module")
def data(folder: Path) -> RunData:
    return load(store.open_run(folder / "path"))


@pytest.fixture(scope="module")
def found(data: RunData) -> CriticalPath:
    return queries.path(data, 2)


def test_the_headline_has_the_kinds_and_the_rank_of_the_path(found: CriticalPath) -> None:
    lasts = 2 * (302 + 2 + 40 + 2 + 20 + 1)  # the last norm, its gap and the last transfer are those of another rank
    assert found.span.duration_ns == lasts * 1_000
    assert (
        queries.headline(found)
        == f"Of {lasts} µs, 87.7 % is compute, 10.9 % transfers, 1.36 % idle; rank 2 holds 91.6 % of the path"
    )


def test_kinds_and_ranks_add_up_to_the_iteration(found: CriticalPath) -> None:
    kinds = queries.by_kind(found)
    assert kinds["time_ns"].sum() == queries.by_rank(found).sum() == found.span.duration_ns
    assert kinds["percent"].sum() == pytest.approx(100) and kinds["segments"].sum() == len(found.segments)


def test_the_chart_of_gains_names_the_kernel_that_gives_the_most(found: CriticalPath, data: RunData) -> None:
    chart = charts.gains(found, look(data))
    assert chart.title == "gemm 10 % faster shortens the iteration by 60.4 µs, 8.23 %"
    assert chart.data["kernel"].tolist() == ["gemm", REDUCE, "norm"]
    assert "upper bound" not in chart.note


def test_the_chart_over_time_has_a_lane_for_each_rank_and_a_line_for_each_kind(found: CriticalPath, data: RunData) -> None:
    figure = charts.over_time(found, look(data)).figure
    names = [trace.name for trace in figure.data]
    assert names == [None, "compute", "transfers", "idle", "inferred"]
    assert list(figure.layout.yaxis.ticktext) == [str(rank) for rank in sorted(found.segments["rank"].unique())]
    line = figure.data[0]
    assert (line.x[0], line.x[-1]) == (0, found.span.duration_ns)


def test_what_is_on_the_path_by_inference_is_marked_in_the_chart_the_tables_and_a_line(
    found: CriticalPath, data: RunData
) -> None:
    """The profiles have the calls that let a stream wait, and not the events: each product and each collective is inferred."""
    assert found.kernels.set_index("kernel")["inferred"].to_dict() == {"gemm": 2, REDUCE: 2, "norm": 0}
    assert found.segments.loc[found.segments["inferred"], "kind"].tolist() == ["compute", "communication"] * 2
    assert queries.by_kind(found).set_index("kind")["inferred"].to_dict() == {"compute": 2, "transfers": 2, "idle": 0}
    chart = charts.over_time(found, look(data))
    marks = next(trace for trace in chart.figure.data if trace.name == "inferred")
    assert len(marks.x) == 4 and "inferred" in chart.data and "A circle" in chart.note
    assert any(line.startswith("4 segments are on the path by inference") for line in queries.notes(found))
    known = CriticalPath(**{**vars(found), "segments": found.segments.assign(inferred=False)})
    assert not queries.notes(known) and "A circle" not in charts.over_time(known, look(data)).note


def _long(found: CriticalPath, ranks: int, count: int = 20_000) -> CriticalPath:
    """A path of many short segments, and a long one in the middle."""
    rng = np.random.default_rng(0)
    times = np.cumsum(rng.integers(1, 100, count))
    times[count // 2 :] += 200_000
    start = np.concatenate(([0], times[:-1]))
    kinds = rng.choice(["compute", "idle", "host"], count, p=[0.8, 0.1, 0.1])
    segments = pd.DataFrame(
        {
            "rank": np.arange(count) * ranks // count,
            "kind": kinds,
            "name": "",
            "start_ns": start,
            "end_ns": times,
            "inferred": False,
        }
    )
    span = Span(0, 0, int(times[-1]), 0)
    return CriticalPath(span, segments, found.kernels, tuple(range(ranks)), (), True, (), True)


@pytest.mark.parametrize("ranks", [1, 200])
def test_thousands_of_segments_are_drawn_as_fewer_pieces_of_the_same_time(found: CriticalPath, ranks: int) -> None:
    path = _long(found, ranks)
    pieces = queries.pieces(path)
    assert len(pieces) < 3_500 and pieces["segments"].sum() == len(path.segments)
    assert (pieces["start_ns"].to_numpy()[1:] == pieces["end_ns"].to_numpy()[:-1]).all()
    assert (pieces["end_ns"] - pieces["start_ns"]).sum() == path.span.duration_ns
    assert pieces["lane"].nunique() == min(ranks, queries.MOST_LANES)
    longest = pieces.loc[(pieces["end_ns"] - pieces["start_ns"]).idxmax()]
    assert longest["end_ns"] - longest["start_ns"] >= 200_000


def test_a_path_that_was_not_replayed_gives_upper_bounds(found: CriticalPath, data: RunData) -> None:
    path = CriticalPath(**{**vars(found), "replayed": (), "kernels": found.kernels.assign(gain_ns=np.nan, gain_percent=np.nan)})
    chart = charts.gains(path, look(data))
    assert chart.title == "gemm 10 % faster shortens the iteration by at most 60.4 µs, 8.23 %"
    assert "was not replayed" in chart.note and len(chart.figure.data) == 1
    partly = CriticalPath(**{**vars(found), "replayed": (2, 3)})
    assert queries.bound(partly) == "2 of 4 ranks were replayed, so the gains are upper bounds."


@pytest.mark.thorough
def test_the_export_has_the_typical_iteration(folder: Path, data: RunData) -> None:
    drawn = list(charts.charts(data, look(data)))
    assert [chart.name for chart in drawn] == ["critical-path", "critical-path-gains"]
    assert list(charts.charts(load(store.open_run(folder / "without")), look(data))) == []


def test_the_page_shows_the_path_of_the_chosen_iteration(open_app: Open, folder: Path) -> None:
    app = open_app(folder, "critical_path", run="path")
    assert len(plotted(app)) == 2 and "Of 734 µs" in words(app)
    app = open_app(folder, "critical_path", run="path", iteration="3")
    assert "Of 736 µs" in words(app)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("run", "text"),
    [
        ("refused", "The clocks of the ranks are not aligned. The path stays in rank"),
        ("idle", "No iteration of this job has device work."),
        ("without", "The path needs the profiles of the ranks."),
        ("gone", "The path needs the profiles of the ranks. gone: has no profile of rank 0"),
    ],
)
def test_the_page_tells_what_it_cannot_show(open_app: Open, folder: Path, run: str, text: str) -> None:
    assert text in words(open_app(folder, "critical_path", run=run))
