"""What limits the resident warps, and what would another choice give?"""

from collections.abc import Iterator

from warpladder.dashboard.core import what_if
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.core.run_index import Need
from warpladder.dashboard.ui.template import Chart, Look
from warpladder.dashboard.ui.view import OfRun, Section
from warpladder.dashboard.views.why.occupancy import chart, query


def _charts(data: RunData, look: Look) -> Iterator[Chart]:
    """The curves of each launch of the last case of each workload, as it is; a kernel that several configs launch is drawn once."""
    capability, sms = str(data.info["compute_capability"]), what_if.sms_of_run(data)
    for workload in what_if.workloads(data):
        case = what_if.cases(data, workload)[-1]
        for name, (cell, kernel) in query.launch_names(data, workload, case).items():
            own = what_if.own_choice(kernel)
            result = own and what_if.what_if(kernel, capability, sms, own.registers, own.shared_bytes, own.threads)
            if result:
                yield chart.curves(result, look, workload, case, cell.variant, name)


SECTION = Section(
    __name__,
    "Occupancy",
    "What limits the resident warps, and what would another choice give?",
    (OfRun("occupancy", _charts),),
    needs=Need.CODE,
)
