"""The pipeline of a job: its stages, micro-batches and schedule, and where the time of each stage goes."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np
import pandas as pd

from warpladder.dashboard.core.job_graph.graph import Change, JobGraph, execute
from warpladder.data.job_tables import peers_of

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
_FEWEST: Final = 2
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
    messages = _messages(graph.pieces)
    stage = _stages(messages)
    if not stage:
        return None
    last = max(stage.values())
    stages = tuple(tuple(sorted(rank for rank in stage if stage[rank] == each)) for each in range(last + 1))
    messages = messages.assign(stage=messages["rank"].map(stage), to=messages["other"].map(stage))
    events = _events(graph.pieces, messages, last)
    begun = events[(events["pass"] == "F") & (events["stage"] == 0)].groupby(["rank", "iteration"]).size()
    count = int(begun.median()) if len(begun) else 0
    wraps = int((messages["sends"] & (messages["stage"] == last) & (messages["to"] == 0)).sum()) if last > 1 else 0
    if wraps:
        rounds = wraps // max(len(stages[-1]) * len(graph.iterations), 1)
        return Pipeline(stages, max(count - rounds, 1), "interleaved", events)
    schedule = "zero bubble" if _computes_weights_later(graph.pieces, messages, last) else _schedule(events, last)
    return Pipeline(stages, count, schedule, events)


def _messages(pieces: pd.DataFrame) -> pd.DataFrame:
    """The messages of all ranks: `piece`, in their order, `rank`, `iteration`, `begin_ns`, `sends` or receives, and the `other` rank."""
    every = [
        pieces[["rank", "iteration", "begin_ns"]]
        .assign(sends=sends, other=pieces[name].dropna().map(peers_of))
        .explode("other")
        for name, sends in (("sends_to", True), ("receives_from", False))
    ]
    rows = pd.concat(every).dropna(subset="other").rename_axis("piece").sort_index(kind="stable")
    return rows.reset_index()


def _stages(messages: pd.DataFrame) -> dict[int, int]:
    """The stage of each rank, from who sends to whom first; empty where that makes no pipeline."""
    first = messages[messages["piece"] == messages.groupby("rank")["piece"].transform("min")]
    receiving, sending = (set(first.loc[first["sends"] == sends, "rank"]) for sends in (False, True))
    stage: dict[int, int] = {}
    sent = messages[messages["sends"]].sort_values(["begin_ns", "piece"], kind="stable")
    for source, other in zip(sent["rank"].tolist(), sent["other"].tolist(), strict=True):
        if source in stage or source not in receiving:
            stage.setdefault(other, stage.setdefault(source, 0) + 1)
    complete = len(stage) >= max(first["rank"].nunique(), _FEWEST)
    return stage if complete and not any(stage.get(rank) for rank in sending) else {}


def _computes_weights_later(pieces: pd.DataFrame, messages: pd.DataFrame, last: int) -> bool:
    """Whether stages send their inputs' gradients on before they compute those of their weights, as zero bubble schedules do (Qi et al., "Zero
    Bubble Pipeline Parallelism", ICLR 2024). What follows the last message of an iteration may be the optimizer."""
    backward = messages["to"] < messages["stage"]
    of_piece = messages.assign(back=backward, ahead=messages["to"] > messages["stage"]).groupby("piece")
    sends, receives = of_piece["sends"].any(), (~messages["sends"]).groupby(messages["piece"]).any()
    # Behind its messages the last stage goes on with the next micro-batch.
    behind = sends & ~receives & of_piece["back"].all() & (of_piece["stage"].first() < last)
    got = messages[~messages["sends"]].groupby("piece")
    before = (got["to"].min() > got["stage"].first()).reindex(pieces.index, fill_value=False)
    follows = behind.reindex(pieces.index, fill_value=False) & pieces.duplicated(["rank", "iteration"], keep="last")
    compute = pieces["compute_ns"]
    return bool(compute[follows].median() > _SPLIT * compute[before].median())


def _events(pieces: pd.DataFrame, messages: pd.DataFrame, last: int) -> pd.DataFrame:
    """Each pass begins behind the message that lets it begin, and ends with the next message of its rank."""
    talks = pieces.loc[messages["piece"].unique(), ["rank", "iteration", "begin_ns", "finish_ns", "duration_ns"]].astype(
        "float64"
    )
    of_rank = talks.groupby(["rank", "iteration"])
    own = talks["begin_ns"] - pieces["compute_ns"].shift().reindex(talks.index)
    previous = of_rank["finish_ns"].shift().where(of_rank.cumcount() > 0, own)
    behind = of_rank["begin_ns"].shift(-1).fillna(talks["begin_ns"] + talks["duration_ns"])
    rows = messages.join(talks["finish_ns"], on="piece").join(
        pd.DataFrame({"previous": previous, "behind": behind}), on="piece"
    )
    forward = np.where(rows["sends"], rows["stage"] == 0, rows["to"] < rows["stage"])
    rows = rows.assign(**{"pass": np.where(forward, "F", "B")})
    rows["start_ns"] = rows["previous"].where(rows["sends"], rows["finish_ns"])
    rows["end_ns"] = rows["begin_ns"].astype(float).where(rows["sends"], rows["behind"])
    # A pass begins with a message, but for the forward passes of the first stage and the backward passes of the last one.
    ahead, back = rows["to"] > rows["stage"], rows["to"] < rows["stage"]
    rows = rows[~rows["sends"] | ((rows["stage"] == 0) & ahead) | ((rows["stage"] == last) & back)]
    events = rows[["rank", "iteration", "stage", "pass", "start_ns", "end_ns"]].reset_index(drop=True)
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
