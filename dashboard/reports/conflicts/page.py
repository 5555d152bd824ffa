"""Bank conflicts of the tiles of the tensor report."""

from streamlit.delta_generator import DeltaGenerator

from warpladder.dashboard.reports.conflicts import chart, query
from warpladder.dashboard.ui import widgets
from warpladder.dashboard.ui.template import Look
from warpladder.data import store


def show(run: store.Run, controls: DeltaGenerator, look: Look) -> None:
    """Draw this part of the page, with its choices among the controls."""
    widgets.show_chart(chart.bank_conflicts(query.bank_conflict_table(), look))
