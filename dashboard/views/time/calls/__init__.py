"""Which kernels and which calls take the time?"""

from warpladder.dashboard.core.run_index import Need
from warpladder.dashboard.ui.view import OfRun, Section, charts_of

SECTION = Section(
    __name__,
    "API & kernels",
    "Which kernels and which calls take the time?",
    (OfRun("trace", charts_of(__name__)),),
    needs=Need.CALLS,
)
