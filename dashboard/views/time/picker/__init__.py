"""Which ranges are variants of one another?"""

from warpladder.dashboard.core.run_index import Need
from warpladder.dashboard.ui.view import Section

SECTION = Section(__name__, "Pick variants", "Which ranges are variants of one another?", needs=Need.RANGES)
