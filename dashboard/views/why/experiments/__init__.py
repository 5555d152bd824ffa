"""What does one kernel spend its time on? Answered by experiments, without hardware counters."""

from warpladder.dashboard.core.run_index import Need
from warpladder.dashboard.ui.view import OfRun, Section, charts_of

SECTION = Section(
    __name__,
    "Experiments",
    "What does one kernel spend its time on?",
    (OfRun("experiments", charts_of(__name__)),),
    needs=Need.KERNELS,
)
