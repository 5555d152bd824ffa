"""Where the time of each rank and iteration of a job goes, and how far a rank is from the median rank."""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd

from warpladder.dashboard.core.job_graph import answer as of_graph
from warpladder.dashboard.core.job_graph import dimensions
from warpladder.dashboard.core.job_graph.experts import experts_of
from warpladder.dashboard.core.job_graph.forecast import JobForecast, forecast
from warpladder.dashboard.core.job_graph.pipelines import stage_times
from warpladder.dashboard.core.lateness import lateness
from warpladder.dashboard.core.numbers import format_percent
from warpladder.dashboard.core.run_data import RunData, once
from warpladder.dashboard.trace.parts import Parts, Steps, Told, about_kernels, advice
from warpladder.dashboard.views.ranks import late as of_late
from warpladder.dashboard.views.ranks.job_kernels import query as kernels
from warpladder.data import job_tables
from warpladder.data.statistics import OVER_MEDIAN_DEVIATION
from warpladder.data.words import counted

#: Figure of a rank in an iteration -> its words.
FIGURES: Final = {
    "exposed": "exposed communication",
    "communication": "communication",
    "busy": "busy",
    "idle": "idle",
    "host_wait": "host wait",
    "kernel_wait": "kernel wait",
    "other_idle": "other idle",
    "wait": "wait for other ranks",
}
#: The parts that the span of a rank is made of, with their words.
PARTS: Final = {
    "compute_ns": "compute",
    "graph_ns": "CUDA graphs",
    "exposed_ns": "exposed communication",
    "copies_ns": "copies alone",
    "host_wait_ns": "host wait",
    "kernel_wait_ns": "kernel wait",
    "other_idle_ns": "other idle",
}
#: The option of nsys with which the kernels of graphs are known.
BY_NODE: Final = "--cuda-graph-trace node"
#: A spread counts as at least this share of the median span, so that ranks that agree closely make no outliers.
LEAST_SPREAD: Final = 1e-3
#: A rank differs from the median from this many spreads on.
_DIFFERS: Final = 3.0
#: Fewer ranks have no spread, and of fewer none is late.
_FEWEST, _FEWEST_LATE = 3, 2
_MEASURED: Final = (
    "span_ns",
    "busy_ns",
    "compute_ns",
    "graph_ns",
    "communication_ns",
    "exposed_ns",
    "host_wait_ns",
    "kernel_wait_ns",
)
_TIMES: Final = (*_MEASURED, "other_idle_ns", "wait_ns")


_BREAKDOWN: Final = tuple(column.name for column in job_tables.BREAKDOWN)
#: Cause of a late rank -> what to do.
_ABOUT_LATE: Final = {
    "compute": "see which kernels take longer on rank {rank}, and in which steps: warpladder app, page Ranks",
    "work": "see which kernels rank {rank} executes more often: warpladder app, page Ranks",
    "host": "see what the host of rank {rank} does before late launches: warpladder app, page Timeline",
    "copies": "see what rank {rank} copies, and when: warpladder app, page Timeline",
    "clock": "compare the clock of rank {rank}'s GPU with those of the others: nvidia-smi -q -d CLOCK,PERFORMANCE",
    "": "see in which steps rank {rank} is late: warpladder app, page Ranks",
}
_ABOUT_GPU: Final = "run all ranks on the same kind of GPU, or give rank {rank} less work"


@dataclass(frozen=True)
class Answer:
    """The one figure of a job.

    Attributes:
        exposed_percent: exposed communication in percent of the span, over all ranks and iterations; NaN without a span, and where it is
            not known.
        graph_percent: CUDA graphs that were traced as a whole, in percent of the time in which the devices work. What communicates in them
            is not known.
        lateness: which rank is late.
        by_iteration: the ranks have iterations; else the span is that of the whole profile.
        pacing: which stage of a pipeline paces it; empty without a pipeline. A rank that is late for one collective is no finding beside it.
        slow: which group of ranks communicates slowly; empty where none does.
        outside: what of the profiles is outside of all iterations; empty where nothing is.
        reasons: why no late rank can be told, or how alike the ranks are; empty where one is late.
    """

    exposed_percent: float
    graph_percent: float
    lateness: str
    by_iteration: bool
    reasons: tuple[str, ...]
    outside: str = ""
    pacing: str = ""
    slow: str = ""

    @property
    def sentence(self) -> str:
        """`31.0 % of the step is exposed communication; rank 13 is late: the others wait 4.50 s longer, …`."""
        finding = self.pacing or self.slow or self.lateness
        if self.graph_percent:
            return (
                f"{format_percent(self.graph_percent)} of the device time is CUDA graphs that were traced whole, so that the communication is "
                f"not known: profile with {BY_NODE}; {finding}"
            )
        whole = "step" if self.by_iteration else "profile"
        return f"{format_percent(self.exposed_percent)} of the {whole} is exposed communication; {finding}"


