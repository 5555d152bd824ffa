"""How fast do the collectives of a job transfer, and how long do they wait?"""

from collections.abc import Iterator

from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.core.run_index import Need
from warpladder.dashboard.ui.template import Chart, Look
from warpladder.dashboard.ui.view import OfRun, Section
from warpladder.dashboard.views.collectives import chart, query


def _charts(data: RunData, look: Look) -> Iterator[Chart]:
    """The time waited and transferred, and the bus bandwidth by size."""
    frame = query.collectives(data, together=query.many_groups(data)) if data.job else None
    if frame is None or frame.empty:
        return
    yield chart.times(query.by_kind(frame), look)
    if frame["bus_gb_per_s"].notna().any():
        yield chart.bandwidth(frame, look)


SECTION = Section(
    __name__,
    "Collectives",
    "How fast do the ranks transfer, and how long do they wait for each other?",
    (OfRun("job", _charts),),
    needs=Need.JOB,
)
