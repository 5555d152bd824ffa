"""Timeline: the events of every stream and thread, from the whole trace down to nanoseconds."""

from typing import Any, Final

import pandas as pd
import streamlit as st

from warpladder.dashboard.core.traces import Traces
from warpladder.dashboard.trace import attribution
from warpladder.dashboard.trace.lanes import MOST_LAYERS, Lane, Lanes, build
from warpladder.dashboard.ui import runs, spreadsheet, state, widgets
from warpladder.dashboard.ui.numbers import format_duration
from warpladder.dashboard.ui.template import Look
from warpladder.dashboard.ui.text import plain, short
from warpladder.dashboard.views.timeline import VIEW
from warpladder.dashboard.views.timeline import chart as charts
from warpladder.dashboard.views.timeline import detail as timeline_detail
from warpladder.dashboard.views.timeline import query as queries
from warpladder.dashboard.views.timeline import selection as timeline_selection
from warpladder.dashboard.views.timeline.component import Act, payload, timeline
from warpladder.dashboard.views.timeline.selection import Chosen
from warpladder.data import store

_KINDS: Final = {"device": "GPU", "ranges": "Ranges", "calls": "API calls"}
_COLOR: Final = {"variant": "variant", "kernel": "kernel name"}
_TITLE_CHARACTERS: Final = 90
_NUMBER: Final = "timeline act"
_WIDTH: Final = "timeline pixels"
_COLUMNS: Final = {
    "what": "What",
    "name": "Name",
    "count": "Count",
    "total_ns": st.column_config.NumberColumn("Total (ns)", format="localized"),
    "busy_ns": st.column_config.NumberColumn("Busy (ns)", format="localized", help="Time in which at least one of them ran."),
    "bytes": st.column_config.NumberColumn("Bytes", format="localized"),
    "start_ns": st.column_config.NumberColumn("Start (ns)", format="localized", help="From the start of the trace."),
    "duration_ns": st.column_config.NumberColumn("Duration (ns)", format="localized"),
    "first_ns": st.column_config.NumberColumn("First starts (ns)", format="localized", help="From the start of the trace."),
    "last_ns": st.column_config.NumberColumn("Last ends (ns)", format="localized", help="From the start of the trace."),
}


def page() -> None:
    """Draw the page."""
    run = widgets.run_of_page()
    widgets.heading(VIEW)
    lanes: Lanes | None = runs.share(runs.as_recorded(run), build) if runs.load(run).traces else None
    if lanes is None:
        widgets.no_trace(run, VIEW, "no trace", "--trace=cuda,nvtx")
    shown, left_out, color_by = _choose(run, lanes)
    if left_out:
        st.caption(
            f"{left_out} lanes of the least busy streams and threads, out of {len(lanes.lanes)}, are left out. All shows them."
        )
    widgets.attribution(run)
    if lanes.too_deep:
        st.caption(f"{lanes.too_deep:,} events overlap {MOST_LAYERS} or more others at once and are not drawn.")
    _draw(run, lanes, shown, left_out, color_by)
    widgets.end_page()


def _choose(run: store.Run, lanes: Lanes) -> tuple[list[Lane], int, queries.ColorBy]:
    """The lanes to show, the number of lanes of the chosen kinds that are left out, and the meaning of the colours."""
    busiest = lanes.busiest()
    with widgets.controls():
        kinds = [kind for kind in _KINDS if any(lane.kind == kind for lane in lanes.lanes)]
        chosen = state.choose_many("lanes", "Lanes", kinds, default=kinds, text=_KINDS.__getitem__) if len(kinds) > 1 else kinds
        every = lanes.lanes
        if len(busiest) < len(lanes.lanes):
            which = state.choose(
                "show",
                "Lanes shown",
                ["busiest", "all"],
                text=lambda name: f"{name} {len(busiest if name == 'busiest' else every)}",
                style="segmented",
                labelled=False,
            )
            every = busiest if which == "busiest" else every
        named = not queries.variants(runs.load(run).traces).empty
        by = (
            state.choose(
                "color",
                "Colours",
                ["variant", "kernel"] if named else ["kernel"],
                style="segmented",
                labelled=False,
                text=lambda name: f"by {_COLOR[name]}",
            )
            if named
            else "kernel"
        )
    shown = [lane for lane in every if lane.kind in chosen]
    asked = [lane for lane in lanes.lanes if lane.kind in chosen]
    return shown, len(asked) - len(shown), "variant" if by == "variant" else "kernel"


@st.fragment
def _draw(run: store.Run, lanes: Lanes, shown: list[Lane], left_out: int, color_by: queries.ColorBy) -> None:
    """Draw the canvas and the chosen event. Only this fragment is drawn again while a user pans and zooms."""
    traces = runs.load(run).traces
    coloring = runs.share(run, queries.coloring, lanes, color_by)
    look = runs.look_of(run, widgets.theme())
    begin, end = _window(run, lanes)
    window = timeline_detail.window(begin, end, len(shown), st.session_state.get(_WIDTH, charts.PIXELS))
    asked = state.text_of("chosen", run.run_id)
    chosen = timeline_selection.parse(asked, traces)
    if asked and chosen is None:
        st.caption(plain(f"The link asks for {short(asked)}, which is not in this trace."))
    lit = runs.share(run, timeline_selection.belongs, chosen) if chosen else None
    scene = queries.scene(traces, lanes, shown, window, coloring, lit)

    def act(what: Act) -> None:
        _follow(run, lanes, what)

    timeline("timeline", _payload(scene, window, traces, lanes, coloring, look, chosen), act)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.caption(
            "Drag to pan, use the wheel to zoom, click an event to see what belongs to it. The height of a bar is the busy "
            "share of its time."
        )
        widgets.downloads(
            "timeline", lambda: charts.timeline(scene, window, traces, lanes, coloring, look, left_out), "timeline"
        )
    if chosen:
        _panel(run, traces, lanes, chosen)
    # While the browser draws this window, read the columns that a narrower window needs.
    if "ranges" in traces.tables:
        for table in attribution.TABLES:
            if table in traces.tables:
                traces.ranges_of_work(table)
        if "api_calls" in traces.tables:
            traces.read("api_calls", "range_id")