def answer(data: RunData) -> Answer:
    """The exposed communication of a job and its late rank."""
    cells = by_iteration(data)
    (span, busy, whole), late, graph = cells[["span_ns", "busy_ns", "graph_ns"]].sum(), lateness(data), graph_answer(data)
    percent = 100 * cells["exposed_ns"].sum() / span if span and not whole else np.nan
    return Answer(
        float(percent),
        float(100 * whole / busy) if whole else 0.0,
        late.sentence,
        bool(cells["iteration"].notna().any()),
        late.reasons,
        _outside(data, cells),
        graph.pipeline,
        graph.slow,
    )


@once
def graph_answer(data: RunData) -> of_graph.GraphAnswer:
    """Say what the graph of the job waits for: a stage, an expert or a host."""
    return of_graph.answer(data.job, job_forecast(data))


@once
def job_forecast(data: RunData) -> JobForecast:
    """The graph of the job, its pipeline, and what a step takes after one change each."""
    return forecast(data.job)


def told(data: RunData) -> Told:
    """What most of the time is, which stage or rank the others wait for, why, the steps, and what to do first."""
    parts, of_steps = mean_time(data), steps(data)
    headline = parts.headline if parts.span_ns else ""
    sentence = of_steps.sentence(parts, _of_devices(data)) if of_steps else ""
    return Told(headline, (*sentences(data), *_differing_kernel(data)), sentence, _to_do(data, parts))


def sentences(data: RunData) -> tuple[str, ...]:
    """Which stage or rank the others wait for, why, and what a step takes without that; no late rank where fewer than two communicate."""
    found, graph, why = answer(data), graph_answer(data), cause(data)
    talk = int((data.job.frame("ranks", "communication_ns")["communication_ns"] > 0).sum())
    if graph.pipeline:
        lines = [graph.pipeline]
    elif talk < _FEWEST_LATE:
        lines = []
    elif found.reasons:
        lines = [f"{found.lateness}: {found.reasons[-1]}"]
    else:
        lines = [found.lateness, f"cause: {why}" if why else ""]
    return tuple(each for each in (graph.slow, *lines, *graph.further) if each)


def cause(data: RunData) -> str:
    """Why the late ranks are late, in words; empty where none is late or their causes differ."""
    return graph_answer(data).cause or of_late.cause_of(of_late.ranking(data))


def _differing_kernel(data: RunData) -> tuple[str, ...]:
    """The kernel that differs between ranks, where that is why one is late or paces the others."""
    late = set(_with_profile(data).query("late")["cause"]) & {"compute", "work", "clock"}
    graph = graph_answer(data)
    if graph.cause or not (late or graph.change == of_graph.EQUAL_STAGES):
        return ()
    executed = kernels.kernels(data, None)
    return (kernels.title_of(executed),) if len(executed) and kernels.most_different(executed) is not None else ()


def _with_profile(data: RunData) -> pd.DataFrame:
    """The rows of table `ranks` that have a profile."""
    ranks = data.job.frame("ranks", "rank", "status", "late", "cause", "waiting_calls_ns", *_BREAKDOWN)
    return ranks[ranks["status"] == "ok"]


@once
def device_time(data: RunData) -> Parts:
    """Where the time of all ranks goes, in sum."""
    of_devices = _of_devices(data)
    return Parts.of(_with_profile(data), f"first to last work{of_devices}" if of_devices else "first to last device work")


def mean_time(data: RunData) -> Parts:
    """Where the time of a rank goes, on average."""
    return device_time(data).mean(max(len(_with_profile(data)), 1))


def _of_devices(data: RunData) -> str:
    """` of 2 devices`, of each rank, where ranks have several; empty where each has one."""
    of_all, count = devices(data), len(_with_profile(data))
    if of_all <= count:
        return ""
    return f" of {of_all // count} devices" if not of_all % count else f", {of_all} devices on {counted(count, 'rank')}"


def devices(data: RunData) -> int:
    return len(data.job.frame("rank_devices", "rank"))


