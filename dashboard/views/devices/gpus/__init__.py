"""How much faster are more GPUs, and how many are best at each size?"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from warpladder.dashboard.core import axes
from warpladder.dashboard.core.cell import Timing
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.core.run_index import Need
from warpladder.dashboard.ui.view import OfRun, Section
from warpladder.dashboard.views.devices.gpus import query

if TYPE_CHECKING:
    from warpladder.dashboard.ui.template import Chart, Look


def _charts(data: RunData, look: "Look") -> "Iterator[Chart]":
    """The charts of each workload that several ranks measured, in each timing.

    These are the best number of ranks for the fastest variant, and the speedups at the largest case. The first timing also has
    skew, weak scaling, and the shares of phases.
    """

    for workload in axes.scaled_workloads(data):
        for place, timing in enumerate(query.timings(data, workload)):
            yield from _of_timing(data, look, workload, timing, first=place == 0)


def _of_timing(data: RunData, look: "Look", workload: str, timing: Timing, *, first: bool) -> "Iterator[Chart]":
    from warpladder.dashboard.reports import generator
    from warpladder.dashboard.views.devices.gpus import chart

    frame = query.scaling(data, workload, timing)
    if frame.empty:
        return
    variant = query.variant_to_show(frame)
    finding = generator.finding(frame[frame["variant"] == variant])
    crossover = query.crossover(data, workload, timing, variant)
    yield chart.best_counts(crossover, finding, generator.table_4(), look)
    largest = frame[frame["size_rank"] == frame.loc[frame["ranks"] > 1, "size_rank"].max()]
    largest = largest[largest["case"] == largest["case"].iloc[-1]]
    yield chart.strong(largest, look)
    if not first:
        return
    yield chart.skew(largest, look)
    grown = query.weak(data, workload, timing)
    if len(grown):
        yield chart.weak(grown[grown["per_rank"] == query.weak_to_show(grown)], look)
    for _, parts in query.shares(data, workload, timing).groupby("variant", sort=False):
        yield chart.shares(parts, look)


SECTION = Section(
    __name__,
    "GPUs",
    "How much faster are more GPUs, and how many are best at each size?",
    (OfRun("gpus", _charts),),
    needs=Need.GPUS,
)
