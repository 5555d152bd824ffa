"""When did a variant become faster or slower, by how much, and what changed then?"""

from typing import Final

from warpladder.dashboard.core.run_index import Need
from warpladder.dashboard.ui.view import Section

SECTION: Final = Section(
    __name__, "Trends", "When did a variant become faster or slower, by how much, and what changed then?", needs=Need.HISTORY
)
