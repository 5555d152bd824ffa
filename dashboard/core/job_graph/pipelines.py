"""The pipeline of a job: its stages, micro-batches and schedule, and where the time of each stage goes."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np
import pandas as pd

from warpladder.dashboard.core.job_graph.graph import Change, JobGraph, execute, others_of

#: Parts of a stage's time, in the order in which they are added up, with their words.
PARTS: Final = {
    "compute_ns": "compute",
    "host_ns": "host wait",
    "other_ns": "copies, gaps",
    "transfer_ns": "transfer",
    "schedule_ns": "bubble: schedule",
    "uneven_ns": "bubble: uneven stages",
    "for_host_ns": "bubble: others' hosts",
    "for_transfers_ns": "bubble: transfers",
    "rest_ns": "bubble: not explained",
}
UNKNOWN: Final = "unknown"
#: Compute behind a gradient that was sent on, over the compute before it, from which weights' gradients are computed there.
_SPLIT: Final = 0.25


@dataclass(frozen=True)
class Pipeline:
    """Ranks that pass micro-batches on.

    Attributes:
        stages: the ranks of each stage, in the order of the forward pass.
        micro_batches: of an iteration.
        schedule: `GPipe`, `1F1B`, `interleaved`, `zero bubble`, `forward only`, or `unknown`.
        events: forward and backward passes of each rank by time: `rank`, `iteration`, `stage`, `pass` (`F` or `B`), `number`, `start_ns`, `end_ns`.
    """

    stages: tuple[tuple[int, ...], ...]
    micro_batches: int
    schedule: str
    events: pd.DataFrame

    @cached_property
    def stage_of(self) -> dict[int, int]:
        return {rank: stage for stage, ranks in enumerate(self.stages) for rank in ranks}


def pipeline_of(graph: JobGraph) -> Pipeline | None:
    """The pipeline of a job; None where its messages make none, as those of a ring that all ranks begin together."""
    pieces = graph.pieces
    sends, receives = (others_of(pieces, name) for name in ("sends_to", "receives_from"))
    talks = [place for place in range(len(pieces)) if sends[place] or receives[place]]
    first: dict[int, int] = {}
    of: list[int] = pieces["rank"].tolist()
    for place in talks:
        first.setdefault(of[place], place)
    begins = pieces["begin_ns"].astype(float).to_numpy()
    stage: dict[int, int] = {}
    for place in sorted(talks, key=lambda each: (begins[each], each)):
        for other in sends[place]:
            source = of[place]
            if source not in stage and receives[first[source]]:
                continue
            stage.setdefault(other, stage.setdefault(source, 0) + 1)
    if (
        len(stage) < 2
        or len(stage) < len(first)
        or any(bool(sends[first[rank]]) for rank, number in stage.items() if number and rank in first)
    ):
        return None
    stages = tuple(
        tuple(sorted(rank for rank, number in stage.items() if number == each)) for each in range(max(stage.values()) + 1)
    )
    events = _events(pieces, talks, sends, receives, stage)
    last = len(stages) - 1
    begun = events[(events["pass"] == "F") & (events["stage"] == 0)].groupby(["rank", "iteration"]).size()
    wraps = sum(
        1 for place in talks if stage.get(of[place]) == last for other in sends[place] if stage[other] == 0 and last > 1
    )
    count = int(begun.median()) if len(begun) else 0
    if wraps:
        rounds = wraps // max(len(stages[-1]) * len(graph.iterations), 1)
        return Pipeline(stages, max(count - rounds, 1), "interleaved", events)
    if _computes_weights_later(pieces, sends, receives, stage):
        return Pipeline(stages, count, "zero bubble", events)
    return Pipeline(stages, count, _schedule(events, last), events)


def _computes_weights_later(
    pieces: pd.DataFrame, sends: list[list[int]], receives: list[list[int]], stage: dict[int, int]
) -> bool:
    """Whether stages send their inputs' gradients on before they compute those of their weights, as zero bubble schedules do (Qi et al., "Zero
    Bubble Pipeline Parallelism", ICLR 2024). What follows the last message of an iteration may be the optimizer."""
    of = pieces["rank"].map(stage).fillna(-1).astype(int).tolist()
    last = max(of)  # behind its messages the last stage goes on with the next micro-batch
    behind = [
        own < last and bool(to) and not got and all(stage[other] < own for other in to)
        for to, got, own in zip(sends, receives, of, strict=True)
    ]
    before = [bool(got) and all(stage[other] > own for other in got) for got, own in zip(receives, of, strict=True)]
    is_last = ~pieces.duplicated(["rank", "iteration"], keep="last")
    compute = pieces["compute_ns"]
    later, earlier = compute[np.array(behind) & ~is_last].median(), compute[np.array(before)].median()
    return bool(later > _SPLIT * earlier)


