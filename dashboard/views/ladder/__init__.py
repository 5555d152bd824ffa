"""What does each step gain, and why?"""

from warpladder.dashboard.ui.view import OfTiming, Section, charts_of

SECTION = Section(
    __name__, "Ladder", "What does each step gain, and why?", (OfTiming("comparisons", charts_of(__name__), place=1),)
)
