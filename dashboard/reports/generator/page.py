"""The parts of a generation, figures 2 to 6 of the generator's report, and its table 4."""

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from warpladder.dashboard.reports.generator import chart, executions, executions_chart, names, published, query
from warpladder.dashboard.ui import runs, state, widgets
from warpladder.dashboard.ui.template import Look
from warpladder.dashboard.ui.text import plain
from warpladder.dashboard.ui.view import page_of
from warpladder.data import store


def show(run: store.Run, controls: DeltaGenerator, look: Look) -> None:
    """Draw this part of the page, with its choices among the controls."""
    frame = runs.ask(run, query.generations)
    if frame.empty:
        widgets.nothing(
            f"No generation of images ({names.WORKLOAD}) was timed end to end on a GPU in this run.",
            f"Choose another run, or record one: warpladder record {names.WORKLOAD}.",
        )
    with controls:
        case = state.choose("case", "Case", list(frame["case"].unique()), default=query.case_to_show(frame))
    widgets.show_chart(chart.parts(frame[frame["case"] == case], look))
    _executions(run, case, look)
    of_report = query.of_report(frame)
    if len(of_report):
        widgets.show_chart(chart.over_images(of_report, published.published(), look))


def _executions(run: store.Run, case: str, look: Look) -> None:
    """Draw figures 2 to 6 of the report, with a link from each row to its window on the Timeline.

    Without traced executions, show the command that records them.
    """
    frame = runs.ask(run, executions.executions, case)
    if frame.empty:
        command = f"warpladder record {names.WORKLOAD} --case {case} --collector nsight_systems"
        st.caption(plain(f"The report's figures 2 to 6 need a trace. To record one: {command}"))
        return
    widgets.show_chart(executions_chart.figures_2_to_6(frame, look, case))
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.caption("On the Timeline:", width="content")
        for row in frame.drop_duplicates(["variant", "config"]).to_dict("records"):
            window = f"{row['trace_ns']}-{row['trace_ns'] + row['span_ns']}"
            label = f"{plain(executions_chart.name(row))} →"
            st.page_link(page_of("timeline"), label=label, query_params=state.link(window=window))
