"""What does each step gain, and why?"""

from collections.abc import Iterator

from warpladder.dashboard.core import axes
from warpladder.dashboard.core.cell import Timing
from warpladder.dashboard.core.cells import best_of_charted
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.ui.template import Chart, Look
from warpladder.dashboard.ui.view import OfTiming, Section
from warpladder.dashboard.views.ladder import chart, errors, query


def _charts(data: RunData, look: Look, workload: str, timing: Timing) -> Iterator[Chart]:
    """The ladders at the largest size, or at each of the cases that were selected.

    The first timing has the ladder of every series, with the chart of its errors. Other timings have the ladder of the last
    series.
    """

    first = timing == axes.timings(data, workload)[0]
    best = best_of_charted(data, workload, timing)
    largest = best.loc[best["role"].isin(["rung", "peer", "host"]), ["case", "size_rank"]].drop_duplicates()
    if len(axes.charted_cases(data, workload)) == len(axes.charted_cases(data.selected_from or data, workload)):
        largest = largest[largest["size_rank"] == largest["size_rank"].max()]
    cases = set(largest["case"])
    ordered = [case for case in axes.charted_cases(data, workload)["case"] if case in cases]
    for case in ordered if first else ordered[-1:]:
        yield chart.ladder(query.ladder(data, workload, case, timing), look)
        costs = query.error_and_time(data, workload, case, timing)
        # Where no variant has a rounding error, there is nothing to show.
        if first and (costs["rel_l2_error"] > 0).any():
            yield errors.error_and_time(costs, look)


SECTION = Section(__name__, "Ladder", "What does each step gain, and why?", (OfTiming("comparisons", _charts, place=1),))
