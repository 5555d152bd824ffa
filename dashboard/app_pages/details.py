"""Details: the tables that belong to one workload alone."""

import pandas as pd

from dashboard import runs, state, widgets
from dashboard.charts import extras as charts
from dashboard.queries import extras as queries

_TOPICS = {
    "conflicts": "Bank conflicts",
    "copies": "With and without copies",
    "blocks": "Block size",
    "overheads": "Overheads",
}


def page() -> None:
    """Draw the page."""
    run = widgets.run_of_page()
    widgets.heading("Details", "What do the reports' own tables look like here?")
    with widgets.controls():
        topic = state.choose("topic", "Table", list(_TOPICS), text=_TOPICS.__getitem__, style="segmented")
        workload = widgets.choose_workload(run) if topic != "conflicts" else ""
    look = runs.look_of(run, widgets.theme())
    if topic == "conflicts":
        widgets.show_chart(charts.bank_conflicts(queries.bank_conflict_table(), look))
    elif topic == "copies":
        frame: pd.DataFrame = runs.ask(run, queries.with_and_without_copies, workload)
        if frame.empty:
            widgets.nothing(
                f"The speedup over sequential host code needs GPU and host samples of {workload} in one run.",
                "Record the workload on a machine with a GPU: make record.",
            )
        widgets.show_chart(charts.with_and_without_copies(frame, look, workload))
    elif topic == "blocks":
        frame = runs.ask(run, queries.block_sensitivity, workload)
        if frame.empty:
            widgets.nothing(
                f"No variant of {workload} in this run has a tunable named block.", "Choose another workload or run."
            )
        widgets.show_chart(charts.block_sensitivity(frame, look))
    else:
        frame = runs.ask(run, queries.overheads, workload)
        if frame.empty:
            widgets.nothing(f"This run has no timed allocation and copies of {workload}.", "Choose another workload or run.")
        widgets.show_chart(charts.overheads(frame, look))
    widgets.end_page()


page()