def steps(data: RunData) -> Steps | None:
    """The steps of all ranks; None without any."""
    waits = int(_with_profile(data)["waiting_calls_ns"].sum())
    return Steps.of(data.job.frame("iterations", *Steps.COLUMNS), waits)


def _to_do(data: RunData, parts: Parts) -> str:
    """What to do first: about what all ranks wait for, else about the largest part."""
    graph, ranks = graph_answer(data), _with_profile(data)
    if graph.change and graph.host is None:
        return f"see what {graph.change} and other changes bring: warpladder forecast {data.argument}"
    if graph.slow:
        return "see how the ranks of the slow group are connected: nvidia-smi topo -m, and NCCL_DEBUG=INFO for the paths that NCCL takes"
    late = lateness(data).late[:1] if graph.host is None else (graph.host,)
    if late and not graph.vain:
        cause = "host" if graph.host is not None else str(ranks.set_index("rank")["cause"][late[0]])
        about = _ABOUT_GPU if of_late.other_gpu(of_late.ranking(data)) else _ABOUT_LATE[cause]
        return about.format(rank=late[0])
    if not parts.span_ns:
        return "no rank has device work: profile with activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]"
    critical = "see which kernel makes a step shorter if it is faster: warpladder app, page Ranks, section Critical path"
    if len(ranks) == 1:
        executed = kernels.kernels(data, None)
        longest = executed[executed["kind"] == "compute"]["kernel"].head(1)
        critical = about_kernels(data, longest.iloc[0] if len(longest) else "")
    collectives = "see which collectives take the time, and how fast they are: warpladder app, page Ranks, section Collectives"
    return advice(parts, steps(data), {"compute_ns": critical, "copies_ns": critical, "exposed_ns": collectives})


def after_changes(data: RunData) -> pd.DataFrame:
    """Forecast what a step of the job takes after one change each, the largest gain first.

    Returns:
        `change`, `step_ns`, `low_ns` and `high_ns` (the shortest and the longest step), `gain` in percent; without rows where the replay
        without a change is not the measured step. See `job_graph.forecast`.
    """
    found = job_forecast(data)
    rows = [
        (each.words, each.step_ns, each.low_ns, each.high_ns, 100 * (1 - each.step_ns / found.step_ns))
        for each in found.outcomes
    ]
    return pd.DataFrame(rows, columns=["change", "step_ns", "low_ns", "high_ns", "gain"])


def _outside(data: RunData, cells: pd.DataFrame) -> str:
    """`18.8 % of the profile is outside of the iterations, before, between or after them: 16.7 % idle, 2.1 % busy`."""
    ranks = data.job.frame("ranks", "span_ns", "busy_ns")
    span, busy = (int(ranks[name].sum()) - int(cells[name].sum()) for name in ranks)
    whole = int(ranks["span_ns"].sum())
    if span <= 0:
        return ""
    total, idle, busy_too = (format_percent(100 * part / whole) for part in (span, span - busy, busy))
    return f"{total} of the profile is outside of the iterations, before, between or after them: {idle} idle, {busy_too} busy"


def passes(data: RunData) -> pd.DataFrame:
    """The forward and backward passes of a pipeline in its last iteration; without rows where the job has none.

    On the last stage, no message lies between the forward and the backward pass of a micro-batch. A third of their time is taken as forward.

    Returns:
        `rank`, `stage`, `pass` (`F` or `B`), `number` of the micro-batch, `start_ns` and `end_ns` since the first one begins, by stage and time.
    """
    graph, pipeline = job_forecast(data).graph, job_forecast(data).pipeline
    columns = ["rank", "stage", "pass", "number", "start_ns", "end_ns"]
    if graph is None or pipeline is None:
        return pd.DataFrame(columns=columns)
    rows = pipeline.events[pipeline.events["iteration"] == graph.iterations[-1]].copy()
    both = rows.duplicated(["rank", "start_ns", "end_ns"], keep=False)
    third = rows["start_ns"] + (rows["end_ns"] - rows["start_ns"]) / 3
    rows.loc[both & (rows["pass"] == "F"), "end_ns"] = third
    rows.loc[both & (rows["pass"] == "B"), "start_ns"] = third
    rows[["start_ns", "end_ns"]] -= rows["start_ns"].min()
    return rows[rows["end_ns"] > rows["start_ns"]].sort_values(["stage", "rank", "start_ns"], ignore_index=True)[columns]


