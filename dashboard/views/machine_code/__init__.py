"""What did the compiler make of each kernel?"""

from warpladder.dashboard.core.run_index import Need
from warpladder.dashboard.ui.view import OfRun, Section, charts_of

SECTION = Section(
    __name__,
    "Machine code",
    "What did the compiler make of each kernel?",
    (OfRun("code", charts_of(__name__)),),
    needs=Need.CODE,
)
