"""Ranks: where the time of a job goes, by rank and iteration, and which ranks differ."""

from typing import Final

import streamlit as st

from warpladder.dashboard.core.job_graph.pipelines import PARTS as PARTS_OF_STAGES
from warpladder.dashboard.ui import runs, state, widgets
from warpladder.dashboard.ui.text import plain
from warpladder.dashboard.ui.widgets import number
from warpladder.dashboard.views.ranks import chart, query
from warpladder.data import store
from warpladder.data.words import first_of

_NAMED: Final = 5  # of the ranks without a profile
_AS: Final = {"share": "% of span", "time": "time"}


def draw(run: store.Run) -> None:
    if not runs.load(run).job:
        widgets.no_job(run)
    look = runs.look_of(run, widgets.theme())
    cells, answer = runs.ask(run, query.by_iteration), runs.ask(run, query.answer)
    with widgets.controls():
        figure = state.choose("figure", "Figure", query.known_figures(cells), text=query.FIGURES.__getitem__)
        shown_as = state.choose("as", "As", list(_AS), text=_AS.__getitem__, style="segmented")
    widgets.show_chart(widgets.drawn(chart.over_iterations, cells, figure, answer.sentence, look, share=shown_as == "share"))
    if answer.reasons:
        st.caption(plain(f"{answer.lateness[0].upper()}{answer.lateness[1:]}: {'; '.join(answer.reasons)}."))
    elif why := runs.ask(run, query.cause):
        st.caption(plain(f"Cause: {why}."))
    if answer.outside:
        st.caption(plain(f"{answer.outside}."))
    _without_profile(run)
    ranks = runs.ask(run, query.breakdown)
    widgets.show_chart(widgets.drawn(chart.breakdown, ranks, look))
    if len(passes := runs.ask(run, query.passes)):
        widgets.show_chart(widgets.drawn(chart.gantt, passes, look))
        st.markdown("## Where the time of each stage goes")
        st.caption(
            "In sum over its ranks and iterations; the parts add up to the time. A bubble's parts come from replays: of equal stages, then with the "
            "measured stages, hosts and transfers, one after the other."
        )
        widgets.table_of_times(runs.ask(run, query.stages), _STAGES)
    if len(rows := runs.ask(run, query.routed)):
        widgets.show_chart(widgets.drawn(chart.routes, rows, look))
    if len(after := runs.ask(run, query.after_changes)):
        st.markdown("## What a step would take after one change")
        st.caption(
            "A replay of the job with the change, under the profiler. The range goes from the shortest to the longest step. "
            "Give the step without the profiler to `warpladder forecast RUN --step-time`, and its cost is taken off."
        )
        widgets.table_of_times(after, _AFTER)
    if len(along := runs.ask(run, query.by_dimension)) > 1:
        st.markdown("## Exposed communication by dimension")
        st.caption(
            "In sum over ranks and iterations. Exposed communication belongs to the collective or message that the rank began last, and is the wait for "
            "other ranks plus the transfer."
        )
        widgets.table_of_times(along, _DIMENSIONS)
    st.markdown("## Ranks, outliers first")
    hidden = query.PARTS.keys() - query.parts(ranks).keys()
    ranks = ranks.assign(late=ranks["late"].map({True: "late", False: ""}))
    widgets.table_of_times(ranks, {name: column for name, column in _COLUMNS.items() if name not in hidden})
    gpus = runs.ask(run, query.gpus)
    if len(gpus):
        st.markdown("## GPUs of ranks with several")
        st.caption(
            "Each GPU from the start of the rank's first device work to the end of its last. The times of a rank are sums over its GPUs."
        )
        widgets.table_of_times(gpus, {name: column for name, column in _GPUS.items() if name not in hidden})
    st.markdown("## Idle time of each stream by cause")
    st.caption("Gaps between the work of a stream, in sum over the ranks. Other streams may be busy meanwhile.")
    widgets.table_of_times(runs.ask(run, query.idle_by_stream), _IDLE)


def _without_profile(run: store.Run) -> None:
    """Name the ranks that are broken or missing, and why."""
    absent = runs.ask(run, query.without_profile)
    if absent.empty:
        return
    for (status, detail), group in list(absent.groupby(["status", "detail"], sort=False))[:_NAMED]:
        names = first_of(group["rank"], _NAMED)
        st.warning(
            plain(f"{'Rank' if len(group) == 1 else 'Ranks'} {names}: {status}; {detail}. The figures are those of the others.")
        )


_COLUMNS: Final = {
    "rank": number("Rank", style="%d"),
    "host": "Host",
    "distance": number("Distance", chart.DISTANCE, "%+.1f"),
    "differs_in": "Differs in",
    "late": st.column_config.TextColumn("Late", help="The other ranks wait for it, beyond the uncertainty."),
    "cause": "Cause",
    "span_ns": number("Span, ms"),
    "compute_ns": number("Compute, ms"),
    "graph_ns": number("CUDA graphs, ms", "Graphs that were traced whole. What ran in them is not known."),
    "exposed_ns": number("Exposed, ms", "Communication while no compute runs."),
    "wait_ns": number("Wait, ms", "Time in communication until the last rank arrives."),
    "last": st.column_config.NumberColumn("Last", help="How often the rank came last to a collective."),
    "copies_ns": number("Copies, ms", "Copies and sets while neither compute nor communication runs."),
    "host_wait_ns": number("Host wait, ms", "Idle, and the next work was not launched yet."),
    "kernel_wait_ns": number("Kernel wait, ms", "Idle for less than 30 µs, and the next work was launched."),
    "other_idle_ns": number("Other idle, ms"),
}
_GPU: Final = number("GPU", style="%d")
_AFTER: Final = {
    "change": "Change",
    "step_ns": number("Step, ms"),
    "gain": number("Gain, %", style="%.1f"),
    "low_ns": number("Shortest, ms"),
    "high_ns": number("Longest, ms"),
}
_STAGES: Final = {
    "stage": number("Stage", style="%d"),
    "ranks": "Ranks",
    "span_ns": number("Time, ms"),
    **{name: number(f"{words.capitalize()}, ms") for name, words in PARTS_OF_STAGES.items()},
}
_DIMENSIONS: Final = {
    "dimension": "Dimension",
    "count": "Communications",
    "exposed_ns": number("Exposed, ms"),
    "percent": number("Of the time, %", style="%.1f"),
    "wait_ns": number("Wait, ms"),
    "transfer_ns": number("Transfer, ms"),
}
_GPUS: Final = {
    "device": _GPU,
    "busy_percent": number("Busy, %", style="%.1f"),
    **{name: column for name, column in _COLUMNS.items() if name == "rank" or name.endswith("_ns")},
}
_IDLE: Final = {
    "device": _GPU,
    "stream": number("Stream", style="%d"),
    "ranks": "Ranks",
    "host_wait_ns": number("Host wait, ms", "The next work was not launched when the last one ended."),
    "host_wait_count": "Gaps",
    "kernel_wait_ns": number("Kernel wait, ms", "Less than 30 µs, and the next work was launched."),
    "kernel_wait_count": "Gaps ",
    "other_ns": number("Other, ms"),
    "other_count": "Gaps  ",
    "queue_most": st.column_config.NumberColumn("Longest queue", help="The most kernels that were launched and not started."),
}
