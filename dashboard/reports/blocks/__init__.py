"""How much the block size matters, as the convolution report shows it."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.reports.detail import Detail
from warpladder.dashboard.ui.view import OfWorkload

if TYPE_CHECKING:
    from warpladder.dashboard.ui.template import Chart, Look


def _charts(data: RunData, look: "Look", workload: str) -> "Iterator[Chart]":
    from warpladder.dashboard.reports.blocks import chart, query

    frame = query.block_sensitivity(data, workload)
    if len(frame):
        yield chart.block_sensitivity(frame, look)


DETAIL = Detail("blocks", "Block size", OfWorkload("details", _charts), place=3)
