"""The graph of a job in sentences: which stage, expert or host it waits for, and what a step takes without that; and what the host of a rank
does in the longest time in which its device waits for a launch."""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pandas as pd

from warpladder.dashboard.core.job_graph import dimensions, experts, groups, pipelines
from warpladder.dashboard.core.job_graph.forecast import SLOW_GROUP, SLOW_RANKS, UNEVEN, JobForecast
from warpladder.dashboard.core.job_graph.graph import JobGraph
from warpladder.dashboard.core.job_graph.pipelines import Pipeline
from warpladder.dashboard.core.numbers import format_duration, format_percent
from warpladder.dashboard.core.traces import Job
from warpladder.data import store
from warpladder.data.words import first_of, named_ranks

#: The change of a pipeline with one stage that is slower than the others.
EQUAL_STAGES: Final = "equal stages"
#: Ranks that a sentence names.
_NAMED: Final = 8
#: From this percentage of the time on, a part of the bubble is named.
_SHOWN: Final = 0.5


@dataclass(frozen=True)
class GraphAnswer:
    """The sentences about a job.

    Attributes:
        pipeline: its size, and the stage that paces it; empty without a pipeline.
        cause: why a late rank is late, in more words than the import has; empty where it has none.
        further: sentences below.
        change: a change that makes a step shorter, for the forecast; empty where none does.
        host: the rank whose host paces a pipeline; None where no host does.
        vain: no step is shorter with the late ranks like the others.
        slow: which group of ranks communicates slowly, where a step would be shorter without that; empty where none does.
    """

    pipeline: str = ""
    cause: str = ""
    further: tuple[str, ...] = ()
    change: str = ""
    host: int | None = None
    vain: bool = False
    slow: str = ""


def answer(job: Job, found: JobForecast) -> GraphAnswer:
    """The sentences about a job, from its graph."""
    return replace(_answer(job, found), slow=_slow_group(found))


def _answer(job: Job, found: JobForecast) -> GraphAnswer:
    ranks = job.frame("ranks", "rank", "late", "cause")
    late = ranks[ranks["late"].astype(bool)]
    graph, pipeline, routed = found.graph, found.pipeline, experts.experts_of(job)
    if graph is None:
        return GraphAnswer("", _of_experts(routed, found))
    if pipeline:
        pacing, change, host = _pacing(graph, pipeline, found)
        return GraphAnswer(pacing, "", (_bubble(graph, pipeline), *_dimensions(graph)), change, host)
    cause = _of_experts(routed, found)
    if cause and routed and (late.empty or routed.hot in set(late["rank"])):
        return GraphAnswer("", cause, _dimensions(graph), "equal shares of the experts")
    of_host = _of_host(job, late)
    name, condition = _levelled(found, late["rank"].tolist(), len(graph.ranks))
    further = (_takes(found, name, condition).removeprefix("; "), cause, *_dimensions(graph))
    vain = bool(further[0]) and not _helps(found, name)
    return GraphAnswer("", of_host, tuple(each for each in further if each), vain=vain)


def _takes(found: JobForecast, name: str, condition: str) -> str:
    """`; with stage 2 like the others, steps would end every 158 in place of 217 ms, 27.2 % less`; empty without a forecast."""
    outcome = found.of(name)
    if outcome is None:
        return ""
    if not _helps(found, name):
        return f"; {condition}, a step would not be shorter"
    return f"; {condition}, steps would end every {_in_place(outcome.step_ns, found.step_ns)}"


def _in_place(then_ns: float, now_ns: float) -> str:
    """`158 in place of 217 ms, 27.2 % less`."""
    (then, unit), now = format_duration(then_ns).split(" "), format_duration(now_ns)
    then = then if now.endswith(f" {unit}") else f"{then} {unit}"
    return f"{then} in place of {now}, {format_percent(100 * (1 - then_ns / now_ns))} less"


def _levelled(found: JobForecast, late: list[int], ranks: int) -> tuple[str, str]:
    """The change that makes the late ranks like the others, and its condition in words; empty where none is late."""
    if late and found.of(SLOW_RANKS):
        return SLOW_RANKS, "with the slow ranks like the others"
    others = "the others" if ranks > len(late) + 1 else "the other"
    return (f"rank-{late[0]}", f"with rank {late[0]} like {others}") if late else ("", "")


def _helps(found: JobForecast, name: str) -> bool:
    """Whether a change makes a step shorter."""
    outcome = found.of(name)
    return outcome is not None and outcome.step_ns <= 0.98 * found.step_ns


