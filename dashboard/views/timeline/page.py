"""Timeline: the events of every stream and thread, from the whole trace down to nanoseconds."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

import numpy as np
import pandas as pd
import streamlit as st

from warpladder.dashboard.core.numbers import format_duration
from warpladder.dashboard.core.traces import Traces
from warpladder.dashboard.trace import attribution
from warpladder.dashboard.trace.lanes import MOST_LAYERS, Lane, Lanes, build, memory_in_use
from warpladder.dashboard.ui import runs, state, widgets
from warpladder.dashboard.ui.text import plain, short
from warpladder.dashboard.ui.widgets import number
from warpladder.dashboard.views.timeline import chart, collectives, query, selection
from warpladder.dashboard.views.timeline.component import Act, timeline
from warpladder.dashboard.views.timeline.selection import ChosenEvent, Search, SearchHits
from warpladder.dashboard.views.timeline.visible import VisibleWork, answer, gpu_table, kernel_table, visible
from warpladder.data import store
from warpladder.data.arrays import NONE

_KINDS: Final[Mapping[str, str]] = {"device": "GPU", "ranges": "Ranges", "calls": "API calls"}
_COLOR: Final = {"variant": "variant", "kernel": "kernel name"}
#: Of more ranks, only the GPUs are shown at first, so that a collective fits on a screen.
_MOST_WHOLE: Final = 3
_TITLE_CHARACTERS: Final = 90
_NUMBER: Final = "timeline act"
_WIDTH: Final = "timeline pixels"
_VISIBLE: Final = "timeline visible"
_COLUMNS: Final = {
    "what": "What",
    "name": "Name",
    "count": "Count",
    "total_ns": number("Total (ns)", style="localized"),
    "busy_ns": number("Busy (ns)", "Time in which at least one of them ran.", "localized"),
    "bytes": number("Bytes", style="localized"),
    "start_ns": number("Start (ns)", "From the start of the trace.", "localized"),
    "duration_ns": number("Duration (ns)", style="localized"),
    "first_ns": number("First starts (ns)", "From the start of the trace.", "localized"),
    "last_ns": number("Last ends (ns)", "From the start of the trace.", "localized"),
}
_OF_GPUS: Final = {
    "gpu": st.column_config.TextColumn("GPU", width="medium"),
    "busy_ns": number("Busy (ns)", "Time in which a kernel or copy ran.", "localized"),
    "busy": number("Busy", "A kernel or copy ran, on any stream.", "percent"),
    "idle": number("Idle", "Neither a kernel nor a copy ran.", "percent"),
    "kernels": number("Kernels", "A kernel ran, on any stream.", "percent"),
    "copies": number("Copies", "A copy or memset ran, on any stream.", "percent"),
}
_OF_PARTS: Final = {
    "rank": number("Rank", style="%d"),
    "after_ns": number("Arrived after the first (ns)", "Start of its kernel.", "localized"),
    "wait_ns": number("Wait (ns)", "From its arrival to that of the last rank.", "localized"),
    "transfer_ns": number("Transfer (ns)", "From the arrival of the last rank to its own end.", "localized"),
}
_OF_KERNELS: Final = {
    "kernel": st.column_config.TextColumn("Kernel", width="medium"),
    "count": number("Count", "Kernels that ran in the span, also in part.", "localized"),
    "total_ns": number("Total (ns)", "Summed, also where several ran at once.", "localized"),
    "mean_ns": number("Mean (ns)", style="localized"),
    "share": number("Share", "Total over the length of the span, on average over the GPUs.", "percent"),
    "full_name": st.column_config.TextColumn("Full name", width="large"),
}


def draw(run: store.Run) -> None:
    lanes: Lanes | None = runs.share(run, build) if runs.load(run).traces else None
    if lanes is None:
        widgets.no_trace(run, "no trace", "--trace=cuda,nvtx")
    shown, left_out, color_by = _choose(run, lanes)
    if left_out:
        st.caption(
            f"Of {len(lanes.lanes)} lanes, {left_out} of the least busy streams and threads are left out. All shows them."
        )
    widgets.attribution(run)
    if lanes.too_deep:
        st.caption(
            f"{lanes.too_deep:,} events overlap {MOST_LAYERS} or more others at once and are not drawn, found or counted."
        )
    _draw(run, lanes, shown, color_by)


def _choose(run: store.Run, lanes: Lanes) -> tuple[list[Lane], int, query.ColorBy]:
    """The lanes to show, the number of lanes of the chosen kinds that are left out, and the meaning of the colours."""
    busiest = lanes.busiest()
    with widgets.controls():
        kinds = [kind for kind in _KINDS if any(lane.kind == kind for lane in lanes.lanes)]
        first = kinds[:1] if lanes.of_ranks and lanes.processes > _MOST_WHOLE else kinds
        chosen = state.choose_many("lanes", "Lanes", kinds, default=first, text=_KINDS.__getitem__) if len(kinds) > 1 else kinds
        every = lanes.lanes
        if len(busiest) < len(lanes.lanes):
            extent = state.choose(
                "show",
                "Lanes shown",
                ["busiest", "all"],
                text=lambda name: f"{name} {len(busiest if name == 'busiest' else every)}",
                style="segmented",
                labelled=False,
            )
            every = busiest if extent == "busiest" else every
        has_variants = not query.variants(runs.load(run).traces).empty
        by = (
            state.choose(
                "color",
                "Colours",
                ["variant", "kernel"] if has_variants else ["kernel"],
                style="segmented",
                labelled=False,
                text=lambda name: f"by {_COLOR[name]}",
            )
            if has_variants
            else "kernel"
        )
    shown = [lane for lane in every if lane.kind in chosen]
    of_kinds = [lane for lane in lanes.lanes if lane.kind in chosen]
    return shown, len(of_kinds) - len(shown), "variant" if by == "variant" else "kernel"


@st.fragment
def _draw(run: store.Run, lanes: Lanes, shown: Sequence[Lane], color_by: query.ColorBy) -> None:
    """Draw the canvas and the tables below it. Only this fragment is drawn again while a user pans, zooms and searches."""
    traces = runs.load(run).traces
    # Asked for again, so that the lanes stay among the last results while a user steps through many events.
    runs.share(run, build)
    coloring = runs.share(run, query.coloring, lanes, color_by)
    look = runs.look_of(run, widgets.theme())
    begin, end = _span(run, lanes, "window", "window", "; showing all of it") or (lanes.begin_ns, lanes.end_ns)
    measured = _span(run, lanes, "measure", "measured span")
    address = state.text_of("chosen", run.run_id)
    chosen = selection.parse(address, traces)
    if address and chosen is None:
        st.caption(plain(f"The link asks for {short(address)}, which is not in this trace."))
    matches = runs.ask(run, collectives.matches)
    match = int(matches[chosen.row]) if chosen and chosen.table == "kernels" and len(matches) else NONE
    linked = tuple(np.flatnonzero(matches == match).tolist()) if match != NONE else ()
    lit = runs.share(run, selection.belongs, chosen, linked) if chosen else None
    of_collective = [ChosenEvent("kernels", row) for row in linked]
    launched = selection.launch_of(traces, chosen) if chosen else []
    memory = runs.share(run, memory_in_use, lanes.processes > 1) if any(lane.kind == "device" for lane in shown) else []
    shown = selection.with_chosen(traces, lanes, shown, chosen, [*of_collective, *launched])
    window = query.window(begin, end, len(shown), st.session_state.get(_WIDTH, chart.PIXELS))
    scene = query.scene(traces, lanes, shown, window, coloring, lit)
    search = _search(run, shown)
    hits = _search_hits(run, lanes, search, window, chosen)

    def act(what: Act) -> None:
        _follow(run, lanes, what)
        if what.step and what.search:
            _step(run, lanes, Search(what.search, search.kinds), chosen, what)

    data = chart.contents(scene, window, traces, lanes, coloring, look, matches, memory)
    span = selection.span_of(traces, lanes, shown, chosen, of_collective, launched)
    measure = None if measured is None else (measured[0] - lanes.begin_ns, measured[1] - lanes.begin_ns)
    answers = {"number": st.session_state.get(_NUMBER, 0), "chosen": span, "search": hits, "measure": measure}
    timeline("timeline", data | answers, act)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.caption("The height of a bar is the busy share of its time.")
        table = partial(chart.table, scene, window, traces, lanes, coloring, look)
        widgets.save_csv("CSV", table, "timeline.csv", "download timeline")
    if chosen:
        _panel(run, traces, lanes, chosen)
        if match != NONE:
            _collective(run, match, int(traces.numbers("kernels", "process")[chosen.row]))
    _tables(run, _visible(run, lanes, measured or (begin, end)), coloring.short, measured is not None)
    _read_ahead(traces)


def _read_ahead(traces: Traces) -> None:
    """While the browser draws a window, read the columns that a narrower one needs."""
    if "ranges" in traces.tables:
        for table in attribution.TABLES:
            if table in traces.tables:
                traces.ranges_of_work(table)
        if "api_calls" in traces.tables:
            traces.read("api_calls", "range_id")


def _search(run: store.Run, shown: Sequence[Lane]) -> Search:
    """The search of the URL, among the kinds of lanes that are shown."""
    kinds = tuple(kind for kind in _KINDS if any(lane.kind == kind for lane in shown))
    return Search(state.text_of("search", run.run_id)[: selection.MOST_CHARACTERS], kinds)


def _search_hits(run: store.Run, lanes: Lanes, search: Search, window: query.Window, chosen: ChosenEvent | None) -> SearchHits:
    if not search.text:
        return SearchHits(text="", total=0, place=-1, marks=[])
    hits = runs.share(run, selection.hits, lanes, search)
    place = selection.place_of(runs.load(run).traces, lanes, hits, chosen)
    return SearchHits(text=search.text, total=len(hits), place=place, marks=hits.bins(window.edges).tolist())


def _span(run: store.Run, lanes: Lanes, name: str, what: str, instead: str = "") -> tuple[int, int] | None:
    """A span of the URL, on the trace's clock; None where the URL has none, or none of this trace, which is told."""
    address = state.text_of(name, run.run_id)
    span = _parse_span(lanes, address)
    if address and span is None:
        st.caption(plain(f"The link asks for the {what} {short(address)}, which is not in this trace{instead}."))
    return span


