"""Kernels of ranks: the time of each kernel over the ranks of a job, and the ranks that differ."""

from typing import Final

import streamlit as st

from warpladder.dashboard.ui import runs, state, widgets
from warpladder.dashboard.views.ranks.job_kernels import chart, query
from warpladder.data import store

_ALL: Final = "all"
_MS: Final = 1e6
_TIMES: Final = ("total", "mean", "spread", "slowest", "fastest", "difference")


_COLUMNS: Final = {
    "kernel": st.column_config.TextColumn("Kernel", width="medium", help="Short name; the column Full name is at the end."),
    "kind": "Kind",
    "total_ms": widgets.number("Total, ms", "Over all ranks."),
    "percent": widgets.number("Share, %", "Of the time of all kernels of the job.", "%.3g"),
    "mean_ms": widgets.number("Mean a rank, ms", "Over all ranks with a profile."),
    "differs": st.column_config.TextColumn(
        "Differs",
        help="Some ranks: not all execute it. Counts: they execute it differently often. Slower or faster rank: the mean time of an "
        "execution is farther from the median of the ranks than five spreads and 2 %; of few ranks, from that of those that are not late.",
    ),
    "differing_rank": widgets.number("Rank", "The rank that differs the most.", "%d"),
    "difference_ms": widgets.number(
        "By, ms",
        "Time of that rank less the median over all ranks, or of few over those that are not late; of two ranks, less the other's.",
    ),
    "spread_ms": widgets.number(
        "Spread, ms", "Robust standard deviation over the ranks that execute it: 1.4826 times the median deviation."
    ),
    "slowest_rank": widgets.number("Slowest", "The rank with the most time in it.", "%d"),
    "slowest_ms": widgets.number("ms", "Its time on the slowest rank."),
    "fastest_rank": widgets.number("Fastest", "The rank with the least time in it, of those that execute it.", "%d"),
    "fastest_ms": widgets.number("ms ", "Its time on the fastest rank."),
    "ranks": widgets.number("Ranks", "Ranks that execute it.", "%d"),
    "count": widgets.number("Executions", "On all ranks.", "%d"),
    "name": st.column_config.TextColumn("Full name", width="large"),
}


def draw(run: store.Run) -> None:
    if not runs.load(run).job:
        widgets.no_job(run)
    with widgets.controls():
        steps = [_ALL, *map(str, runs.ask(run, query.iterations))]
        step = state.choose("iteration", "Iteration", steps)
        iteration = None if step == _ALL else int(step)
        frame = runs.ask(run, query.kernels, iteration)
        if frame.empty:
            widgets.nothing("No rank of this job has a kernel.", "Choose another run above.")
        kernels = list(frame["kernel"])
        name = state.choose("kernel", "Kernel by rank", kernels, default=str(query.to_show(frame)["kernel"]))
    look = runs.look_of(run, widgets.theme())
    extent = query.ALL if iteration is None else f"iteration {iteration}"
    row = frame.iloc[kernels.index(name)]
    widgets.show_chart(widgets.drawn(chart.leading, frame, look, extent))
    widgets.show_chart(
        widgets.drawn(chart.by_rank, runs.ask(run, query.by_rank, iteration, row["name"], row["kind"]), row, look, extent)
    )
    shown = frame.assign(**{f"{each}_ms": frame[f"{each}_ns"] / _MS for each in _TIMES})
    widgets.table(
        shown,
        column_order=list(_COLUMNS),
        column_config=_COLUMNS,
        height=widgets.height(shown),
    )