def _window(run: store.Run, lanes: Lanes) -> tuple[int, int]:
    """The window of the URL, on the trace's clock; the whole trace where the URL has no window."""
    asked = state.text_of("window", run.run_id)
    begin, _, end = asked.partition("-")
    if begin.isdecimal() and end.isdecimal() and len(asked) < 40:
        low, high = lanes.begin_ns + int(begin), lanes.begin_ns + int(end)
        if low < high and low < lanes.end_ns:
            return low, min(high, lanes.end_ns)
    if asked:
        st.caption(plain(f"The link asks for the window {short(asked)}, which is not in this trace; showing all of it."))
    return lanes.begin_ns, lanes.end_ns


def _follow(run: store.Run, lanes: Lanes, act: Act) -> None:
    """Keep an act on the canvas for the next rerun and for the URL."""
    length = lanes.end_ns - lanes.begin_ns
    begin, end = max(act.window[0], 0), min(act.window[1], length)
    if begin < end:
        state.set_text("window", run.run_id, "" if (begin, end) == (0, length) else f"{begin}-{end}")
    if act.pick is not None:
        kind, row = act.pick
        lane = next((lane for lane in lanes.lanes if lane.kind == kind), None)
        state.set_text("chosen", run.run_id, str(timeline_selection.chosen_of(lanes, lane, row)) if lane and row >= 0 else "")
    st.session_state[_NUMBER] = act.number
    st.session_state[_WIDTH] = act.pixels


def _payload(
    scene: list[queries.Shown],
    window: timeline_detail.Window,
    traces: Traces,
    lanes: Lanes,
    coloring: queries.Coloring,
    look: Look,
    chosen: Chosen | None,
) -> dict[str, Any]:
    texts: dict[str, int] = {}
    drawn = []
    for shown in scene:
        lane, part = shown.lane, shown.detail
        called, notes = charts.words(traces, lanes, shown)
        drawn.append(
            {
                "group": lane.group,
                "label": lane.label,
                "kind": lane.kind,
                "start": (lane.start[part.alone] - lanes.begin_ns).tolist(),
                "end": (lane.end(part.alone) - lanes.begin_ns).tolist(),
                "color": shown.alone_color.tolist(),
                "lit": shown.alone_lit.astype(int).tolist(),
                "row": lane.row[part.alone].tolist(),
                "name": [texts.setdefault(name, len(texts)) for name in called],
                "note": [texts.setdefault(note, len(texts)) for note in notes],
                "bin": part.bin.tolist(),
                "busy": part.busy_ns.tolist(),
                "count": part.count.tolist(),
                "barColor": shown.bar_color.tolist(),
                "barLit": shown.bar_lit.astype(int).tolist(),
            }
        )
    return payload(
        drawn,
        list(texts),
        window=(window.begin_ns - lanes.begin_ns, window.end_ns - lanes.begin_ns),
        bins=window.bins,
        length=lanes.end_ns - lanes.begin_ns,
        colors=charts.colors(coloring.swatches, look),
        swatches=charts.swatch_names(coloring, look),
        legend=charts.legend(scene, coloring, look),
        thin=[place for place, each in enumerate(coloring.swatches) if each.kind == "copy"],
        tones=look.tones,
        number=st.session_state.get(_NUMBER, 0),
        chosen=chosen is not None,
    )


def _panel(run: store.Run, traces: Traces, lanes: Lanes, chosen: Chosen) -> None:
    """Show the events that belong to the chosen one as a table with a download."""
    begin, end = timeline_selection.span(traces, chosen, lanes.end_ns)
    title = timeline_selection.title(traces, chosen)
    st.markdown(f"## {plain(title if len(title) <= _TITLE_CHARACTERS else title[: _TITLE_CHARACTERS - 1] + '…')}")
    if chosen.table == "ranges":
        frame, busy = runs.share(run, timeline_selection.work_and_busy_ns, chosen, lanes.begin_ns)
        by_time = runs.share(run, timeline_selection.by_time_ns, chosen)
        other = f", {format_duration(by_time)} of it attributed to it by time" if by_time else ""
        counts = ", ".join(
            f"{rows['count'].sum()} {what}{'s' if rows['count'].sum() != 1 else ''}" for what, rows in _by_what(frame)
        )
        line = (
            f"Launched in it: {counts}; the GPU was busy for {format_duration(busy)}{other}."
            if counts
            else "It launched no device work."
        )
    else:
        frame = timeline_selection.around(traces, chosen, lanes.begin_ns)
        line = "Below: the call that launched it, other work of that call, and the ranges around it."
    st.caption(plain(f"Lasts {format_duration(end - begin)}. {line}"))
    if len(frame):
        widgets.table(frame, column_config=_COLUMNS, height="content" if len(frame) < 8 else 300)
        st.download_button(
            "CSV",
            lambda: spreadsheet.csv(frame),
            f"timeline-{chosen}.csv",
            "text/csv",
            key="download chosen",
            type="tertiary",
            on_click="ignore",
        )


def _by_what(frame: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    return [(what, frame[frame["what"] == what]) for what in ("kernel", "memory operation") if (frame["what"] == what).any()]


page()
