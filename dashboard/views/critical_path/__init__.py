"""What does the end of an iteration wait for, and what would a faster kernel give?"""

from warpladder.dashboard.core.run_index import Need
from warpladder.dashboard.ui.view import OfRun, Section, charts_of

SECTION = Section(
    __name__,
    "Critical path",
    "What does the end of an iteration wait for, and what would a faster kernel give?",
    (OfRun("job", charts_of(__name__)),),
    needs=Need.JOB,
)
