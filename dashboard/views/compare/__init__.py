"""Did my change make it faster, where, and by how much?"""

from typing import Final

from warpladder.dashboard.core.run_index import Need
from warpladder.dashboard.ui.view import Section

SECTION: Final = Section(__name__, "Compare", "Did my change make it faster, where, and by how much?", needs=Need.PAIR)
