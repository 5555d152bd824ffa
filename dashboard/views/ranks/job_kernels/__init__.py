"""Which kernels take the time of a job, and on which ranks do they differ?"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.core.run_index import Need
from warpladder.dashboard.ui.view import OfRun, Section
from warpladder.dashboard.views.ranks.job_kernels import query

if TYPE_CHECKING:
    from warpladder.dashboard.ui.template import Chart, Look


def _charts(data: RunData, look: "Look") -> "Iterator[Chart]":
    """The kernels that take the most time, and the kernel that differs the most by rank."""
    from warpladder.dashboard.views.ranks.job_kernels import chart

    frame = query.kernels(data, None) if data.job else None
    if frame is None or frame.empty:
        return
    yield chart.leading(frame, look, query.ALL)
    row = query.to_show(frame)
    yield chart.by_rank(query.by_rank(data, None, row["name"], row["kind"]), row, look, query.ALL)


SECTION = Section(
    __name__,
    "Kernels of ranks",
    "Which kernels take the time of the job, and on which ranks do they differ?",
    (OfRun("job", _charts),),
    needs=Need.JOB,
)
