"""How much faster are more GPUs, and how many are best at each size?"""

from warpladder.dashboard.core.run_index import Need
from warpladder.dashboard.ui.view import OfRun, Section, charts_of

SECTION = Section(
    __name__,
    "GPUs",
    "How much faster are more GPUs, and how many are best at each size?",
    (OfRun("gpus", charts_of(__name__)),),
    needs=Need.GPUS,
)
