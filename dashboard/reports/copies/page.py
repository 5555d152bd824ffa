"""Speedups over the sequential host code, with and without the copies."""

from streamlit.delta_generator import DeltaGenerator

from warpladder.dashboard.reports.copies import chart, query
from warpladder.dashboard.ui import runs, state, widgets
from warpladder.dashboard.ui.template import Look
from warpladder.data import store


def show(run: store.Run, controls: DeltaGenerator, look: Look) -> None:
    """Draw this part of the page, with its choices among the controls."""
    with controls:
        workload = widgets.choose_workload(run)
    frame = runs.ask(run, query.with_and_without_copies, workload)
    if frame.empty:
        widgets.nothing(
            f"Speedups over the sequential host code need GPU and host samples of {workload} in one run.",
            "Choose another run, or record the workload on a machine with a GPU: make record.",
        )
    sizes, first = query.sizes_to_choose(frame, workload)
    size = ""
    if sizes:
        with controls:
            size = state.choose("size", "Size", sizes, default=first)
    widgets.show_chart(chart.with_and_without_copies(frame, look, workload, size))