def _parse_span(lanes: Lanes, span: str) -> tuple[int, int] | None:
    """`120-340`, from the start of the trace, as a span on its clock; None where the trace has no such span."""
    begin, _, end = span.partition("-")
    if begin.isdecimal() and end.isdecimal() and len(span) < 40:
        low, high = lanes.begin_ns + int(begin), lanes.begin_ns + int(end)
        if low < high and low < lanes.end_ns:
            return low, min(high, lanes.end_ns)
    return None


def _follow(run: store.Run, lanes: Lanes, act: Act) -> None:
    """Keep an act on the canvas for the next rerun and for the URL."""
    st.session_state[_NUMBER] = act.number
    st.session_state[_WIDTH] = act.pixels
    length = lanes.end_ns - lanes.begin_ns
    begin, end = max(act.window[0], 0), min(act.window[1], length)
    if begin < end:
        _keep_window(run, lanes, begin, end)
    if act.measure is not None:
        first, last = max(act.measure[0], 0), min(act.measure[1], length)
        state.set_text("measure", run.run_id, f"{first}-{last}" if first < last else "")
    if act.search is not None:
        state.set_text("search", run.run_id, act.search)
    if act.pick is not None:
        kind, row = act.pick
        lane = next((lane for lane in lanes.lanes if lane.kind == kind), None)
        state.set_text("chosen", run.run_id, str(selection.chosen_of(lanes, lane, row)) if lane and row >= 0 else "")


