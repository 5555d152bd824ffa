"""Speedups over the sequential host code, as in the tensor report's tables 4 (without the copies) and 5 (with them)."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.reports.detail import Detail
from warpladder.dashboard.ui.view import OfWorkload

if TYPE_CHECKING:
    from warpladder.dashboard.ui.template import Chart, Look


def _charts(data: RunData, look: "Look", workload: str) -> "Iterator[Chart]":
    from warpladder.dashboard.reports.copies import chart, query

    frame = query.with_and_without_copies(data, workload)
    if len(frame):
        _, size = query.sizes_to_choose(frame, workload)
        yield chart.with_and_without_copies(frame, look, workload, size)


DETAIL = Detail("copies", "With and without copies", OfWorkload("details", _charts), place=0)
