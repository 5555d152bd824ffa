"""What limits the resident warps, and what would another choice give?"""

from warpladder.dashboard.core.run_index import Need
from warpladder.dashboard.ui.view import OfRun, Section, charts_of

SECTION = Section(
    __name__,
    "Occupancy",
    "What limits the resident warps, and what would another choice give?",
    (OfRun("occupancy", charts_of(__name__)),),
    needs=Need.CODE,
)
