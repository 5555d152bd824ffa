"""What did the reports measure, and what does the same work take here?"""

from warpladder.dashboard.core.run_index import Need
from warpladder.dashboard.ui.view import Section

SECTION = Section(
    __name__, "Published", "What did the reports measure, and what does the same work take here?", needs=Need.REPORT
)
