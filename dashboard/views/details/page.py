"""Details: the tables and figures of the source reports, from our samples."""

from importlib import import_module

from warpladder.dashboard.reports.copies import query as copies
from warpladder.dashboard.reports.generator import query as generator
from warpladder.dashboard.reports.phases import query as phases
from warpladder.dashboard.reports.routes import query as routes
from warpladder.dashboard.ui import runs, state, widgets
from warpladder.dashboard.views.details import DETAILS, VIEW
from warpladder.data import store


def page() -> None:
    """Draw the page."""
    run = widgets.run_of_page()
    widgets.heading(VIEW)
    every = {detail.name: detail for detail in DETAILS}
    with (controls := widgets.controls()):
        name = state.choose(
            "topic", "Table", list(every), default=_first(run), text=lambda name: every[name].title, style="segmented"
        )
    import_module(every[name].page).show(run, controls, runs.look_of(run, widgets.theme()))
    widgets.end_page()


def _first(run: store.Run) -> str:
    """The table to show first: the routes of a run of these only, phases where they were traced, the generator where the first workload
    has no copies, else copies.
    """
    workloads = runs.load(run).workloads
    if workloads == (routes.WORKLOAD,):
        return "routes"
    if runs.ask(run, phases.workloads):
        return "phases"
    if (
        workloads
        and runs.ask(run, copies.with_and_without_copies, workloads[0]).empty
        and len(runs.ask(run, generator.generations))
    ):
        return "generator"
    return "copies"


page()
