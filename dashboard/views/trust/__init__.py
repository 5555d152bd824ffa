"""May these numbers be believed?"""

from collections.abc import Iterator

from warpladder.dashboard.compare import winners
from warpladder.dashboard.core.cell import Timing
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.core.run_index import Need
from warpladder.dashboard.ui.template import Chart, Look
from warpladder.dashboard.ui.view import OfTiming, Section
from warpladder.dashboard.views.trust import chart


def _charts(data: RunData, look: Look, workload: str, timing: Timing) -> Iterator[Chart]:
    """The samples of the winner of the last case of the largest size."""

    largest = winners.at_largest(data, workload, timing)
    if not largest:
        return
    last = largest[-1].cell
    samples = data.samples
    for column in ("workload", "case", "variant", "config"):
        samples = samples[samples[column] == getattr(last, column)]
    samples = samples[(samples["scope"] == timing.scope) & (samples["cache"] == timing.cache)]
    yield chart.samples_over_rounds(samples, look)


SECTION = Section(
    __name__, "Trust", "May these numbers be believed?", (OfTiming("comparisons", _charts, place=3),), Need.NOTHING
)