def _keep_window(run: store.Run, lanes: Lanes, begin: int, end: int) -> None:
    is_all = (begin, end) == (0, lanes.end_ns - lanes.begin_ns)
    state.set_text("window", run.run_id, "" if is_all else f"{begin}-{end}")


def _step(run: store.Run, lanes: Lanes, search: Search, chosen: ChosenEvent | None, act: Act) -> None:
    """Choose a hit of the search, and move the window to it."""
    traces, (begin, end) = runs.load(run).traces, (lanes.begin_ns + time for time in act.window)
    if begin >= end:
        return
    hit = selection.step(traces, lanes, runs.share(run, selection.hits, lanes, search), chosen, (begin, end), act.step)
    if hit is not None:
        state.set_text("chosen", run.run_id, str(hit))
        begin, end = selection.window_on(lanes, (begin, end), *selection.span(traces, hit, lanes.end_ns))
        _keep_window(run, lanes, begin - lanes.begin_ns, end - lanes.begin_ns)


def _panel(run: store.Run, traces: Traces, lanes: Lanes, chosen: ChosenEvent) -> None:
    """The events that belong to the chosen one, as a table with a download."""
    begin, end = selection.span(traces, chosen, lanes.end_ns)
    title = selection.title(traces, chosen)
    st.markdown(f"## {plain(title if len(title) <= _TITLE_CHARACTERS else title[: _TITLE_CHARACTERS - 1] + '…')}")
    if chosen.table == "ranges":
        frame, busy = runs.share(run, selection.work, chosen, lanes.begin_ns), runs.share(run, selection.busy_ns, chosen)
        by_time = runs.share(run, selection.by_time_ns, chosen)
        other = f", {format_duration(by_time)} of it attributed to it by time" if by_time else ""
        totals = frame.groupby("what")["count"].sum()  # kernels, then memory operations
        counts = ", ".join(f"{count} {what}{'s' if count != 1 else ''}" for what, count in totals.items())
        line = (
            f"Launched in it: {counts}; the GPU was busy for {format_duration(busy)}{other}."
            if counts
            else "It launched no device work."
        )
    else:
        frame = selection.around(traces, chosen, lanes.begin_ns)
        operators = selection.operators_of(traces, chosen)
        source = selection.source_of(traces, operators)
        of = f"Launched by {query.text_of(traces, 'operations', 'name', operators[:1])[0]}. " if len(operators) else ""
        at = f"Called at {source}. " if source else ""
        line = f"{of}{at}Below: the call that launched it, other work of that call, and the operators and ranges around it."
    st.caption(plain(f"Lasts {format_duration(end - begin)}. {line}"))
    if len(frame):
        widgets.table(frame, column_config=_COLUMNS, height=widgets.height(frame, 7, 300))
        widgets.save_csv("CSV", frame, f"timeline-{chosen}.csv", "download chosen")


