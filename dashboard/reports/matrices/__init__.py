"""The tensor report's figure 5: one permutation as a stack of matrices and as a tensor."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.reports.detail import Detail, Names
from warpladder.dashboard.reports.matrices import query
from warpladder.dashboard.ui.view import OfRun

if TYPE_CHECKING:
    from warpladder.dashboard.ui.template import Chart, Look


def _charts(data: RunData, look: "Look") -> "Iterator[Chart]":
    from warpladder.dashboard.reports.matrices import chart

    frame = query.matrix_and_tensor(data)
    if len(frame):
        yield chart.matrix_and_tensor(frame, look)


DETAIL = Detail(
    "matrices",
    "2-D and 3-D",
    OfRun("details", _charts),
    place=2,
    names=Names(workload=query.WORKLOAD, variants=tuple(query.MATRIX_AND_TENSOR)),
)
