"""What do the reports' own tables look like here?"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from dashboard.core.run_data import RunData
from dashboard.ui.view import OfRun, View

if TYPE_CHECKING:
    from dashboard.ui.template import Chart, Look


def _charts(data: RunData, look: "Look") -> "Iterator[Chart]":
    """The tables of each workload, then those of one report."""
    yield from _of_workloads(data, look)
    yield from _of_generator(data, look)
    yield from _of_tensor(data, look)


def _of_workloads(data: RunData, look: "Look") -> "Iterator[Chart]":
    from dashboard.reports import extras, extras_chart
    from dashboard.reports.phases import chart as phase_chart
    from dashboard.reports.phases import query as phases

    for workload in data.workloads:
        copies = extras.with_and_without_copies(data, workload)
        if len(copies):
            _, size = extras.sizes_to_choose(copies, workload)
            yield extras_chart.with_and_without_copies(copies, look, workload, size)
        parts = extras.overheads(data, workload)
        if len(parts):
            yield extras_chart.overheads(parts, look, workload)
        steps = phases.phases(data, workload)
        if len(steps):
            yield phase_chart.phases(steps[steps["case"] == steps["case"].iloc[-1]], look, workload)
        blocks = extras.block_sensitivity(data, workload)
        if len(blocks):
            yield extras_chart.block_sensitivity(blocks, look)


def _of_generator(data: RunData, look: "Look") -> "Iterator[Chart]":
    from dashboard.reports.generator import chart, executions, executions_chart, query

    generations = query.generations(data)
    if len(generations):
        case = query.case_to_show(generations)
        yield chart.parts(generations[generations["case"] == case], look)
        for each in dict.fromkeys((case, executions.FIGURE_6_CASE)):
            work = executions.executions(data, each)
            if len(work):
                yield executions_chart.figures_2_to_6(work, look, each)
        of_report = query.of_report(generations)
        if len(of_report):
            yield chart.over_images(of_report, query.published(), look)


def _of_tensor(data: RunData, look: "Look") -> "Iterator[Chart]":
    from dashboard.reports import extras, extras_chart

    if extras.TENSOR in data.workloads:
        yield extras_chart.bank_conflicts(extras.bank_conflict_table(), look)
        matrices = extras.matrix_and_tensor(data)
        if len(matrices):
            yield extras_chart.matrix_and_tensor(matrices, look)


VIEW = View("details", "Details", "What do the reports' own tables look like here?", (OfRun("details", _charts),))
