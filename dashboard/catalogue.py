"""All charts of a run."""

from collections.abc import Collection, Iterator
from typing import Final

from dashboard.core import axes, counters, winners
from dashboard.core.axes import Timing
from dashboard.core.run_data import RunData
from dashboard.reports import extras as reports
from dashboard.reports import extras_chart as extras
from dashboard.reports.generator import chart as generator
from dashboard.reports.generator import executions as figures
from dashboard.reports.generator import executions_chart as generator_timeline
from dashboard.reports.generator import guidance as gpu_guidance
from dashboard.reports.generator import query as generator_queries
from dashboard.reports.phases import chart as phases
from dashboard.reports.phases import query as phase_queries
from dashboard.trace import samples as trace_samples
from dashboard.ui.template import Chart, Look, Theme, look
from dashboard.views.calls import chart as call_charts
from dashboard.views.calls import query as trace_sums
from dashboard.views.counters import chart as counter_charts
from dashboard.views.counters import query as counter_query
from dashboard.views.counters.words import how_counted
from dashboard.views.gpus import chart as scaling
from dashboard.views.gpus import counts_chart as gpu_counts
from dashboard.views.gpus import query as scalings
from dashboard.views.ladder import chart as ladder
from dashboard.views.ladder import error_chart as pareto
from dashboard.views.ladder import query as ladders
from dashboard.views.overview import chart as overview
from dashboard.views.overview import query as overviews
from dashboard.views.roofline import chart as roofline
from dashboard.views.roofline import query as rooflines
from dashboard.views.sizes import chart as sizes
from dashboard.views.sizes import query as over_sizes
from dashboard.views.timeline import chart as timeline
from dashboard.views.transfers import chart as traces
from dashboard.views.transfers import query as transfers
from dashboard.views.trust import distribution_chart as distribution

_METRICS: tuple[sizes.Metric, ...] = ("median_ns", "gb_per_s", "gflop_per_s", "speedup", "percent_of_floor")


#: What a chart is about, in the order of `charts_of`.
TOPICS: Final = ("overview", "comparisons", "roofline", "details", "trace", "gpus", "counters")


def charts_of(data: RunData, theme: Theme = "light", topics: Collection[str] = TOPICS) -> Iterator[Chart]:
    """The charts of a run that answer what its pages ask first, in the order of the pages; a page can show any other choice.

    Of each workload and view, comparisons are: who wins where, the ladder of the largest size, the samples of the fastest variant there,
    and time over size. In the first view these are of every series, with percent of floor over size, and of the last series every
    other metric.

    Args:
        topics: of `TOPICS`, those that are wanted.
    """
    style = look(data, theme)
    if "overview" in topics:
        summary = overviews.overview(data)
        if summary["percent_of_floor"].notna().any():
            yield overview.percent_of_floor(summary, style)
    for workload in data.workloads:
        if "comparisons" in topics:
            for view in axes.timings(data, workload):
                if not view.scope.startswith("phase:"):
                    yield from _of_view(data, workload, view, style)
        if "roofline" in topics:
            yield from _of_roofline(data, workload, style)
    for topic, draw in (("details", _of_details), ("trace", _of_trace), ("gpus", _of_gpus), ("counters", _of_counters)):
        if topic in topics:
            yield from draw(data, style)


def _of_view(data: RunData, workload: str, view: Timing, style: Look) -> Iterator[Chart]:
    found = winners.best_per_size(data, workload, view)
    if found.empty:
        return
    yield sizes.best_strip(found, style, workload, view.label(on_gpu=data.on_gpu))
    first_view = view == axes.timings(data, workload)[0]
    largest = found[found["size_rank"] == found["size_rank"].max()]
    for case in dict.fromkeys(largest["case"] if first_view else largest["case"].iloc[-1:]):
        yield ladder.ladder(ladders.ladder(data, workload, case, view), style)
        costs = ladders.error_and_time(data, workload, case, view)
        # Where nothing rounds there is nothing to show.
        if first_view and (costs["rel_l2_error"] > 0).any():
            yield pareto.error_and_time(costs, style)
    series = axes.series(data, workload)
    for each in series if first_view else series[-1:]:
        frame = over_sizes.sizes(data, workload, view, each)
        regions = over_sizes.regions(data, workload, each)
        for metric in _metrics(first_view, last=each == series[-1]):
            if frame["size_rank"].nunique() > 1 and frame[metric].notna().any():
                yield sizes.over_size(frame, regions, style, metric)
    last = largest.iloc[-1]
    samples = data.samples
    for column in ("workload", "case", "variant", "config"):
        samples = samples[samples[column] == last[column]]
    yield distribution.samples_over_rounds(samples[(samples["scope"] == view.scope) & (samples["cache"] == view.cache)], style)


def _metrics(first_view: bool, last: bool) -> tuple[sizes.Metric, ...]:
    if not first_view:
        return ("median_ns",)
    return _METRICS if last else ("median_ns", "percent_of_floor")


