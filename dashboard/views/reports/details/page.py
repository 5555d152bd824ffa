"""Details: the tables and figures of the source reports, from our samples."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.ui import runs, state, widgets
from warpladder.dashboard.ui.template import Chart, Look
from warpladder.dashboard.ui.text import plain
from warpladder.dashboard.views.reports.details import blocks, copies, overheads, phases, routes
from warpladder.data import store

#: Columns of the table of routes: their headings, and what their numbers are multiplied with.
_ROUTES: Final = {
    "title": ("Route", 0.0),
    "call": ("One call, µs", 1e-3),
    "in_a_row": ("In a row, µs", 1e-3),
    "import": ("Import, ms", 1e-6),
    "compile": ("Compile, ms", 1e-6),
    "compile_cached": ("Compile, cached, ms", 1e-6),
    "load": ("Load, ms", 1e-6),
    "first_call": ("First call, ms", 1e-6),
    "hand_over": ("Hand-over, µs", 1e-3),
    "arrays": ("Arrays", 0.0),
    "why": ("Why not", 0.0),
}


@dataclass(frozen=True)
class _Section:
    """A detail's part of the page, whose choices stand among the controls."""

    run: store.Run
    controls: DeltaGenerator
    look: Look

    def of_workload(
        self, query: Callable[[RunData, str], pd.DataFrame], why_empty: str, what_to_do: str
    ) -> tuple[str, pd.DataFrame]:
        """The workload that the reader chose, and a query of it. Where it is empty, the page ends with the reason.

        Args:
            why_empty: the reason; `{}` is the workload.
        """
        with self.controls:
            workload = widgets.choose_workload(self.run)
        frame = runs.ask(self.run, query, workload)
        if frame.empty:
            widgets.nothing(why_empty.format(workload), what_to_do)
        return workload, frame

    def show(self, chart: Callable[..., Chart], frame: pd.DataFrame, *args: Any) -> None:
        widgets.show_chart(chart(frame, self.look, *args))


def draw(run: store.Run) -> None:
    with (controls := widgets.controls()):
        name = state.choose(
            "topic", "Table", list(_SECTIONS), default=_first(run), text=lambda name: _SECTIONS[name][0], style="segmented"
        )
    _SECTIONS[name][1](_Section(run, controls, runs.look_of(run, widgets.theme())))


def _first(run: store.Run) -> str:
    """The table to show first: the routes of a run of these only, phases where they were traced, the overheads where the first workload
    has no speedups over the host, else these.
    """
    workloads = runs.load(run).workloads
    if workloads == (routes.WORKLOAD,):
        return "routes"
    if runs.ask(run, phases.workloads):
        return "phases"
    over_host = workloads and len(runs.ask(run, copies.with_and_without_copies, workloads[0]))
    return "copies" if over_host or not workloads else "overheads"


def _copies(section: _Section) -> None:
    workload, frame = section.of_workload(
        copies.with_and_without_copies,
        "Speedups over the sequential host code need GPU and host samples of {} in one run.",
        "Choose another run, or record the workload on a machine with a GPU: warpladder record.",
    )
    sizes, first = copies.sizes_to_choose(frame, workload)
    size = ""
    if sizes:
        with section.controls:
            size = state.choose("size", "Size", sizes, default=first)
    section.show(copies.chart, frame, workload, size)


def _overheads(section: _Section) -> None:
    why = "Allocation and copies of {} were not timed in this run."
    workload, frame = section.of_workload(overheads.overheads, why, "Choose another workload or run.")
    section.show(overheads.chart, frame, workload)


def _blocks(section: _Section) -> None:
    why = "No variant of {} was timed with several blocks in this run."
    _, frame = section.of_workload(blocks.block_sensitivity, why, "Choose another workload or run.")
    section.show(blocks.chart, frame)


def _phases(section: _Section) -> None:
    among = runs.ask(section.run, phases.workloads)
    if not among:
        widgets.nothing(
            "This run has no traced kernel that is named after a phase of a step (forward, backward, update).",
            f"Choose another run, or record one: {phases.RECORD}.",
        )
    with section.controls:
        workload = widgets.choose_workload(section.run, among)
        frame = runs.ask(section.run, phases.phases, workload)
        case = state.choose("case", "Case", list(frame["case"].unique()), default=frame["case"].iloc[-1])
    section.show(phases.chart, frame[frame["case"] == case], workload)


def _routes(section: _Section) -> None:
    """The routes as a chart, and as a table with the steps of the first call."""
    frame = runs.ask(section.run, routes.routes)
    timed = routes.timed(frame)
    if timed.empty:
        widgets.nothing(
            f"No route from Python to a kernel ({routes.WORKLOAD}) was timed on a GPU in this run.",
            f"Choose another run, or record one: warpladder record {routes.WORKLOAD} --set full.",
        )
    section.show(routes.chart, timed)
    _table_of_routes(frame)
    st.caption(
        plain(
            "Import to first call: fresh processes with empty caches, after the CUDA context was made. Cached: a process before left its "
            "compiled code on disk. A route without Load loads while it compiles or at the first call. Hand-over: both arrays, once more."
        )
    )


def _table_of_routes(frame: pd.DataFrame) -> None:
    shown = frame.assign(
        **{name: frame[name] * factor for name, (_, factor) in _ROUTES.items() if factor},
        arrays=[
            f"{'zero-copy' if zero_copy else 'copied'}, {interface}" if interface else ""
            for zero_copy, interface in zip(frame["zero_copy"], frame["interface"], strict=True)
        ],
    )
    columns = {name: widgets.number(words, style="%.3g") if factor else words for name, (words, factor) in _ROUTES.items()}
    order = [name for name in _ROUTES if name != "why" or (frame["why"] != "").any()]
    widgets.table(shown, column_order=order, column_config=columns, height="content")


#: The name of each detail -> its title and its part of the page.
_SECTIONS: Final[Mapping[str, tuple[str, Callable[[_Section], None]]]] = {
    "copies": ("With and without copies", _copies),
    "overheads": ("Overheads", _overheads),
    "blocks": ("Block size", _blocks),
    "phases": ("Phases of a step", _phases),
    "routes": ("Routes from Python", _routes),
}
