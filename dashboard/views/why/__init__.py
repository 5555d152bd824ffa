"""Why is one variant faster than another?"""

from typing import Final

from warpladder.dashboard.core.run_index import Need
from warpladder.dashboard.ui.view import Section

SECTION: Final = Section(__name__, "Why faster", "Why is one variant faster than another?", needs=Need.KERNELS)
