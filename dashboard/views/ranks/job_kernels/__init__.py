"""Which kernels take the time of a job, and on which ranks do they differ?"""

from warpladder.dashboard.core.run_index import Need
from warpladder.dashboard.ui.view import OfRun, Section, charts_of

SECTION = Section(
    __name__,
    "Kernels of ranks",
    "Which kernels take the time of the job, and on which ranks do they differ?",
    (OfRun("job", charts_of(__name__)),),
    needs=Need.JOB,
)
