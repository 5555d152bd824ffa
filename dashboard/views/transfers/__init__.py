"""What do the copies cost, and when do they pay?"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.core.run_index import Need
from warpladder.dashboard.ui.view import OfRun, Section
from warpladder.dashboard.views.transfers import query

if TYPE_CHECKING:
    from warpladder.dashboard.ui.template import Chart, Look


def _charts(data: RunData, look: "Look") -> "Iterator[Chart]":
    """The copies of the trace, and the speedups with the copies counted."""
    from warpladder.dashboard.views.transfers import chart

    if "memory_ops" in data.traces.tables:
        yield chart.transfers(query.transfers(data), look)
        stages = query.stages(data)
        if len(stages):
            yield chart.stages(stages, look)


SECTION = Section(
    __name__, "Transfers", "What do the copies cost, and when do they pay?", (OfRun("trace", _charts),), needs=Need.COPIES
)
