"""Which variants should I ship, and when does each run?"""

from typing import Final

from warpladder.dashboard.ui.view import OfTiming, Section, charts_of

SECTION: Final = Section(
    __name__,
    "Which to ship",
    "Which variants should I ship, and when does each run?",
    (OfTiming("comparisons", charts_of(__name__), place=3),),
)
