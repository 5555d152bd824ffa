"""Critical path: the chain of activities that an iteration waits for, and what a faster kernel would give."""

from typing import Final

import pandas as pd
import streamlit as st

from warpladder.dashboard.core import critical_path as paths
from warpladder.dashboard.ui import runs, state, widgets
from warpladder.dashboard.ui.text import plain
from warpladder.dashboard.views.ranks.critical_path import chart, query
from warpladder.data import store


def draw(run: store.Run) -> None:
    if not runs.load(run).job:
        widgets.no_job(run)
    try:
        iterations: pd.DataFrame = runs.ask(run, query.iterations)
        path = runs.ask(run, query.path, _chosen(iterations)) if len(iterations) else None
    except store.StoreError as error:
        widgets.nothing(f"The path needs the profiles of the ranks. {error}.", "Import the job again.")
    if path is None:
        widgets.nothing("No iteration of this job has device work.", "Choose another run above.")
    look = runs.look_of(run, widgets.theme())
    for line in query.notes(path):
        st.info(plain(line))
    widgets.show_chart(widgets.drawn(chart.over_time, path, look))
    if len(path.kernels):
        widgets.show_chart(widgets.drawn(chart.gains, path, look))
        st.markdown("## Kernels, copies and sets on the path")
        widgets.table_of_times(path.kernels, _KERNELS)
    st.markdown("## Kinds")
    widgets.table_of_times(query.by_kind(path), _KINDS)
    host = query.host_parts(path)
    if len(host):
        st.markdown("## The host on the path")
        widgets.table_of_times(host, _HOST)


def _chosen(iterations: pd.DataFrame) -> int | None:
    """The iteration to show; None where the profiles have none."""
    typical = paths.typical(iterations)
    if typical is None:
        return None
    lasts = {str(row.iteration): row.duration_ns for row in iterations.itertuples()}
    with widgets.controls():
        chosen = state.choose(
            "iteration", "Iteration", list(lasts), default=str(typical), help="At first the one with the median duration."
        )
    return int(chosen)


_SHARE: Final = widgets.number("Share, %", "Of the iteration.", "%.3g")
_INFERRED: Final = widgets.number(
    "Inferred", "How many are on the path by inference: the profile does not name what waited for them.", "%d"
)
_KERNELS: Final = {
    "kernel": st.column_config.TextColumn("Kernel", width="medium", help="Short name; the column Full name is at the end."),
    "kind": "Kind",
    "time_ns": widgets.number("On the path, ms", "Its time on the path; of collectives, the time of the transfer."),
    "percent": _SHARE,
    "gain_ns": widgets.number(
        "Gain, ms", "How much shorter the iteration is if it takes 10 % less time on all ranks, from the replay."
    ),
    "gain_percent": widgets.number("Gain, %", "The same, of the iteration.", "%.3g"),
    "tenth_ns": widgets.number(
        "A tenth, ms",
        "A tenth of its time on the path, with the part that overlaps the kernel before it: the gain if the path stayed where it is.",
    ),
    "executions": widgets.number("Executions", "On the path.", "%d"),
    "ranks": widgets.number("Ranks", "On which it is on the path.", "%d"),
    "inferred": _INFERRED,
    "name": st.column_config.TextColumn("Full name", width="large"),
}
_KINDS: Final = {
    "kind": "Kind",
    "time_ns": widgets.number("On the path, ms"),
    "percent": _SHARE,
    "segments": widgets.number("Segments", style="%d"),
    "longest_ns": widgets.number("Longest, ms", "The longest segment."),
    "inferred": _INFERRED,
}
_HOST: Final = {
    "name": st.column_config.TextColumn("Call or operator", width="medium"),
    "time_ns": widgets.number("On the path, ms"),
    "percent": _SHARE,
    "segments": widgets.number("Segments", style="%d"),
    "ranks": widgets.number("Ranks", "On which it is on the path.", "%d"),
}
