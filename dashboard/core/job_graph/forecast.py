"""The gain of a step of a job from one change at a time, from a replay of the waits of its ranks."""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pandas as pd

from warpladder.dashboard.core.job_graph import experts, pipelines
from warpladder.dashboard.core.job_graph.dimensions import pieces_by_dimension
from warpladder.dashboard.core.job_graph.graph import Change, JobGraph, execute, job_graph
from warpladder.dashboard.core.job_graph.groups import SlowGroup, slow_group
from warpladder.dashboard.core.job_graph.pipelines import Pipeline, pipeline_of
from warpladder.dashboard.core.replay import Contradiction
from warpladder.dashboard.core.traces import Job
from warpladder.data.arrays import Bools
from warpladder.data.words import named_ranks

#: The replay without a change must give the measured step within this part of it.
_CLOSE: Final = 0.02
#: A rank, a stage or an expert is no outlier below this many times the others.
UNEVEN: Final = 1.03
#: The change that makes several slow ranks like the others.
SLOW_RANKS: Final = "slow-ranks"
#: The change that makes a slow group like the others.
SLOW_GROUP: Final = "slow-group"
#: Halvings of the interval in which the part of the waits for hosts is sought.
_TRIES: Final = 30
#: How much longer the kernels of halved micro-batches may take in sum, as a part of the slowest stage's compute; measured on two H200.
_LESS_EFFICIENT: Final = 0.12


@dataclass(frozen=True)
class Outcome:
    """A step with a change.

    Attributes:
        name: of the change, for `--if`.
        words: what is changed.
        step_ns, low_ns, high_ns: the mean step, the shortest and the longest.
    """

    name: str
    words: str
    step_ns: float
    low_ns: float
    high_ns: float


@dataclass(frozen=True)
class JobForecast:
    """The changes of a job by falling gain, or why there is no forecast.

    Attributes:
        step_ns: the mean step as measured, or as given.
        replayed_ns: the same, replayed without a change.
        outcomes: empty where `why_not` has the reason.
        graph, pipeline, slow_group: of the job; None where it has none.
    """

    step_ns: float
    replayed_ns: float
    outcomes: tuple[Outcome, ...] = ()
    why_not: str = ""
    graph: JobGraph | None = None
    pipeline: Pipeline | None = None
    slow_group: SlowGroup | None = None

    def of(self, name: str) -> Outcome | None:
        return next((each for each in self.outcomes if each.name == name), None)


def forecast(job: Job, step_ns: float | None = None) -> JobForecast:
    """Replay the iterations of a job with each change that applies to it.

    Args:
        step_ns: the step without the profiler. What the profiler adds is taken off the waits for hosts first.
    """
    graph = job_graph(job)
    if graph is None:
        why = "the job has no collectives, clocks of its ranks are not aligned, or they have no iterations in common"
        return JobForecast(np.nan, np.nan, why_not=why)
    pipeline = pipeline_of(graph)
    measured = float(np.mean(graph.steps_ns))
    found = JobForecast(measured, np.nan, graph=graph, pipeline=pipeline, slow_group=slow_group(graph))
    try:
        base = float(execute(graph, [Change.of(graph)]).steps_ns.mean())
    except Contradiction as error:
        return replace(found, why_not=str(error))
    if abs(base - measured) > _CLOSE * measured:
        why = f"the replay without a change is {100 * (base / measured - 1):+.1f} % from the measured step, more than 2 %"
        return replace(found, replayed_ns=base, why_not=why)
    less = 1.0
    if step_ns is not None and step_ns < base:
        less = _without_profiler(graph, step_ns)
        base = measured = float(execute(graph, [Change.of(graph, host=less)]).steps_ns.mean())
        if abs(base - step_ns) > _CLOSE * step_ns:
            why = "the step without the profiler is shorter than the work of the devices in the profile"
            return replace(found, step_ns=step_ns, replayed_ns=base, why_not=why)
    options = _options(job, graph, pipeline)
    if slow := found.slow_group:
        options.append((SLOW_GROUP, f"the group of {named_ranks(slow.ranks)} as fast as other groups", slow.level))
    changes = [replace(each, host=each.host * less) for _, _, each in options]
    # Less compute may be fewer launches: at best, the host is faster by the same factor.
    best = [replace(each, host=each.host * np.minimum(each.compute, 1)) for each in changes]
    steps = execute(graph, [*changes, *best, Change.of(graph, host=less)]).steps_ns
    doubt = abs(base - measured)
    outcomes = [
        Outcome(name, words, float(own.mean()), float(min(own.min(), fewer.min())) - doubt, float(own.max()) + doubt)
        for (name, words, _), own, fewer in zip(options, steps.T, steps.T[len(options) :], strict=False)
    ]
    outcomes += _micro_batches(graph, pipeline, float(steps[:, -1].mean()))
    outcomes.sort(key=lambda each: each.step_ns)
    return replace(found, step_ns=measured, replayed_ns=base, outcomes=tuple(outcomes))


def _without_profiler(graph: JobGraph, step_ns: float) -> float:
    """The part of the waits for hosts that is left without the profiler."""
    low, high = 0.0, 1.0
    for _ in range(_TRIES):
        middle = (low + high) / 2
        longer = execute(graph, [Change.of(graph, host=middle)]).steps_ns.mean() > step_ns
        low, high = (low, middle) if longer else (middle, high)
    return high


