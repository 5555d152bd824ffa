"""The charts of the reports' own tables in an export."""

from collections.abc import Iterator

from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.ui.template import Chart, Look
from warpladder.dashboard.views.reports.details import blocks, copies, overheads, phases, routes


def charts(data: RunData, look: Look) -> Iterator[Chart]:
    """The details that any workload can have, workload by workload, and then the routes."""
    for workload in data.workloads:
        for of_workload in (copies, overheads, phases, blocks):
            yield from of_workload.charts(data, look, workload)
    yield from routes.charts(data, look)
