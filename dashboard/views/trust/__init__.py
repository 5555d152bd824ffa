"""May these numbers be believed?"""

from warpladder.dashboard.core.run_index import Need
from warpladder.dashboard.ui.view import OfTiming, Section, charts_of

SECTION = Section(
    __name__, "Trust", "May these numbers be believed?", (OfTiming("comparisons", charts_of(__name__), place=3),), Need.NOTHING
)
