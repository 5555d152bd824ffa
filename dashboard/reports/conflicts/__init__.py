"""The tensor report's table 2, the bank conflicts of its tiles."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.reports.conflicts import query
from warpladder.dashboard.reports.detail import Detail, Names
from warpladder.dashboard.ui.view import OfRun

if TYPE_CHECKING:
    from warpladder.dashboard.ui.template import Chart, Look


def _charts(data: RunData, look: "Look") -> "Iterator[Chart]":
    from warpladder.dashboard.reports.conflicts import chart

    if query.WORKLOAD in data.workloads:
        yield chart.bank_conflicts(query.bank_conflict_table(), look)


DETAIL = Detail("conflicts", "Bank conflicts", OfRun("details", _charts), place=1, names=Names(workload=query.WORKLOAD))
