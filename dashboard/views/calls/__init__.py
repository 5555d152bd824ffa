"""Which kernels and which calls take the time?"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.ui.view import OfRun, View

if TYPE_CHECKING:
    from warpladder.dashboard.ui.template import Chart, Look


def _charts(data: RunData, look: "Look") -> "Iterator[Chart]":
    """The kernels, and the calls, that make up the time."""
    from warpladder.dashboard.trace import samples
    from warpladder.dashboard.views.calls import chart, query

    part = samples.parts(data)[0]
    available = query.available(data, part)
    for name, what in (("cuda_gpu_kern_sum", "kernels"), ("cuda_api_sum", "API calls")):
        if name in available:
            frame = query.summary(data, name, part)
            yield chart.leading(query.leading(frame), len(frame), look, what, part)


VIEW = View("calls", "API & kernels", "Which kernels and which calls take the time?", (OfRun("trace", _charts),))
