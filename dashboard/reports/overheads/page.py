"""Allocation, copies and release as parts of a whole operation."""

from streamlit.delta_generator import DeltaGenerator

from dashboard.reports.overheads import chart, query
from dashboard.ui import runs, widgets
from dashboard.ui.template import Look
from data import store


def show(run: store.Run, controls: DeltaGenerator, look: Look) -> None:
    """Draw this part of the page, with its choices among the controls."""
    with controls:
        workload = widgets.choose_workload(run)
    frame = runs.ask(run, query.overheads, workload)
    if frame.empty:
        widgets.nothing(f"Allocation and copies of {workload} were not timed in this run.", "Choose another workload or run.")
    widgets.show_chart(chart.overheads(frame, look, workload))