def _events(
    pieces: pd.DataFrame, talks: list[int], sends: list[list[int]], receives: list[list[int]], stage: dict[int, int]
) -> pd.DataFrame:
    """Each pass begins behind the message that lets it begin, and ends with the next message of its rank."""
    last = max(stage.values())
    rows = []
    of = list(zip(pieces["rank"].tolist(), pieces["iteration"].tolist(), strict=True))
    begin, finish = pieces["begin_ns"].astype(float).tolist(), pieces["finish_ns"].astype(float).tolist()
    compute, duration = pieces["compute_ns"].tolist(), pieces["duration_ns"].tolist()
    for before, place, after in zip([None, *talks], talks, [*talks[1:], None], strict=False):
        own = stage[of[place][0]]
        for other in sends[place]:
            if (own == 0 and stage[other] > own) or (own == last and stage[other] < own):
                previous = begin[place] - compute[place - 1]
                if before is not None and of[before] == of[place]:
                    previous = finish[before]
                rows.append((*of[place], own, "F" if own == 0 else "B", previous, begin[place]))
        behind = begin[after] if after is not None and of[after] == of[place] else begin[place] + duration[place]
        rows += [(*of[place], own, "F" if stage[other] < own else "B", finish[place], behind) for other in receives[place]]
    events = pd.DataFrame(rows, columns=["rank", "iteration", "stage", "pass", "start_ns", "end_ns"])
    events["number"] = events.groupby(["rank", "iteration", "pass"]).cumcount()
    return events


def _schedule(events: pd.DataFrame, last: int) -> str:
    """The schedule that all ranks follow in all iterations."""
    found = set()
    for _, own in events.groupby(["rank", "iteration"], sort=False):
        found.add(_of_order("".join(own["pass"]), last - own["stage"].tolist()[0]))
    kinds = found - {"any"}
    return kinds.pop() if len(kinds) == 1 else (UNKNOWN if kinds or not found else "GPipe")


def _of_order(order: str, ahead: int) -> str:
    """The schedule in which a stage runs `FFBB…`. `ahead` is how many stages follow it."""
    forward, backward = order.count("F"), order.count("B")
    if not backward:
        return "forward only"
    if forward != backward:
        return UNKNOWN
    warm = min(ahead + 1, forward)
    steady = "F" * warm + "BF" * (forward - warm) + "B" * warm
    all_forward = "F" * forward + "B" * backward
    if order == all_forward:
        return "any" if order == steady else "GPipe"
    return "1F1B" if order == steady else UNKNOWN


def stage_times(graph: JobGraph, pipeline: Pipeline) -> pd.DataFrame:
    """Where the time of each stage goes, in all iterations, a row for each stage: `stage`, `ranks`, `span_ns` (the sum of all parts), and `PARTS`.

    The waits of the replay without host and transfers, with equal stages, are what the schedule costs. What uneven stages, the host and the
    transfers add to them, one after the other, is their part. What the measured waits have more is not explained.
    """
    pieces = graph.pieces
    stage = pieces["rank"].map(pipeline.stage_of)
    waited = np.minimum(pieces["wait_ns"].astype(float).fillna(0), pieces["exposed_ns"]).astype("int64")
    frame = pieces[["compute_ns", "host_ns", "other_ns"]].assign(transfer_ns=pieces["exposed_ns"] - waited, waited_ns=waited)
    times = frame.groupby(stage).sum().sort_index()
    stopped = Change.of(graph, host=0, transfer=0)
    even = replace(stopped, compute=level(graph, pipeline, to="mean").compute)
    changes = [even, stopped, Change.of(graph, transfer=0), Change.of(graph)]
    by_rank = pd.DataFrame(execute(graph, changes).waited_ns, index=list(graph.ranks))
    by_rank = by_rank.groupby(pd.Series(pipeline.stage_of)).sum().round().astype("int64")
    causes = by_rank.diff(axis=1).fillna(by_rank[[0]]).astype("int64")
    causes.columns = pd.Index(["schedule_ns", "uneven_ns", "for_host_ns", "for_transfers_ns"])
    times = times.join(causes)
    times["rest_ns"] = times["waited_ns"] - causes.sum(axis=1)
    times.insert(0, "span_ns", times[list(PARTS)].sum(axis=1))
    times.insert(0, "ranks", [", ".join(map(str, ranks)) for ranks in pipeline.stages])
    return times.drop(columns="waited_ns").rename_axis("stage").reset_index()


def level(graph: JobGraph, pipeline: Pipeline, to: str) -> Change:
    """All stages with the mean compute of a stage (`mean`), or the slowest ones with the median (`median`)."""
    pieces, change = graph.pieces, Change.of(graph)
    sums = pieces.groupby("rank")["compute_ns"].sum()
    of_stage = sums.groupby(pd.Series(pipeline.stage_of)).mean()
    goal = of_stage.mean() if to == "mean" else of_stage.median()
    factor = goal / of_stage.clip(lower=1)
    factor = factor if to == "mean" else factor.clip(upper=1)
    change.compute[:] = pieces["rank"].map(pipeline.stage_of).map(factor).to_numpy()
    return change
