"""What is the answer of a run, and where does it lead?"""

from warpladder.dashboard.core.run_index import Need
from warpladder.dashboard.ui.view import OfRun, Section, charts_of

SECTION = Section(
    __name__,
    "Home",
    "What is the answer of this run, and where does it lead?",
    (OfRun("overview", charts_of(__name__)),),
    Need.NOTHING,
)