def _of_roofline(data: RunData, workload: str, style: Look) -> Iterator[Chart]:
    """The largest case that has points on paper and, where this run has counters, by these; and the variant nearest to its roof over sizes."""
    for view in rooflines.timings(data, workload)[:1]:
        roofs = rooflines.roofs(data)
        for counted, counted_in in ((None, ""), (rooflines.executed(data, workload), "this run")):
            frame = rooflines.points(data, workload, view, counted)
            if frame["roof_gflop_per_s"].isna().all():
                continue
            largest = frame[frame["size_rank"] == frame["size_rank"].max()]
            yield roofline.roofline(largest[largest["case"] == largest["case"].iloc[-1]], roofs, style, counted_in)
            nearest = largest.loc[largest["percent_of_roof"].idxmax()]
            over = frame[(frame["variant"] == nearest["variant"]) & (frame["series"] == nearest["series"])]
            if len(over) > 1:
                yield roofline.over_sizes(over, roofs, style, counted_in)


def _of_details(data: RunData, style: Look) -> Iterator[Chart]:
    for workload in data.workloads:
        copies = reports.with_and_without_copies(data, workload)
        if len(copies):
            _, size = reports.sizes_to_choose(copies, workload)
            yield extras.with_and_without_copies(copies, style, workload, size)
        parts = reports.overheads(data, workload)
        if len(parts):
            yield extras.overheads(parts, style, workload)
        steps = phase_queries.phases(data, workload)
        if len(steps):
            yield phases.phases(steps[steps["case"] == steps["case"].iloc[-1]], style, workload)
        blocks = reports.block_sensitivity(data, workload)
        if len(blocks):
            yield extras.block_sensitivity(blocks, style)
    generations = generator_queries.generations(data)
    if len(generations):
        case = generator_queries.case_to_show(generations)
        yield generator.parts(generations[generations["case"] == case], style)
        for each in dict.fromkeys((case, figures.FIGURE_6_CASE)):
            work = figures.executions(data, each)
            if len(work):
                yield generator_timeline.figures_2_to_6(work, style, each)
        of_report = generator_queries.of_report(generations)
        if len(of_report):
            yield generator.over_images(of_report, generator_queries.published(), style)
    if reports.TENSOR in data.workloads:
        yield extras.bank_conflicts(reports.bank_conflict_table(), style)
        matrices = reports.matrix_and_tensor(data)
        if len(matrices):
            yield extras.matrix_and_tensor(matrices, style)


def _of_trace(data: RunData, style: Look) -> Iterator[Chart]:
    if data.traces:
        yield timeline.whole(data, style)
    part = trace_samples.parts(data)[0]
    available = trace_sums.available(data, part)
    for name, what in (("cuda_gpu_kern_sum", "kernels"), ("cuda_api_sum", "API calls")):
        if name in available:
            frame = trace_sums.summary(data, name, part)
            yield call_charts.leading(trace_sums.leading(frame), len(frame), style, what, part)
    if "memory_ops" in data.traces.tables:
        yield traces.transfers(transfers.transfers(data), style)
        stages = transfers.stages(data)
        if len(stages):
            yield traces.stages(stages, style)


def _of_gpus(data: RunData, style: Look) -> Iterator[Chart]:
    """Of each workload that several ranks measured, in each way of timing: the best number of the fastest variant, what all gain at the
    largest case; in the first of them also skew, weak scaling at the most a rank, and the shares of each variant that has phases."""
    for workload in axes.scaled_workloads(data):
        for place, view in enumerate(scalings.timings(data, workload)):
            frame = scalings.scaling(data, workload, view)
            if frame.empty:
                continue
            variant = scalings.variant_to_show(frame)
            found = gpu_guidance.finding(frame[frame["variant"] == variant])
            crossover = scalings.crossover(data, workload, view, variant)
            yield gpu_counts.best_counts(crossover, found, gpu_guidance.table_4(), style)
            largest = frame[frame["size_rank"] == frame.loc[frame["ranks"] > 1, "size_rank"].max()]
            largest = largest[largest["case"] == largest["case"].iloc[-1]]
            yield scaling.strong(largest, style)
            if place:
                continue
            yield scaling.skew(largest, style)
            grown = scalings.weak(data, workload, view)
            if len(grown):
                yield scaling.weak(grown[grown["per_rank"] == scalings.weak_to_show(grown)], style)
            for _, parts in scalings.shares(data, workload, view).groupby("variant", sort=False):
                yield scaling.shares(parts, style)


def _of_counters(data: RunData, style: Look) -> Iterator[Chart]:
    """Of the last case of each workload that has counters."""
    for workload in counters.counted_workloads(data):
        case = counters.counted_cases(data, workload)[-1]
        every = counter_query.best(counters.by_config(data, workload, case))
        frame = counter_query.most_time(every)
        how = how_counted(data, len(frame), len(every))
        for draw in (counter_charts.speed_of_light, counter_charts.occupancy, counter_charts.traffic):
            yield draw(frame, style, workload, case, how)
        stalls = counter_query.stalls(frame)
        if len(stalls):
            yield counter_charts.stall_reasons(stalls, style, workload, case, how)
