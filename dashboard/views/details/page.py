"""Details: the tables of the reports that belong to one workload alone."""

import pandas as pd
import streamlit as st

from dashboard.reports import extras as queries
from dashboard.reports import extras_chart as charts
from dashboard.reports.generator import chart as generator_charts
from dashboard.reports.generator import executions as generator_timeline
from dashboard.reports.generator import executions_chart as timeline_charts
from dashboard.reports.generator import query as generator
from dashboard.reports.phases import chart as phase_charts
from dashboard.reports.phases import query as phases
from dashboard.ui import runs, state, widgets
from dashboard.ui.template import Look
from dashboard.ui.text import plain
from dashboard.ui.view import page_of
from dashboard.views.details import VIEW
from data import store

_TOPICS = {
    "copies": "With and without copies",
    "overheads": "Overheads",
    "blocks": "Block size",
    "conflicts": "Bank conflicts",
    "matrices": "2-D and 3-D",
    "phases": "Phases of a step",
    "generator": "Generator",
}
_OF_ANY_WORKLOAD = ("copies", "overheads", "blocks")


def page() -> None:
    """Draw the page."""
    run = widgets.run_of_page()
    widgets.heading(VIEW)
    with (controls := widgets.controls()):
        topic = state.choose(
            "topic", "Table", list(_TOPICS), default=_first_topic(run), text=_TOPICS.__getitem__, style="segmented"
        )
        workload = widgets.choose_workload(run) if topic in _OF_ANY_WORKLOAD else ""
    look = runs.look_of(run, widgets.theme())
    if topic == "conflicts":
        widgets.show_chart(charts.bank_conflicts(queries.bank_conflict_table(), look))
    elif topic == "matrices":
        frame: pd.DataFrame = runs.ask(run, queries.matrix_and_tensor)
        if frame.empty:
            widgets.nothing("This run has no GPU times of tensor_transpose as matrices and as a tensor.", "Choose another run.")
        widgets.show_chart(charts.matrix_and_tensor(frame, look))
    elif topic == "phases":
        among = runs.ask(run, phases.workloads)
        if not among:
            widgets.nothing(
                "No kernel of this run was traced that is named after a phase of a step (forward, backward, update).",
                "Choose another run, or record one: python -m collectors record mlp_training --collector nsight_systems.",
            )
        with controls:
            workload = widgets.choose_workload(run, among)
            frame = runs.ask(run, phases.phases, workload)
            case = state.choose("case", "Case", list(frame["case"].unique()), default=frame["case"].iloc[-1])
        widgets.show_chart(phase_charts.phases(frame[frame["case"] == case], look, workload))
    elif topic == "generator":
        frame = runs.ask(run, generator.generations)
        if frame.empty:
            widgets.nothing(
                f"No generation of images ({generator.WORKLOAD}) was timed end to end on a GPU in this run.",
                f"Choose another run, or record one: python -m collectors record {generator.WORKLOAD}.",
            )
        with controls:
            case = state.choose("case", "Case", list(frame["case"].unique()), default=generator.case_to_show(frame))
        widgets.show_chart(generator_charts.parts(frame[frame["case"] == case], look))
        _figures_of_report(run, case, look)
        of_report = generator.of_report(frame)
        if len(of_report):
            widgets.show_chart(generator_charts.over_images(of_report, generator.published(), look))
    elif topic == "copies":
        frame = runs.ask(run, queries.with_and_without_copies, workload)
        if frame.empty:
            widgets.nothing(
                f"The speedup over sequential host code needs GPU and host samples of {workload} in one run.",
                "Choose another run, or record the workload on a machine with a GPU: make record.",
            )
        sizes, first = queries.sizes_to_choose(frame, workload)
        size = ""
        if sizes:
            with controls:
                size = state.choose("size", "Size", sizes, default=first)
        widgets.show_chart(charts.with_and_without_copies(frame, look, workload, size))
    elif topic == "blocks":
        frame = runs.ask(run, queries.block_sensitivity, workload)
        if frame.empty:
            widgets.nothing(
                f"No variant of {workload} was timed with several blocks in this run.", "Choose another workload or run."
            )
        widgets.show_chart(charts.block_sensitivity(frame, look))
    else:
        frame = runs.ask(run, queries.overheads, workload)
        if frame.empty:
            widgets.nothing(
                f"Allocation and copies of {workload} were not timed in this run.", "Choose another workload or run."
            )
        widgets.show_chart(charts.overheads(frame, look, workload))
    widgets.end_page()


def _first_topic(run: store.Run) -> str:
    """The phases of a run that traced them; the generator of one that has nothing to set against the host; else the copies."""
    workloads = runs.load(run).workloads
    if runs.ask(run, phases.workloads):
        return "phases"
    if (
        workloads
        and runs.ask(run, queries.with_and_without_copies, workloads[0]).empty
        and len(runs.ask(run, generator.generations))
    ):
        return "generator"
    return "copies"


def _figures_of_report(run: store.Run, case: str, look: Look) -> None:
    """Figures 2 to 6 of the generator's report, and of each row the way to its window on the Timeline; how to record them where there are none."""
    frame: pd.DataFrame = runs.ask(run, generator_timeline.executions, case)
    if frame.empty:
        command = f"python -m collectors record {generator.WORKLOAD} --case {case} --collector nsight_systems"
        st.caption(plain(f"The report's figures 2 to 6 are drawn here of a run that {command} makes."))
        return
    widgets.show_chart(timeline_charts.figures_2_to_6(frame, look, case))
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.caption("On the Timeline:", width="content")
        for row in frame.drop_duplicates(["variant", "config"]).to_dict("records"):
            window = f"{row['trace_ns']}-{row['trace_ns'] + row['span_ns']}"
            label = f"{plain(timeline_charts.name(row))} →"
            st.page_link(page_of("timeline"), label=label, query_params=state.link(window=window))


page()
