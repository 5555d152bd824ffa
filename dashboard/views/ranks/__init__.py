"""Where does the time of a job go, and which ranks differ?"""

from warpladder.dashboard.core.run_index import Need
from warpladder.dashboard.ui.view import OfRun, Section, charts_of

SECTION = Section(
    __name__,
    "Ranks",
    "Where does the time of a job go, and which ranks differ?",
    (OfRun("job", charts_of(__name__)),),
    needs=Need.JOB,
)
