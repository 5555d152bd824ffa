"""The shares of allocation, copies and release in a whole operation, as the convolution report counts them."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.reports.detail import Detail, Names
from warpladder.dashboard.reports.overheads import query
from warpladder.dashboard.ui.view import OfWorkload

if TYPE_CHECKING:
    from warpladder.dashboard.ui.template import Chart, Look


def _charts(data: RunData, look: "Look", workload: str) -> "Iterator[Chart]":
    from warpladder.dashboard.reports.overheads import chart

    frame = query.overheads(data, workload)
    if len(frame):
        yield chart.overheads(frame, look, workload)


DETAIL = Detail("overheads", "Overheads", OfWorkload("details", _charts), place=1, names=Names(scopes=tuple(query.PARTS)))
