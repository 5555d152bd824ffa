"""Which operators of PyTorch take the time, and which kernels do they launch?"""

from warpladder.dashboard.core.run_index import Need
from warpladder.dashboard.ui.view import OfRun, Section, charts_of

SECTION = Section(
    __name__,
    "Operators",
    "Which operators take the time, and which kernels do they launch?",
    (OfRun("trace", charts_of(__name__)),),
    needs=Need.OPERATORS,
)
