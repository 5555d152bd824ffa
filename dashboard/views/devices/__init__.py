"""Does the same rung win on two devices, and how far is each from its own floor?"""

from typing import Final

from warpladder.dashboard.core.run_index import Need
from warpladder.dashboard.ui.view import Section

SECTION: Final = Section(__name__, "Devices", "Does the same rung win on another device?", needs=Need.DEVICES)