def _slow_group(found: JobForecast) -> str:
    slow = found.slow_group
    if slow is None or not _helps(found, SLOW_GROUP):
        return ""
    times = format_duration(slow.own_ns), format_duration(slow.usual_ns)
    return f"{groups.sentence(slow, *times, named_ranks(slow.ranks))}{_takes(found, SLOW_GROUP, 'with it like the others')}"


def _pacing(graph: JobGraph, pipeline: Pipeline, found: JobForecast) -> tuple[str, str, int | None]:
    """Which stage paces a pipeline, a change that makes a step shorter, and the rank whose host paces it."""
    pieces, count = graph.pieces, len(graph.iterations)
    sums = pieces.groupby("rank")[["compute_ns", "host_ns"]].sum().groupby(pd.Series(pipeline.stage_of)).mean() / count
    total = sums.sum(axis=1)
    stage = int(total.to_numpy().argmax())
    others = sums.drop(index=stage).median()
    kind = "" if pipeline.schedule == pipelines.UNKNOWN else f", {pipeline.schedule}"
    size = f"pipeline of {len(pipeline.stages)} stages, {pipeline.micro_batches} micro-batches{kind}"
    if total[stage] < UNEVEN * others.sum():
        return f"{size}: no stage is slower than the others", "more micro-batches", None
    ranks, more = named_ranks(pipeline.stages[stage]), sums.loc[stage] - others
    change = EQUAL_STAGES if _helps(found, "stages-median") else ""
    if more["host_ns"] > more["compute_ns"]:
        waits = format_duration(sums["host_ns"].tolist()[stage])
        which = f"{size}: the host of {ranks} (stage {stage}) paces it, as its GPU waits {waits} a step for launches"
        takes = _takes(found, "stages-median", "with equal compute in the stages")
        vain = ", as they would wait for that host instead" if takes.endswith("shorter") else ""
        return f"{which}{takes}{vain}", change, pipeline.stages[stage][0]
    own, median = format_duration(sums["compute_ns"].tolist()[stage]), format_duration(others["compute_ns"])
    which = f"{size}: stage {stage} ({ranks}) paces it with {own} of compute a step, the others have {median}"
    takes = _takes(found, "stages-median", f"with stage {stage} like the others")
    return f"{which}{takes}", change, None


def _bubble(graph: JobGraph, pipeline: Pipeline) -> str:
    """How much of the time of all stages is bubble; the parts, with one decimal each, add up."""
    times = pipelines.stage_times(graph, pipeline)
    whole = times["span_ns"].sum()
    shares = {words: float(100 * times[name].sum() / whole) for name, words in pipelines.PARTS.items()}
    bubble = {words.removeprefix("bubble: "): share for words, share in shares.items() if words.startswith("bubble: ")}
    waits = round(sum(bubble.values()), 1)
    parts = {words: round(share, 1) for words, share in bubble.items() if share >= _SHOWN and words != "not explained"}
    split = [f"{share} % {words}" for words, share in sorted(parts.items(), key=lambda part: -part[1])]
    other = round(waits - sum(parts.values()), 1)
    split += [f"{other} % other"] if other else []
    return f"bubble, mean of the stages: they wait {waits} % of the time for each other ({', '.join(split)})"


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


def _of_experts(routed: experts.Experts | None, found: JobForecast) -> str:
    if routed is None or routed.times_share <= experts.HOT:
        return ""
    part = format_percent(100 * routed.part)
    when = "in each step" if routed.same else "in sum; in other steps it is another rank"
    lacks = (
        f"; the rows between ranks without a profile ({first_of(routed.missing, _NAMED)}) are not known"
        if routed.missing
        else ""
    )
    share = (
        f"the experts of rank {routed.hot} get {part} of all rows (tokens), {routed.times_share:.2g} times their share, {when}"
    )
    equal = f"with equal shares (rank {routed.hot} computes and transfers less)"
    return f"{share}{_takes(found, 'experts', equal)}{lacks}"


def _of_host(job: Job, late: pd.DataFrame) -> str:
    """The work of the host of a late rank."""
    if late.empty or late["cause"].iloc[0] != "host":
        return ""
    rank = int(late["rank"].iloc[0])
    gap, ranks = host_gap(job.open_rank(rank)), job.frame("ranks", "rank", "status", "late")
    others = ranks.loc[(ranks["status"] == "ok") & ~ranks["late"].astype(bool), "rank"]
    usual = host_gap(job.open_rank(int(others.iloc[0]))) if gap and len(others) else None
    is_usual = gap and usual and usual.duration_ns >= _LIKE * gap.duration_ns
    return gap.sentence(rank) if gap and not is_usual else ""


