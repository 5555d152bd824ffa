"""Where does the time of a job go, and which ranks differ?"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.core.run_index import Need
from warpladder.dashboard.ui.view import OfRun, Section
from warpladder.dashboard.views.ranks import query

if TYPE_CHECKING:
    from warpladder.dashboard.ui.template import Chart, Look


def _charts(data: RunData, look: "Look") -> "Iterator[Chart]":
    """Exposed communication over ranks and iterations, or the first figure that is known, the breakdown of the ranks' time, the pipeline and the experts."""
    from warpladder.dashboard.views.ranks import chart

    if data.job:
        cells = query.by_iteration(data)
        yield chart.over_iterations(cells, query.known_figures(cells)[0], query.answer(data).sentence, look, share=True)
        yield chart.breakdown(query.breakdown(data), look)
        if len(passes := query.passes(data)):
            yield chart.gantt(passes, look)
        if len(rows := query.routed(data)):
            yield chart.routes(rows, look)


SECTION = Section(
    __name__, "Ranks", "Where does the time of a job go, and which ranks differ?", (OfRun("job", _charts),), needs=Need.JOB
)
