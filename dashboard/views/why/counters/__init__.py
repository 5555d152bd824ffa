"""What limits each variant?"""

from collections.abc import Iterator

from warpladder.dashboard.core import counted, counters
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.core.run_index import Need
from warpladder.dashboard.ui.template import Chart, Look
from warpladder.dashboard.ui.view import OfRun, Section
from warpladder.dashboard.views.why.counters import chart, query


def _charts(data: RunData, look: Look) -> Iterator[Chart]:
    """The charts of the last case with counters of each workload."""

    for workload in counters.counted_workloads(data):
        case = counters.counted_cases(data, workload)[-1]
        every = counted.best(data, workload, case, counted.times(data, workload, case))
        frame = query.most_time(every)
        how = query.how_counted(data, len(frame), len(every)) + query.where_timed(frame, "")
        steps = counted.steps(data, workload, case, frame)
        if len(steps):
            yield chart.steps(steps, look, workload, case, how)
        for draw in (chart.speed_of_light, chart.occupancy, chart.traffic):
            yield draw(frame, look, workload, case, how)
        stalls = query.stalls(frame)
        if len(stalls):
            yield chart.stall_reasons(stalls, look, workload, case, how)


SECTION = Section(__name__, "Counters", "What limits each variant?", (OfRun("counters", _charts),), needs=Need.COUNTERS)
