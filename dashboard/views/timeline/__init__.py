"""What ran when, on which stream and thread?"""

from collections.abc import Iterator

from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.core.run_index import Need
from warpladder.dashboard.ui.template import Chart, Look
from warpladder.dashboard.ui.view import OfRun, Section
from warpladder.dashboard.views.timeline import chart


def _charts(data: RunData, look: Look) -> Iterator[Chart]:
    """The whole trace."""

    if data.traces:
        yield chart.whole_trace(data, look)


SECTION = Section(
    __name__, "Timeline", "What ran when, on which stream and thread?", (OfRun("trace", _charts),), needs=Need.TRACE
)
