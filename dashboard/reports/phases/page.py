"""The phases of a training step."""

from streamlit.delta_generator import DeltaGenerator

from warpladder.dashboard.reports.phases import chart, query
from warpladder.dashboard.ui import runs, state, widgets
from warpladder.dashboard.ui.template import Look
from warpladder.data import store


def show(run: store.Run, controls: DeltaGenerator, look: Look) -> None:
    """Draw this part of the page, with its choices among the controls."""
    among = runs.ask(run, query.workloads)
    if not among:
        widgets.nothing(
            "This run has no traced kernel that is named after a phase of a step (forward, backward, update).",
            "Choose another run, or record one: warpladder record mlp_training --collector nsight_systems.",
        )
    with controls:
        workload = widgets.choose_workload(run, among)
        frame = runs.ask(run, query.phases, workload)
        case = state.choose("case", "Case", list(frame["case"].unique()), default=frame["case"].iloc[-1])
    widgets.show_chart(chart.phases(frame[frame["case"] == case], look, workload))
