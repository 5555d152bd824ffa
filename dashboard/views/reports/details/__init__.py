"""What do the reports' own tables look like here?"""

from collections.abc import Iterator
from typing import Final

from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.core.run_index import Need
from warpladder.dashboard.reports import blocks, conflicts, copies, generator_chart, matrices, overheads, phases, routes
from warpladder.dashboard.reports.detail import Detail
from warpladder.dashboard.ui.template import Chart, Look
from warpladder.dashboard.ui.view import OfRun, OfWorkload, Section

#: The tables of the page, in its order.
DETAILS: Final[tuple[Detail, ...]] = (
    copies.DETAIL,
    overheads.DETAIL,
    blocks.DETAIL,
    conflicts.DETAIL,
    matrices.DETAIL,
    phases.DETAIL,
    generator_chart.DETAIL,
    routes.DETAIL,
)


def _charts(data: RunData, look: Look) -> Iterator[Chart]:
    """The details that any workload can have, workload by workload, and then the details of one report."""
    in_order = [detail.charts for detail in sorted(DETAILS, key=lambda detail: detail.place)]
    for workload in data.workloads:
        for charts in in_order:
            if isinstance(charts, OfWorkload):
                yield from charts.draw(data, look, workload)
    for charts in in_order:
        if isinstance(charts, OfRun):
            yield from charts.draw(data, look)


SECTION = Section(
    __name__,
    "Details",
    "What do the reports' own tables look like here?",
    (OfRun("details", _charts),),
    needs=Need.GPU_TIMES,
)
