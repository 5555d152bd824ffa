"""Where does the time of a job go, and which ranks differ?"""

from warpladder.dashboard.core.run_index import Need
from warpladder.dashboard.ui.view import View

VIEW = View("ranks", "Ranks", "Where does the time of a job go, and which ranks differ?", needs=Need.JOB)
