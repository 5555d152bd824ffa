"""Kernels over the ranks of a job: sums counted by hand, and the ranks that differ."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from tests.dashboard.pages import plotted
from tests.dashboard.test_app import Open, open_app, words
from tests.synthetic import made_jobs
from tests.synthetic.made_jobs import BROKEN, ITERATIONS, LATE, RANKS, compute_ns
from warpladder.dashboard.core.run_data import RunData, load
from warpladder.dashboard.ui.template import look
from warpladder.dashboard.views.ranks.job_kernels import chart, query
from warpladder.dashboard.views.ranks.job_kernels.query import RankKernels
from warpladder.data import store

__all__ = ["open_app"]

GOOD = [rank for rank in range(RANKS) if rank != BROKEN]


@pytest.fixture
def data(tmp_path: Path) -> RunData:
    return load(store.open_run(made_jobs.write(tmp_path)))


def executed(
    total: Sequence[int], count: Sequence[int] | None = None, kind: str = "compute", name: str = "gemm"
) -> RankKernels:
    """One kernel on as many ranks."""
    counts = np.array([count if count is not None else [10] * len(total)])
    return RankKernels((name,), (kind,), np.arange(len(total)), counts, np.array([total]))


@pytest.mark.parametrize("iteration", [None, 2])
def test_the_sums_of_a_kernel_are_over_the_ranks_with_a_profile(data: RunData, iteration: int | None) -> None:
    steps = range(ITERATIONS) if iteration is None else [iteration]
    times = {rank: sum(compute_ns(rank, step) for step in steps) for rank in GOOD}
    row = query.kernels(data, iteration).set_index("kernel").loc["gemm"]
    assert (row["ranks"], row["of_ranks"], row["count"]) == (len(GOOD), len(GOOD), 4 * len(steps) * len(GOOD))
    assert row["total_ns"] == sum(times.values())
    assert row["mean_ns"] == pytest.approx(np.mean(list(times.values())))
    assert row["median_ns"] == np.median(list(times.values()))
    assert (row["slowest_rank"], row["slowest_ns"]) == (LATE, times[LATE])
    assert (row["fastest_rank"], row["fastest_ns"]) == (0, times[0])
    assert (row["differs"], row["differing_rank"]) == ("slower rank", LATE)
    assert row["difference_ns"] == times[LATE] - row["median_ns"]


def test_the_shares_are_of_all_kernels_and_the_longest_comes_first(data: RunData) -> None:
    frame = query.kernels(data, None)
    assert frame["percent"].sum() == pytest.approx(100)
    assert frame["total_ns"].is_monotonic_decreasing
    assert set(frame["kind"]) == {"compute", "communication", "memory"}


def test_the_iterations_can_be_chosen_from(data: RunData) -> None:
    assert query.iterations(data) == tuple(range(ITERATIONS))


def test_the_spread_is_robust() -> None:
    row = query.over_ranks(executed([100, 101, 99, 100, 100_000])).iloc[0]
    assert (row["median_ns"], row["spread_ns"]) == (100, pytest.approx(1.4826))


@pytest.mark.parametrize(
    ("total", "count", "differs", "rank"),
    [
        ([1_000, 1_010, 990, 1_005, 995], None, "", None),
        ([1_000, 1_010, 990, 1_005, 1_200], None, "slower rank", 4),
        ([1_000, 800, 990, 1_005, 1_010], None, "faster rank", 1),
        ([1_000, 1_000, 1_000, 1_000, 1_019], None, "", None),  # 1.9 %, although the others are equal
        ([1_000, 1_000, 1_000, 1_000, 1_021], None, "slower rank", 4),
        ([1_000, 1_010, 990, 1_005, 2_000], [10, 10, 10, 10, 20], "counts", 4),
        ([0, 0, 990, 0, 0], [0, 0, 10, 0, 0], "some ranks", 2),
        ([1_000, 1_010, 0, 1_005, 995], [10, 10, 0, 10, 10], "some ranks", 2),
        ([1_000, 1_000, 2_000], None, "", None),  # too few for a usual spread
    ],
)
def test_a_rank_that_differs_is_named(
    total: Sequence[int], count: Sequence[int] | None, differs: str, rank: int | None
) -> None:
    row = query.over_ranks(executed(total, count)).iloc[0]
    assert row["differs"] == differs
    if rank is None:
        assert row[["differing_rank", "difference_ns"]].isna().all()
    else:
        assert row["differing_rank"] == rank
        assert row["difference_ns"] == total[rank] - np.median(total)


def test_a_collective_has_no_slower_rank() -> None:
    """Its kernels hold the wait for other ranks."""
    assert query.over_ranks(executed([1_000, 1_010, 990, 1_005, 1_200], kind="communication")).iloc[0]["differs"] == ""


def test_the_kernel_that_differs_the_most_is_shown_at_first(data: RunData) -> None:
    frame = query.kernels(data, None)
    assert query.to_show(frame)["kernel"] == "gemm"
    alike = frame.assign(differs="")
    assert query.most_different(alike) is None
    assert query.to_show(alike)["kernel"] == frame["kernel"].iloc[0]


def test_a_kernel_by_rank_has_each_rank_with_a_profile(data: RunData) -> None:
    frame = query.by_rank(data, None, "gemm", "compute")
    assert list(frame["rank"]) == GOOD
    assert frame.set_index("rank")["mean_ns"][LATE] == compute_ns(LATE, 0) / 4


def test_the_charts_name_the_kernel_and_the_rank_that_differ_the_most(data: RunData) -> None:
    leading, by_rank = chart.charts(data, look(data))
    more = ITERATIONS * compute_ns(LATE, 0) - query.kernels(data, None).set_index("kernel").loc["gemm", "median_ns"]
    assert leading.title == f"gemm differs the most: rank 5 takes 240 ms in all, {more / 1e6:.1f} ms more than the median rank"
    assert by_rank.title == "gemm: 160 to 240 ms a rank, rank 5 slower"


def test_a_name_of_a_report_is_no_markup(data: RunData) -> None:
    frame = query.over_ranks(executed([1_000] * 5, name="<b>x"))
    figure = chart.leading(frame, look(data), query.ALL).figure
    assert figure.layout.yaxis.ticktext == ("&lt;b&gt;x",)
    assert "<b>x" not in figure.data[0].hovertext[0]


@pytest.mark.thorough
def test_the_page_counts_one_iteration_where_it_is_chosen(open_app: Open, data: RunData, tmp_path: Path) -> None:
    app = open_app(tmp_path, "job_kernels", run="job")
    assert len(plotted(app)) == 2
    assert app.main.dataframe[-1].value["count"].max() == 4 * ITERATIONS * len(GOOD)
    app.selectbox(key="choose iteration").set_value("2").run()
    assert app.main.dataframe[-1].value["count"].max() == 4 * len(GOOD)
    assert "iteration 2" in words(app)


def test_where_no_rank_stands_out_the_title_has_what_the_kernel_takes_on_the_ranks() -> None:
    """Of two ranks, of which none is late, and of four, of which two take longer, nobody is usual."""
    alike, two, four = (
        query.title_of(query.over_ranks(executed(each))) for each in ([1_000, 1_010], [1_000, 1_500], [10, 10, 15, 15])
    )
    assert alike == "gemm takes the most time, 100 %, about the same on each rank"
    assert two == "No rank stands out: gemm takes the most time, 100 %, 1.00 µs on rank 0 to 1.50 µs on rank 1"
    assert four.startswith("No rank stands out: ")


def test_late_ranks_are_compared_with_the_others() -> None:
    row = query.over_ranks(executed([1_000, 1_500, 1_000, 1_500]), late=(1, 3)).iloc[0]
    assert (row["differs"], row["differing_rank"], row["difference_ns"], row["median_all_ns"]) == ("slower rank", 1, 500, 1_000)
    only = query.over_ranks(executed([0, 1_500], [0, 10]), late=(1,)).iloc[0]
    assert (only["differs"], only["differing_rank"], only["difference_ns"]) == ("some ranks", 1, 1_500)
