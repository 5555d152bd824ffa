"""What ran when, on which stream and thread?"""

from warpladder.dashboard.core.run_index import Need
from warpladder.dashboard.ui.view import OfRun, Section, charts_of

SECTION = Section(
    __name__, "Timeline", "What ran when, on which stream and thread?", (OfRun("trace", charts_of(__name__)),), needs=Need.TRACE
)