def _collective(run: store.Run, match: int, rank: int) -> None:
    """Who came last to the collective of the chosen kernel, and the arrival and wait of each rank."""
    found = runs.ask(run, collectives.parts, match)
    st.markdown(f"## {plain(collectives.sentence(found, rank))}")
    widgets.table(found, column_order=list(_OF_PARTS), column_config=_OF_PARTS, height=widgets.height(found, 9, 360))


def _visible(run: store.Run, lanes: Lanes, span: tuple[int, int]) -> VisibleWork:
    """What ran in a span. The last answer of the session is kept, because most acts leave the span as it is."""
    last: tuple[Any, VisibleWork] | None = st.session_state.get(_VISIBLE)
    if last is None or last[0] != (run.path, span):
        last = (run.path, span), visible(runs.load(run).traces, lanes, *span, int(run.info["device_count"] or 0))
        st.session_state[_VISIBLE] = last
    return last[1]


def _tables(run: store.Run, seen: VisibleWork, brief: Mapping[str, str], measured: bool) -> None:
    """The GPUs and the kernels of a span of time as tables with downloads. Nothing for a trace without device work.

    Args:
        brief: short names of kernels by their full names.
        measured: the span was measured; else it is the window.
    """
    if seen.gpus.empty:
        return
    st.markdown(f"## {plain(answer(seen, measured))}")
    table_of_gpus, table_of_kernels = gpu_table(seen), kernel_table(seen, brief)
    widgets.table(table_of_gpus, column_config=_OF_GPUS, height=widgets.height(table_of_gpus, 9, 360))
    if len(table_of_kernels):
        _choose_kernel(run, table_of_kernels)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        span = "measured span" if measured else "window, or to a measured span"
        st.caption(f"Times are cut to the {span}. All streams count. A chosen kernel (Shift+Space) is searched for.")
        for what, frame in (("GPUs", table_of_gpus), ("Kernels", table_of_kernels)):
            if len(frame):
                widgets.save_csv(f"{what} as CSV", frame, f"timeline-{what.lower()}.csv", f"download {what}")


def _choose_kernel(run: store.Run, table: pd.DataFrame) -> None:
    """The kernels as a table. A chosen row becomes the search, so that its kernels can be stepped through."""

    def search_for(row: int) -> None:
        state.set_text("search", run.run_id, str(table["full_name"].iloc[row])[: selection.MOST_CHARACTERS])

    options = {"column_config": _OF_KERNELS, "height": widgets.height(table, 7, 300)}
    widgets.table_to_choose(table, "kernels of the span", search_for, **options)