def stages(data: RunData) -> pd.DataFrame:
    """`pipelines.stage_times` of a job; empty without a pipeline."""
    graph, pipeline = job_forecast(data).graph, job_forecast(data).pipeline
    return stage_times(graph, pipeline) if graph and pipeline else pd.DataFrame()


def by_dimension(data: RunData) -> pd.DataFrame:
    """`dimensions.times` of a job; empty where its ranks cannot be compared."""
    graph = job_forecast(data).graph
    return pd.DataFrame() if graph is None else dimensions.times(graph)


def routed(data: RunData) -> pd.DataFrame:
    """Rows that each rank (index) sends to the experts of each rank (columns), NaN where no profile has them; empty without any."""
    found = experts_of(data.job)
    return pd.DataFrame() if found is None else pd.DataFrame(found.rows, index=list(found.ranks), columns=list(found.ranks))


def by_iteration(data: RunData) -> pd.DataFrame:
    """The times of each rank and iteration.

    Returns:
        One row for each, by rank and iteration: `rank`, `iteration`, the times of table `iterations`, `idle_ns`; `iteration` is null, and
        there is one row for each rank, where the profiles have no iterations. `wait_ns`, `communication_ns` and `exposed_ns` are NaN where
        they are not known.
    """
    cells = data.job.frame("iterations", "rank", "iteration", *_TIMES)
    if cells.empty:
        ranks = data.job.frame("ranks", "rank", "status", *_TIMES)
        cells = ranks[ranks["status"] == "ok"].drop(columns="status")
        cells["iteration"] = pd.array([pd.NA] * len(cells), dtype="Int64")
    cells = cells.assign(idle_ns=cells["span_ns"] - cells["busy_ns"], wait_ns=cells["wait_ns"].astype("Float64").astype(float))
    order = ["rank", "iteration"]
    cells = _known(cells)
    return cells.sort_values(order, ignore_index=True)[[*order, *_TIMES, "idle_ns"]]


def known_figures(cells: pd.DataFrame) -> list[str]:
    """Those of `FIGURES` that are known for some rank. What ranks communicate is not, where graphs were traced as a whole."""
    return [name for name in FIGURES if cells[f"{name}_ns"].notna().any()]


def grid(cells: pd.DataFrame, figure: str, *, share: bool) -> pd.DataFrame:
    """One figure of each rank and iteration.

    Args:
        cells: see `by_iteration`.
        figure: one of `FIGURES`.
        share: in percent of the span of the iteration; else in ns.

    Returns:
        A row for each rank and a column for each iteration, NaN where a rank has no such iteration; without iterations one column, `profile`.
    """
    values = cells[f"{figure}_ns"].astype(float)
    if share:
        values = 100 * values / cells["span_ns"].where(cells["span_ns"] > 0)
    table = cells.assign(value=values)
    if cells["iteration"].isna().all():
        return table.set_index("rank")[["value"]].rename(columns={"value": "profile"})
    return table.pivot(index="rank", columns="iteration", values="value")


def breakdown(data: RunData) -> pd.DataFrame:
    """The parts of each rank's span, and its distance from the median rank.

    The distance is (part - median part) / spread, of the part in which it is largest. The spread of a part is 1.4826 times the median
    absolute deviation over the ranks, or `LEAST_SPREAD` of the median span where that is larger.

    Returns:
        One row for each rank with a profile, the farthest first: `rank`, `host`, `distance`, `differs_in` (words of the part; empty below three spreads), `span_ns`,
        the columns `PARTS`, `communication_ns`, `wait_ns`, `last`, `late`, `cause`. The distance of fewer than three ranks is NaN, and so
        are times that are not known.
    """
    about = ("rank", "status", "host", "last", "late", "cause")
    ranks = data.job.frame("ranks", *about, *_TIMES)
    ranks = ranks[ranks["status"] == "ok"].reset_index(drop=True)
    ranks["copies_ns"] = ranks["busy_ns"] - ranks["compute_ns"] - ranks["graph_ns"] - ranks["exposed_ns"]
    parts = ranks[list(PARTS)].to_numpy(dtype=float)
    apart = parts - np.median(parts, axis=0) if len(ranks) else parts
    if len(ranks) < _FEWEST:
        ranks["distance"], ranks["differs_in"] = np.nan, ""
    else:
        least = LEAST_SPREAD * float(np.median(ranks["span_ns"]))
        distances = apart / np.maximum(OVER_MEDIAN_DEVIATION * np.median(np.abs(apart), axis=0), max(least, 1.0))
        farthest = np.abs(distances).argmax(axis=1)
        ranks["distance"] = np.take_along_axis(distances, farthest[:, None], axis=1)[:, 0]
        words = np.array(list(PARTS.values()), dtype=object)[farthest]
        ranks["differs_in"] = np.where(ranks["distance"].abs() >= _DIFFERS, words, "")
    ranks = ranks.sort_values("distance", key=np.abs, ascending=False, kind="stable", ignore_index=True)
    columns = [
        "rank",
        "host",
        "distance",
        "differs_in",
        "span_ns",
        *PARTS,
        "communication_ns",
        "wait_ns",
        "last",
        "late",
        "cause",
    ]
    return _known(ranks[columns])


