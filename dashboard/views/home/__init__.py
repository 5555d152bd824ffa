"""What is the answer of a run, and where does it lead?"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from warpladder.dashboard.compare import overview
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.core.run_index import Need
from warpladder.dashboard.ui.view import OfRun, Section

if TYPE_CHECKING:
    from warpladder.dashboard.ui.template import Chart, Look


def _charts(data: RunData, look: "Look") -> "Iterator[Chart]":
    """Every winner's percent of floor."""
    from warpladder.dashboard.views.home import chart

    summary = overview.overview(data)
    if summary["percent_of_floor"].notna().any():
        yield chart.percent_of_floor(summary, look)


SECTION = Section(
    __name__,
    "Home",
    "What is the answer of this run, and where does it lead?",
    (OfRun("overview", _charts),),
    Need.NOTHING,
)
