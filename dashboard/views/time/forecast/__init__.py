"""What would a step of the program gain from the faster variants of its operations?"""

from warpladder.dashboard.core.run_index import Need
from warpladder.dashboard.ui.view import Section

SECTION = Section(__name__, "Forecast", "What would a step of the program gain from faster operations?", needs=Need.OPERATORS)
