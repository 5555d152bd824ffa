"""What does the end of an iteration wait for, and what would a faster kernel give?"""

from collections.abc import Iterator

import pandas as pd

from warpladder.dashboard.core import critical_path as paths
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.core.run_index import Need
from warpladder.dashboard.ui.template import Chart, Look
from warpladder.dashboard.ui.view import OfRun, Section
from warpladder.dashboard.views.critical_path import chart, query


def _charts(data: RunData, look: Look) -> Iterator[Chart]:
    """The path of the typical iteration, and the gains; nothing where the profiles of its ranks cannot be read."""
    iterations = query.iterations(data).frame if data.job else pd.DataFrame()
    if iterations.empty:
        return
    found = query.path(data, paths.typical(iterations)).path
    if found is None:
        return
    yield chart.over_time(found, look)
    if len(found.kernels):
        yield chart.gains(found, look)


SECTION = Section(
    __name__,
    "Critical path",
    "What does the end of an iteration wait for, and what would a faster kernel give?",
    (OfRun("job", _charts),),
    needs=Need.JOB,
)
