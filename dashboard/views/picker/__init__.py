"""Which NVTX ranges are variants of one another?"""

from warpladder.dashboard.core.run_index import Need
from warpladder.dashboard.ui.view import View

VIEW = View("picker", "Pick variants", "Which NVTX ranges are variants of one another?", needs=Need.RANGES)
