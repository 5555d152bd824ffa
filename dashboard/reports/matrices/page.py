"""One permutation as a stack of matrices and as a tensor."""

from streamlit.delta_generator import DeltaGenerator

from warpladder.dashboard.reports.matrices import chart, query
from warpladder.dashboard.ui import runs, widgets
from warpladder.dashboard.ui.template import Look
from warpladder.data import store


def show(run: store.Run, controls: DeltaGenerator, look: Look) -> None:
    """Draw this part of the page, with its choices among the controls."""
    frame = runs.ask(run, query.matrix_and_tensor)
    if frame.empty:
        widgets.nothing(f"This run has no GPU times of {query.WORKLOAD} as matrices and as a tensor.", "Choose another run.")
    widgets.show_chart(chart.matrix_and_tensor(frame, look))
