"""What do the reports' own tables look like here?"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.reports import DETAILS
from warpladder.dashboard.ui.view import OfRun, OfWorkload, View

if TYPE_CHECKING:
    from warpladder.dashboard.ui.template import Chart, Look


def _charts(data: RunData, look: "Look") -> "Iterator[Chart]":
    """The details that each workload may have, workload by workload, then those of one report alone."""
    in_order = [detail.charts for detail in sorted(DETAILS, key=lambda detail: detail.place)]
    for workload in data.workloads:
        for charts in in_order:
            if isinstance(charts, OfWorkload):
                yield from charts.draw(data, look, workload)
    for charts in in_order:
        if isinstance(charts, OfRun):
            yield from charts.draw(data, look)


VIEW = View("details", "Details", "What do the reports' own tables look like here?", (OfRun("details", _charts),))
