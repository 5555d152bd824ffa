"""What do the reports' own tables look like here?"""

from collections.abc import Iterator

from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.core.run_index import Need
from warpladder.dashboard.reports import blocks, conflicts, copies, generator_chart, matrices, overheads, phases, routes
from warpladder.dashboard.ui.template import Chart, Look
from warpladder.dashboard.ui.view import OfRun, Section


def _charts(data: RunData, look: Look) -> Iterator[Chart]:
    """The details that any workload can have, workload by workload, and then the details of one report."""
    for workload in data.workloads:
        for of_workload in (copies, overheads, phases, blocks):
            yield from of_workload.charts(data, look, workload)
    for of_run in (generator_chart, conflicts, routes, matrices):
        yield from of_run.charts(data, look)


SECTION = Section(
    __name__,
    "Details",
    "What do the reports' own tables look like here?",
    (OfRun("details", _charts),),
    needs=Need.GPU_TIMES,
)
