"""Which rank makes the others wait, how much, and why?"""

from warpladder.dashboard.core.run_index import Need
from warpladder.dashboard.ui.view import OfRun, Section, charts_of

SECTION = Section(
    __name__,
    "Stragglers",
    "Which rank makes the others wait, how much, and why?",
    (OfRun("job", charts_of(__name__)),),
    needs=Need.JOB,
)
