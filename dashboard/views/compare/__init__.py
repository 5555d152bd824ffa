"""Did my change make it faster, where, and by how much?"""

from typing import Final

from warpladder.dashboard.core.run_index import Need
from warpladder.dashboard.ui.view import View

VIEW: Final = View("compare", "Compare", "Did my change make it faster, where, and by how much?", needs=Need.PAIR)
