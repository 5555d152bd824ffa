"""Calling a kernel from Python, section 0.3 of the transposition report: which route costs what."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.reports.detail import Detail, Names
from warpladder.dashboard.reports.routes import query
from warpladder.dashboard.ui.view import OfRun

if TYPE_CHECKING:
    from warpladder.dashboard.ui.template import Chart, Look


def _charts(data: RunData, look: "Look") -> "Iterator[Chart]":
    from warpladder.dashboard.reports.routes import chart

    frame = query.routes(data)
    if len(query.timed(frame)):
        yield chart.routes(query.timed(frame), look)


DETAIL = Detail(
    "routes",
    "Routes from Python",
    OfRun("details", _charts),
    place=1,
    names=Names(query.WORKLOAD, cases=query.CASES, scopes=tuple(query.STEPS)),
)
