"""Which variant wins, by how much, and how far is it from what this device can do?"""

from collections.abc import Iterator

from warpladder.dashboard.core import overview
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.ui.template import Chart, Look
from warpladder.dashboard.ui.view import OfRun, Section
from warpladder.dashboard.views.home import chart


def _charts(data: RunData, look: Look) -> Iterator[Chart]:
    """Every winner's percent of floor."""

    summary = overview.overview(data)
    if summary["percent_of_floor"].notna().any():
        yield chart.percent_of_floor(summary, look)


SECTION = Section(
    __name__,
    "Overview",
    "Which variant wins, by how much, and how far is it from what this device can do?",
    (OfRun("overview", _charts),),
)
