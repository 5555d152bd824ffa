"""How fast do the collectives of a job transfer, and how long do they wait?"""

from warpladder.dashboard.core.run_index import Need
from warpladder.dashboard.ui.view import OfRun, Section, charts_of

SECTION = Section(
    __name__,
    "Collectives",
    "How fast do the ranks transfer, and how long do they wait for each other?",
    (OfRun("job", charts_of(__name__)),),
    needs=Need.JOB,
)
