"""The shares of allocation, copies and release in a whole operation."""

from streamlit.delta_generator import DeltaGenerator

from warpladder.dashboard.reports.overheads import chart, query
from warpladder.dashboard.ui import runs, widgets
from warpladder.dashboard.ui.template import Look
from warpladder.data import store


def show(run: store.Run, controls: DeltaGenerator, look: Look) -> None:
    """Draw this part of the page, with its choices among the controls."""
    with controls:
        workload = widgets.choose_workload(run)
    frame = runs.ask(run, query.overheads, workload)
    if frame.empty:
        widgets.nothing(f"Allocation and copies of {workload} were not timed in this run.", "Choose another workload or run.")
    widgets.show_chart(chart.overheads(frame, look, workload))
