"""What did the compiler make of each kernel?"""

from collections.abc import Iterator

from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.core.run_index import Need
from warpladder.dashboard.ui.template import Chart, Look
from warpladder.dashboard.ui.view import OfRun, Section
from warpladder.dashboard.views.machine_code import chart, query


def _charts(data: RunData, look: Look) -> Iterator[Chart]:
    """The charts of the last case with machine code of each workload."""
    for workload in query.workloads(data):
        for case in query.cases(data, workload)[-1:]:
            frame = query.mix_by_variant(data, workload, case)
            if len(frame):
                yield chart.mix(frame, look, workload, case)


SECTION = Section(
    __name__, "Machine code", "What did the compiler make of each kernel?", (OfRun("code", _charts),), needs=Need.CODE
)
