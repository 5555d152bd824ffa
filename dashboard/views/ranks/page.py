"""Ranks: where does the time of a job go, and which ranks differ?"""

from warpladder.dashboard.ui import runs, widgets
from warpladder.dashboard.views.ranks import VIEW


def page() -> None:
    """Draw the page."""
    run = widgets.run_of_page()
    widgets.heading(VIEW)
    if not runs.load(run).job:
        widgets.no_job(run, VIEW)
    widgets.end_page()


page()
