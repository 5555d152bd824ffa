"""Which variant wins at which size?"""

from warpladder.dashboard.ui.view import OfTiming, Section, charts_of

SECTION = Section(
    __name__,
    "Sizes",
    "Which variant wins at which size?",
    (
        OfTiming("comparisons", charts_of(__name__, "strip"), place=0),
        OfTiming("comparisons", charts_of(__name__, "over_sizes"), place=2),
    ),
)
