"""Which kernels and which calls take the time?"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.core.run_index import Need
from warpladder.dashboard.trace import samples
from warpladder.dashboard.ui.view import OfRun, Section
from warpladder.dashboard.views.time.calls import query

if TYPE_CHECKING:
    from warpladder.dashboard.ui.template import Chart, Look


def _charts(data: RunData, look: "Look") -> "Iterator[Chart]":
    """The kernels and the API calls that take the most time."""
    from warpladder.dashboard.views.time.calls import chart

    extent = samples.extents(data)[0]
    available = query.available(data, extent)
    for name, what in (("cuda_gpu_kern_sum", "kernels"), ("cuda_api_sum", "API calls")):
        if name in available:
            frame = query.summary(data, name, extent)
            yield chart.leading(query.leading(frame), len(frame), look, what, extent)


SECTION = Section(
    __name__, "API & kernels", "Which kernels and which calls take the time?", (OfRun("trace", _charts),), needs=Need.CALLS
)
