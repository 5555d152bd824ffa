"""The charts of the reports' own tables in an export."""

from collections.abc import Iterator

from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.ui.template import Chart, Look
from warpladder.dashboard.views.reports.details import (
    blocks,
    conflicts,
    copies,
    generator_chart,
    matrices,
    overheads,
    phases,
    routes,
    table_4,
)


def charts(data: RunData, look: Look) -> Iterator[Chart]:
    """The details that any workload can have, workload by workload, and then the details of one report."""
    for workload in data.workloads:
        for of_workload in (copies, overheads, phases, blocks):
            yield from of_workload.charts(data, look, workload)
    for of_run in (generator_chart, table_4, conflicts, routes, matrices):
        yield from of_run.charts(data, look)