def _known(times: pd.DataFrame) -> pd.DataFrame:
    """Times without those that are not known: what communicates in a CUDA graph that was traced as a whole."""
    unknown = times["graph_ns"] > 0
    names = ["communication_ns", "exposed_ns"]
    return times.assign(**{name: times[name].where(~unknown) for name in names}) if unknown.any() else times


def parts(ranks: pd.DataFrame) -> dict[str, str]:
    """`PARTS` without CUDA graphs where no rank has any."""
    return {name: words for name, words in PARTS.items() if name != "graph_ns" or ranks[name].any()}


def drawn(ranks: pd.DataFrame, most: int) -> pd.DataFrame:
    """The rows of `breakdown` that are drawn: all of up to `most`, else the farthest and a row of medians.

    Returns:
        `who` (the rank, or `median`), `late`, `span_ns`, and the columns `PARTS`.
    """
    names = ranks["rank"].astype(str)
    columns = ["who", "late", "span_ns", *PARTS]
    if len(ranks) <= most:
        return ranks.assign(who=names).sort_values("rank", ignore_index=True)[columns]
    median: dict[str, Any] = {"who": "median", "late": False, **ranks[["span_ns", *PARTS]].median()}
    return pd.concat([pd.DataFrame([median]), ranks.assign(who=names)[: most - 1]], ignore_index=True)[columns]


def without_profile(data: RunData) -> pd.DataFrame:
    """Ranks that are broken or missing: `rank`, `status`, `detail`, `file`."""
    ranks = data.job.frame("ranks", "rank", "status", "detail", "file")
    return ranks[ranks["status"] != "ok"].reset_index(drop=True)


def gpus(data: RunData) -> pd.DataFrame:
    """The parts of the time of each GPU of ranks with several GPUs.

    Returns:
        `rank`, `device`, `span_ns`, `busy_percent`, the columns `PARTS`, `communication_ns`; times that are not known are NaN.
    """
    rows = data.job.frame("rank_devices", "rank", "device", *_MEASURED, "other_idle_ns")
    rows = rows[rows.groupby("rank")["device"].transform("size") > 1].reset_index(drop=True)
    rows["copies_ns"] = rows["busy_ns"] - rows["compute_ns"] - rows["graph_ns"] - rows["exposed_ns"]
    rows["busy_percent"] = 100 * rows["busy_ns"] / rows["span_ns"].where(rows["span_ns"] > 0)
    return _known(rows[["rank", "device", "span_ns", "busy_percent", *PARTS, "communication_ns"]])


def idle_by_stream(data: RunData) -> pd.DataFrame:
    """Gaps between the work of each stream by cause, in sum over the ranks that have the stream.

    A stream is one of a GPU. Where each rank has one GPU, streams with the same number are summed over the GPUs, and `device` is null.

    Returns:
        One row for each stream, the longest gaps first: `device`, `stream`, `ranks`, the columns of table `idle`, and `queue_most`.
    """
    causes = [f"{cause}_{what}" for cause in ("host_wait", "kernel_wait", "other") for what in ("count", "ns")]
    idle = data.job.frame("idle", "rank", "device", "stream", *causes, "queue_most")
    if (idle.groupby("rank")["device"].nunique() <= 1).all():
        idle["device"] = pd.array([pd.NA] * len(idle), dtype="Int64")
    grouped = idle.groupby(["device", "stream"], dropna=False)
    sums = grouped[causes].sum().join(grouped["rank"].nunique().rename("ranks")).join(grouped["queue_most"].max())
    sums["gaps_ns"] = sums[["host_wait_ns", "kernel_wait_ns", "other_ns"]].sum(axis=1)
    sums = sums.sort_values("gaps_ns", ascending=False, kind="stable").reset_index()
    return sums[["device", "stream", "ranks", *causes, "queue_most"]]
