"""Which variant wins at which size?"""

from collections.abc import Iterator
from typing import Final

from warpladder.dashboard.compare import winners
from warpladder.dashboard.core import axes
from warpladder.dashboard.core.cell import Timing
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.ui.template import Chart, Look
from warpladder.dashboard.ui.view import OfTiming, Section
from warpladder.dashboard.views.sizes import chart, query
from warpladder.dashboard.views.sizes.chart import Metric

#: What can be drawn over size.
METRICS: Final[tuple[Metric, ...]] = ("median_ns", "gb_per_s", "gflop_per_s", "speedup", "percent_of_floor")


def _strip(data: RunData, look: Look, workload: str, timing: Timing) -> Iterator[Chart]:
    """The winner of every case."""

    best = winners.best_per_size(data, workload, timing)
    if best:
        undecided = winners.undecided(data, workload, timing)
        yield chart.best_strip(best, look, workload, timing.label(on_gpu=data.on_gpu), undecided)


def _over_size(data: RunData, look: Look, workload: str, timing: Timing) -> Iterator[Chart]:
    """Time over size: of every series with percent of floor in the first timing, with all metrics for the last series."""

    if not (winners.best_per_size(data, workload, timing) or winners.undecided(data, workload, timing)):
        return
    first = timing == axes.timings(data, workload)[0]
    series = axes.series(data, workload)
    for each in series if first else series[-1:]:
        frame = query.sizes(data, workload, timing, each)
        regions = query.regions(data, workload, each)
        some: tuple[Metric, ...] = ("median_ns", "percent_of_floor") if first else ("median_ns",)
        for metric in METRICS if first and each == series[-1] else some:
            if frame["size_rank"].nunique() > 1 and frame[metric].notna().any():
                yield chart.over_size(frame, regions, look, metric)


SECTION = Section(
    __name__,
    "Sizes",
    "Which variant wins at which size?",
    (OfTiming("comparisons", _strip, place=0), OfTiming("comparisons", _over_size, place=2)),
)
