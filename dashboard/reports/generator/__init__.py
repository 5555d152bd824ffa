"""The generator's report: the parts of a generation, and the report's figures 2 to 6 and table 4."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.reports.detail import Detail, Names
from warpladder.dashboard.reports.generator import names, query
from warpladder.dashboard.ui.view import OfRun

if TYPE_CHECKING:
    from warpladder.dashboard.ui.template import Chart, Look


def _charts(data: RunData, look: "Look") -> "Iterator[Chart]":
    from warpladder.dashboard.reports.generator import chart, executions, executions_chart, published

    frame = query.generations(data)
    if frame.empty:
        return
    case = query.case_to_show(frame)
    yield chart.parts(frame[frame["case"] == case], look)
    for each in dict.fromkeys((case, names.FIGURE_6_CASE)):
        work = executions.executions(data, each)
        if len(work):
            yield executions_chart.figures_2_to_6(work, look, each)
    of_report = query.of_report(frame)
    if len(of_report):
        yield chart.over_images(of_report, published.published(), look)


DETAIL = Detail(
    "generator",
    "Generator",
    OfRun("details", _charts),
    place=0,
    names=Names(
        workload=names.WORKLOAD,
        configs=tuple(names.FIGURES),
        cases=(names.FIGURE_6_CASE,),
        scopes=query.SCOPES,
        kernels=names.KERNELS,
    ),
)
