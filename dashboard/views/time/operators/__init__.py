"""Which operators of PyTorch take the time, and which kernels do they launch?"""

from collections.abc import Iterator

from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.core.run_index import Need
from warpladder.dashboard.ui.template import Chart, Look
from warpladder.dashboard.ui.view import OfRun, Section
from warpladder.dashboard.views.time.operators import chart, query


def _charts(data: RunData, look: Look) -> Iterator[Chart]:
    """The operators that take the most time, by name."""
    if data.traces.has_operators:
        yield chart.leading(query.operators(data), query.totals(data), look, "name")


SECTION = Section(
    __name__,
    "Operators",
    "Which operators take the time, and which kernels do they launch?",
    (OfRun("trace", _charts),),
    needs=Need.OPERATORS,
)
