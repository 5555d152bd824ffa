"""Which variants should I ship, and when does each run?"""

from collections.abc import Iterator
from typing import Final

from warpladder.dashboard.core import axes
from warpladder.dashboard.core.cell import Timing
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.ui.template import Chart, Look
from warpladder.dashboard.ui.view import OfTiming, Section
from warpladder.dashboard.views.sizes.ship import chart, query


def _losses(data: RunData, look: Look, workload: str, timing: Timing) -> Iterator[Chart]:
    """The losses in the first timing, for each precision with a choice."""

    if timing != axes.timings(data, workload)[0]:
        return
    for precision in query.precisions_of(data, workload, timing):
        contest = query.contest(data, workload, timing, precision)
        if len(contest.variants) > 1:
            yield chart.losses(contest, query.recommended(query.shipments(contest)), look)


SECTION: Final = Section(
    __name__,
    "Which to ship",
    "Which variants should I ship, and when does each run?",
    (OfTiming("comparisons", _losses, place=3),),
)
