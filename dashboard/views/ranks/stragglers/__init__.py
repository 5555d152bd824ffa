"""Which rank makes the others wait, how much, and why?"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from warpladder.dashboard.core.lateness import lateness
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.core.run_index import Need
from warpladder.dashboard.ui.view import OfRun, Section
from warpladder.dashboard.views.ranks.stragglers import query

if TYPE_CHECKING:
    from warpladder.dashboard.ui.template import Chart, Look


def _charts(data: RunData, look: "Look") -> "Iterator[Chart]":
    """The waits of the ranks, in sum and by iteration; nothing where no wait is known."""
    from warpladder.dashboard.views.ranks.stragglers import chart

    if not data.job or (ranks := query.ranking(data)).empty:
        return
    yield chart.waits(ranks, query.title(lateness(data), ranks), look)
    cells = query.history(data)
    if len(cells):
        yield chart.by_iteration(cells, "last", look)


SECTION = Section(
    __name__, "Stragglers", "Which rank makes the others wait, how much, and why?", (OfRun("job", _charts),), needs=Need.JOB
)
