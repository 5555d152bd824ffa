"""What does each step gain, and why?"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from warpladder.dashboard.core import axes, winners
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.core.timing import Timing
from warpladder.dashboard.ui.view import OfTiming, View

if TYPE_CHECKING:
    from warpladder.dashboard.ui.template import Chart, Look


def _charts(data: RunData, look: "Look", workload: str, timing: Timing) -> "Iterator[Chart]":
    """The ladders at the largest size.

    The first timing has the ladder of every series, with the chart of its errors. Other timings have that of the last series.
    """
    from warpladder.dashboard.views.ladder import chart, error_chart, query

    first = timing == axes.timings(data, workload)[0]
    largest = [winner.cell.case for winner in winners.at_largest(data, workload, timing)]
    for case in dict.fromkeys(largest if first else largest[-1:]):
        yield chart.ladder(query.ladder(data, workload, case, timing), look)
        costs = query.error_and_time(data, workload, case, timing)
        # Where no variant has a rounding error, there is nothing to show.
        if first and (costs["rel_l2_error"] > 0).any():
            yield error_chart.error_and_time(costs, look)


VIEW = View("ladder", "Ladder", "What does each step gain, and why?", (OfTiming("comparisons", _charts, place=1),))
