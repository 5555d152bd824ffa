"""The tensor report's table 2: bank conflicts of its tiles."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from dashboard.core.run_data import RunData
from dashboard.reports.conflicts import query
from dashboard.reports.detail import Detail, Names
from dashboard.ui.view import OfRun

if TYPE_CHECKING:
    from dashboard.ui.template import Chart, Look


def _charts(data: RunData, look: "Look") -> "Iterator[Chart]":
    from dashboard.reports.conflicts import chart

    if query.WORKLOAD in data.workloads:
        yield chart.bank_conflicts(query.bank_conflict_table(), look)


DETAIL = Detail("conflicts", "Bank conflicts", OfRun("details", _charts), place=1, names=Names(workload=query.WORKLOAD))