def _options(job: Job, graph: JobGraph, pipeline: Pipeline | None) -> list[tuple[str, str, Change]]:
    found: list[tuple[str, str, Change]] = []
    if pipeline:
        found.append(("stages-median", "no stage slower than the median stage", pipelines.level(graph, pipeline, "median")))
        found.append(("stages", "the same compute in equal stages", pipelines.level(graph, pipeline, "mean")))
    routed = experts.experts_of(job)
    if routed and routed.times_share > experts.HOT:
        found.append(("experts", "equal rows for the experts of each rank", experts.level(graph)))
    slow, levelled = _slow_ranks(graph, pipeline, compute=not (routed and routed.times_share > experts.HOT))
    if len(slow) == 1:
        found.append((f"rank-{slow[0]}", f"rank {slow[0]} as fast as the median of its peers", levelled))
    elif slow:
        found.append((SLOW_RANKS, f"{named_ranks(slow)} as fast as the median of their peers", levelled))
    found.append(("host", "no wait for hosts, as with CUDA graphs", Change.of(graph, host=0)))
    for name, chosen in pieces_by_dimension(graph).items():
        for how, part, words in (("twice", 0.5, "twice as fast"), ("hidden", 0.0, "hidden")):
            change = replace(Change.of(graph), transfer=np.where(chosen, part, 1.0))
            found.append((f"{name}-{how}", f"{name} communication {words}", change))
    return found


def _slow_ranks(graph: JobGraph, pipeline: Pipeline | None, *, compute: bool) -> tuple[list[int], Change]:
    """The ranks whose work takes longer than the work of their peers, the ranks of a stage, and the change that makes them like these.

    The slowest one counts, and those that exceed their peers at least half as much.
    """
    pieces, times = graph.pieces, ["compute_ns", "host_ns", "other_ns"]
    counted = ~(pieces["is_first"] & (pieces["iteration"] == graph.iterations[0]))
    sums = pieces[counted].groupby("rank")[times].sum()
    stages = pipeline.stages if pipeline else (graph.ranks,)
    excess, slower = dict[int, float](), dict[int, tuple[list[int], Bools]]()
    for ranks in (each for each in stages if len(each) > 1):
        for rank in ranks:
            peers = [each for each in ranks if each != rank]
            usual = sums.loc[peers].median().to_numpy()
            slow = sums.loc[rank].to_numpy(np.float64)
            slow[0] = slow[0] if compute else usual[0]
            more = float(slow.sum() / max(usual.sum(), 1)) - 1
            if more > UNEVEN - 1:
                excess[rank], slower[rank] = more, (peers, slow > usual)
    found = sorted(rank for rank, more in excess.items() if more >= max(excess.values()) / 2)
    change = Change.of(graph)
    for rank in found:
        (like, kinds), chosen = slower[rank], (pieces["rank"] == rank).to_numpy()
        of_peers = _like_peers(pieces[chosen], pieces[pieces["rank"].isin(like)])
        factors = np.where(kinds, of_peers[times].to_numpy(), 1.0)
        change.compute[chosen], change.host[chosen], change.other[chosen] = factors.T
    return found, change


def _like_peers(own: pd.DataFrame, peers: pd.DataFrame) -> pd.DataFrame:
    """The median of the times of the peers of a rank over its own, for each of its pieces: of that piece, where all have as many in the iteration, since
    a rank may be slow in a few places; else of the iteration."""
    times, piece = ["compute_ns", "host_ns", "other_ns"], ["iteration", "place"]
    own, peers = (each.assign(place=each.groupby(["rank", "iteration"]).cumcount()) for each in (own, peers))
    of_pieces = peers.groupby(piece)[times].median().reindex(pd.MultiIndex.from_frame(own[piece])).set_index(own.index)
    sums = peers.groupby(["rank", "iteration"])[times].sum().groupby("iteration").median()
    of_steps = sums / own.groupby("iteration")[times].sum().clip(lower=1)
    of_steps = of_steps.reindex(own["iteration"]).set_index(own.index)
    counts = pd.concat([own, peers]).groupby(["rank", "iteration"]).size().groupby("iteration")
    alike = own["iteration"].map(counts.nunique() == 1)
    found: pd.DataFrame = (of_pieces / own[times].clip(lower=1)).where(alike, of_steps)
    return found


def _micro_batches(graph: JobGraph, pipeline: Pipeline | None, base: float) -> list[Outcome]:
    """A pipeline of stages with times t, of all M micro-batches, takes max t + (sum t - max t) / M."""
    if not pipeline or pipeline.schedule not in ("GPipe", "1F1B"):
        return []
    steps = len(graph.iterations)
    stage = graph.pieces["rank"].map(pipeline.stage_of)
    time = graph.pieces.groupby(stage)["compute_ns"].sum() / [len(ranks) * steps for ranks in pipeline.stages]
    found = []
    for times in (2, 4):
        count = times * pipeline.micro_batches
        step = base - float(time.sum() - time.max()) * (1 - 1 / times) / pipeline.micro_batches
        low, high = step, step + _LESS_EFFICIENT * times / 2 * float(time.max())
        found.append(Outcome(f"micro-batches-{count}", f"{count} smaller micro-batches", step, low, high))
    return found
