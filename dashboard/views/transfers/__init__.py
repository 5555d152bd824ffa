"""What do the copies cost, and when do they pay?"""

from warpladder.dashboard.core.run_index import Need
from warpladder.dashboard.ui.view import OfRun, Section, charts_of

SECTION = Section(
    __name__,
    "Transfers",
    "What do the copies cost, and when do they pay?",
    (OfRun("trace", charts_of(__name__)),),
    needs=Need.COPIES,
)
