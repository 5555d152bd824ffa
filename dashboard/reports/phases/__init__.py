"""The phases of the training report's step."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.reports.detail import Detail, Names
from warpladder.dashboard.reports.phases import query
from warpladder.dashboard.ui.view import OfWorkload

if TYPE_CHECKING:
    from warpladder.dashboard.ui.template import Chart, Look


def _charts(data: RunData, look: "Look", workload: str) -> "Iterator[Chart]":
    from warpladder.dashboard.reports.phases import chart

    frame = query.phases(data, workload)
    if len(frame):
        yield chart.phases(frame[frame["case"] == frame["case"].iloc[-1]], look, workload)


DETAIL = Detail("phases", "Phases of a step", OfWorkload("details", _charts), place=2, names=Names(beginnings=query.PHASES))
