"""The graph of a job in sentences: which stage, expert or host it waits for, and what a step takes without that."""

from dataclasses import dataclass
from typing import Final

import pandas as pd

from warpladder.dashboard.core.job import Job
from warpladder.dashboard.core.job_graph import dimensions, experts, pipelines
from warpladder.dashboard.core.job_graph.forecast import UNEVEN, JobForecast, of_graph
from warpladder.dashboard.core.job_graph.graph import JobGraph, job_graph
from warpladder.dashboard.core.job_graph.host_gap import host_gap
from warpladder.dashboard.core.job_graph.pipelines import Pipeline, pipeline_of
from warpladder.dashboard.core.numbers import format_duration, format_percent

#: Ranks that a sentence names.
_NAMED: Final = 8


@dataclass(frozen=True)
class GraphAnswer:
    """The sentences about a job.

    Attributes:
        pipeline: how many stages and micro-batches it has; empty without a pipeline.
        cause: why a late rank is late, in more words than the import has; empty where it has none.
        further: sentences below.
    """

    pipeline: str = ""
    cause: str = ""
    further: tuple[str, ...] = ()


def answer(job: Job) -> GraphAnswer:
    """The sentences about a job, from its graph."""
    ranks = job.frame("ranks", "rank", "late", "cause")
    late = ranks[ranks["late"].astype(bool)]
    graph = job_graph(job)
    routed = experts.experts_of(job)
    if graph is None:
        return GraphAnswer("", _of_experts(routed, None))
    pipeline = pipeline_of(graph)
    found = of_graph(job, graph, pipeline)
    if pipeline:
        kind = "" if pipeline.schedule == pipelines.UNKNOWN else f", {pipeline.schedule}"
        what = f"pipeline of {len(pipeline.stages)} stages, {pipeline.micro_batches} micro-batches{kind}"
        return GraphAnswer(what, "", (_pacing(graph, pipeline, found), *_bubble(graph, pipeline), *_dimensions(graph)))
    cause = _of_experts(routed, found)
    if cause and routed and (late.empty or routed.hot in set(late["rank"])):
        return GraphAnswer("", cause, _dimensions(graph))
    host = _of_host(job, late)
    takes = (
        _takes(found, f"rank-{late['rank'].iloc[0]}", f"with rank {late['rank'].iloc[0]} like the others") if len(late) else ""
    )
    return GraphAnswer("", host, tuple(each for each in (takes.removeprefix("; "), cause, *_dimensions(graph)) if each))


def _ranks(ranks: tuple[int, ...]) -> str:
    return f"rank{'s' if len(ranks) > 1 else ''} {_numbers(ranks)}"


def _numbers(ranks: tuple[int, ...]) -> str:
    return f"{', '.join(map(str, ranks[:_NAMED]))}{', …' if len(ranks) > _NAMED else ''}"


def _takes(found: JobForecast | None, name: str, condition: str) -> str:
    """`; with stage 2 like the others, a step takes 158 ms in place of 216 ms`; empty without a forecast, or without a gain."""
    outcome = found.of(name) if found else None
    if found is None or outcome is None:
        return ""
    if outcome.step_ns > 0.98 * found.step_ns:
        return f"; {condition}, a step would not be shorter"
    return f"; {condition}, a step takes {format_duration(outcome.step_ns)} in place of {format_duration(found.step_ns)}"


def _pacing(graph: JobGraph, pipeline: Pipeline, found: JobForecast) -> str:
    pieces, count = graph.pieces, len(graph.iterations)
    sums = pieces.groupby("rank")[["compute_ns", "host_ns"]].sum().groupby(pd.Series(pipeline.stage_of)).mean() / count
    total = sums.sum(axis=1)
    stage = int(total.to_numpy().argmax())
    others = sums.drop(index=stage).median()
    if total[stage] < UNEVEN * others.sum():
        return "no stage of the pipeline is slower than the others"
    ranks, more = _ranks(pipeline.stages[stage]), sums.loc[stage] - others
    if more["host_ns"] > more["compute_ns"]:
        waits = format_duration(sums["host_ns"].tolist()[stage])
        which = f"the host of {ranks}, stage {stage}, paces it: its GPU waits {waits} a step for launches"
        takes = _takes(found, "stages-median", "with equal compute in the stages")
        return f"{which}{takes}{', but with fewer launches' if takes.endswith('shorter') else ''}"
    own, median = format_duration(sums["compute_ns"].tolist()[stage]), format_duration(others["compute_ns"])
    which = f"stage {stage}, {ranks}, paces it: {own} of compute a step, the others {median}"
    return f"{which}{_takes(found, 'stages-median', f'with stage {stage} like the others')}"


def _bubble(graph: JobGraph, pipeline: Pipeline) -> tuple[str, ...]:
    """Where the time of all stages goes."""
    times = pipelines.stage_times(graph, pipeline)
    whole = times["span_ns"].sum()
    shares = {name: 100 * times[name].sum() / whole for name in pipelines.PARTS}
    bubble = [name for name, words in pipelines.PARTS.items() if words.startswith("bubble")]
    total = sum(shares[name] for name in bubble)
    parts = sorted((name for name in bubble if shares[name] >= 0.5), key=lambda name: -shares[name])
    split = ", ".join(f"{pipelines.PARTS[name].removeprefix('bubble: ')} {format_percent(shares[name])}" for name in parts)
    compute, transfer = format_percent(shares["compute_ns"]), format_percent(shares["transfer_ns"])
    return (f"stages compute {compute}, transfer {transfer}, and wait {format_percent(total)} of the time (bubble): {split}",)


def _dimensions(graph: JobGraph) -> tuple[str, ...]:
    """The exposed communication of each dimension, where there are several."""
    times = dimensions.times(graph)
    if len(times[times["dimension"] != dimensions.BEFORE]) < 2:
        return ()
    whole = times["exposed_ns"].sum()
    parts = [
        f"{dimension} {format_percent(percent)} ({format_percent(percent * wait / max(exposed, 1))} waiting for other ranks)"
        for dimension, percent, wait, exposed in zip(
            *(times[name] for name in ("dimension", "percent", "wait_ns", "exposed_ns")), strict=True
        )
        if exposed > 0.01 * whole
    ]
    return (f"exposed communication: {', '.join(parts)}",)


def _of_experts(routed: experts.Experts | None, found: JobForecast | None) -> str:
    if routed is None or routed.times_share <= experts.HOT:
        return ""
    part = format_percent(100 * routed.part)
    when = "in each step" if routed.same else "in sum; in other steps it is another rank"
    lacks = f"; the rows between ranks without a profile ({_numbers(routed.missing)}) are not known" if routed.missing else ""
    share = f"the experts of rank {routed.hot} get {part} of all rows, {routed.times_share:.2g} times their share, {when}"
    return f"{share}{_takes(found, 'experts', 'with equal shares')}{lacks}"


def _of_host(job: Job, late: pd.DataFrame) -> str:
    """What the host of a late rank did."""
    if late.empty or late["cause"].iloc[0] != "host":
        return ""
    rank = int(late["rank"].iloc[0])
    gap = host_gap(job.open_rank(rank))
    return gap.sentence(rank, format_duration(gap.duration_ns)) if gap else ""