#: A hole between operators that is at least this part of the wait explains it.
_MOST: Final = 0.5
#: A wait explains no lateness where another rank, which is not late, has one of at least this part of it.
_LIKE: Final = 0.8


@dataclass(frozen=True)
class HostGap:
    """The longest wait of a device for its host.

    Attributes:
        duration_ns: of the wait.
        operator: that the launching thread ran for most of it; empty where it ran none.
        text: the innermost range of the program around it; empty without one.
        before, after: the operators before and behind it; empty where they are not known.
    """

    duration_ns: int
    operator: str
    text: str
    before: str
    after: str

    def sentence(self, rank: int) -> str:
        duration = format_duration(self.duration_ns)
        where = f" between {self.before} and {self.after}" if self.before and self.after else ""
        where = where or (f" after {self.before}" if self.before else f" before {self.after}" if self.after else "")
        inside = f" in range {self.text}" if self.text else ""
        what = f"runs {self.operator} for {duration}"
        if not self.operator:
            what = f"runs no operator of PyTorch for {duration} (Python, sleep, files)"
        return f"the GPU of rank {rank} waits longest for a launch while its host {what}{where}{inside}"


def host_gap(run: store.Run) -> HostGap | None:
    """The longest wait; None where the profile has no launches."""
    kernels = run.arrow("kernels", ["start_ns", "end_ns", "launch_start_ns", "process", "correlation"]).to_pandas()
    kernels = kernels.dropna(subset="launch_start_ns").sort_values("start_ns", ignore_index=True)
    if len(kernels) < 2:
        return None
    opens = kernels["end_ns"].cummax().shift()
    waits = (kernels["launch_start_ns"] - opens).fillna(0)
    place = int(waits.to_numpy().argmax())
    if waits[place] <= 0:
        return None
    begin, end = int(opens[place]), int(kernels["launch_start_ns"][place])
    operators = _operators(run, int(kernels["process"][place]), int(kernels["correlation"][place]))
    text = _range(run, begin, end)
    if operators.empty:
        return HostGap(end - begin, "", text, "", "")
    names = operators["name"].astype(str).tolist()
    starts, ends = operators["start_ns"].to_numpy(), operators["end_ns"].cummax().to_numpy()
    holes = np.minimum(np.append(starts, end), end) - np.maximum(np.append(begin, ends), begin)
    hole = int(holes.argmax())
    if holes[hole] >= _MOST * (end - begin):
        return HostGap(int(holes[hole]), "", text, names[hole - 1] if hole else "", [*names, ""][hole])
    overlap = (operators["end_ns"].clip(upper=end) - operators["start_ns"].clip(lower=begin)).to_numpy()
    longest = int(overlap.argmax())
    before = operators.index[operators["end_ns"] <= end]
    after = operators.index[operators["start_ns"] >= begin]
    last = names[before[-1]] if len(before) else ""
    first = names[after[0] if len(after) else longest]
    return HostGap(int(overlap[longest]), names[longest], text, last if last != names[longest] else "", first)


def _operators(run: store.Run, process: int, correlation: int) -> pd.DataFrame:
    """The outermost operators, by start, of the thread with a call of a process; none where the call is not known."""
    if "operations" not in run.tables:
        return pd.DataFrame(columns=["start_ns", "end_ns", "name"])
    calls = run.arrow("api_calls", ["process", "thread", "correlation"]).to_pandas()
    of_call = calls[(calls["process"] == process) & (calls["correlation"] == correlation)]
    rows = run.arrow("operations", ["process", "thread", "start_ns", "end_ns", "name", "parent_id"]).to_pandas()
    rows = rows[(rows["process"] == process) & rows["thread"].isin(of_call["thread"]) & rows["parent_id"].isna()]
    found: pd.DataFrame = rows.sort_values("start_ns", ignore_index=True)
    return found


def _range(run: store.Run, begin: int, end: int) -> str:
    """The innermost range that covers most of a time, but no iteration's."""
    rows = run.arrow("ranges", ["text", "start_ns", "end_ns"]).to_pandas().dropna()
    overlap = np.minimum(rows["end_ns"], end) - np.maximum(rows["start_ns"], begin)
    rows = rows[(overlap >= _MOST * (end - begin)) & ~rows["text"].astype(str).str.contains("ProfilerStep", regex=False)]
    return "" if rows.empty else str(rows.loc[(rows["end_ns"] - rows["start_ns"]).idxmin(), "text"])
