"""Which rank makes the others wait, how much, and why?"""

from warpladder.dashboard.core.run_index import Need
from warpladder.dashboard.ui.view import View

VIEW = View("stragglers", "Stragglers", "Which rank makes the others wait, how much, and why?", needs=Need.JOB)
