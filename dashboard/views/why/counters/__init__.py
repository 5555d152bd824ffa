"""What limits each variant?"""

from warpladder.dashboard.core.run_index import Need
from warpladder.dashboard.ui.view import OfRun, Section, charts_of

SECTION = Section(
    __name__, "Counters", "What limits each variant?", (OfRun("counters", charts_of(__name__)),), needs=Need.COUNTERS
)
