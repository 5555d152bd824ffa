"""What does one kernel spend its time on? Answered by experiments, without hardware counters."""

from collections.abc import Iterator

from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.core.run_index import Need
from warpladder.dashboard.ui.template import Chart, Look
from warpladder.dashboard.ui.view import OfRun, Section
from warpladder.dashboard.views.why.experiments import chart, query


def _charts(data: RunData, look: Look) -> Iterator[Chart]:
    """Of each cell: without each class of work, the marks, and the blocks of the multiprocessor that ends last."""
    for cell in data.experiments.cells:
        found = data.experiments.of(cell)
        yield chart.without(found, look, cell)
        if marks := chart.at_marks(found, look, cell):
            yield marks
        if blocks := query.blocks(data, cell):
            yield chart.over_time(blocks, blocks.multiprocessors[0], found, look, cell)


SECTION = Section(
    __name__,
    "Experiments",
    "What does one kernel spend its time on?",
    (OfRun("experiments", _charts),),
    needs=Need.KERNELS,
)
