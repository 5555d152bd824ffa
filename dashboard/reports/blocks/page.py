"""How much the block size matters."""

from streamlit.delta_generator import DeltaGenerator

from warpladder.dashboard.reports.blocks import chart, query
from warpladder.dashboard.ui import runs, widgets
from warpladder.dashboard.ui.template import Look
from warpladder.data import store


def show(run: store.Run, controls: DeltaGenerator, look: Look) -> None:
    """Draw this part of the page, with its choices among the controls."""
    with controls:
        workload = widgets.choose_workload(run)
    frame = runs.ask(run, query.block_sensitivity, workload)
    if frame.empty:
        widgets.nothing(
            f"No variant of {workload} was timed with several blocks in this run.", "Choose another workload or run."
        )
    widgets.show_chart(chart.block_sensitivity(frame, look))
