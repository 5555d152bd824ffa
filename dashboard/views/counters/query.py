"""The limit of each variant from its counters, as rows and as sentences."""

import re
from collections.abc import Mapping
from typing import Any, Final

import pandas as pd

from warpladder.dashboard.core.cells import cells
from warpladder.dashboard.core.counters import by_config
from warpladder.dashboard.core.limits import (
    BOUND_PERCENT,
    FLOOR_PERCENT,
    ISSUE,
    LATENCY_PERCENT,
    PIPES,
    SHARED,
    Kind,
    Limit,
    limit_of,
)
from warpladder.dashboard.core.numbers import format_percent, significant
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.core.trusted import is_trusted
from warpladder.dashboard.core.why import Explanation, between
from warpladder.data import metrics
from warpladder.data.names import Source

#: The collector that reads counters.
COUNTER: Final = "nsight_compute"
LABELS: Final = {
    Kind.FLOOR: "at its floor",
    Kind.UNIT: "bound by a unit",
    Kind.LATENCY: "latency-bound",
    Kind.SHORT: "short of a limit",
}
THRESHOLDS: Final = (
    f"At its floor: at {FLOOR_PERCENT:.0f} % of it or more, as timed. Bound by a unit: the busiest reaches {BOUND_PERCENT:.0f} % of its "
    f"peak or more; latency-bound: every unit stays below {LATENCY_PERCENT:.0f} %."
)


def how_counted(data: RunData, drawn: int = 0, every: int = 0) -> str:
    """One or two sentences on how the counters of a run were taken.

    Args:
        drawn: the number of variants in the chart.
        every: the number of variants with counters.
    """
    less = f" The {drawn} variants with the most time are drawn, out of {every}." if drawn < every else ""
    tool = f"Nsight Compute {_version(data)}".rstrip()
    if data.info["kind"] == "import":
        return f"launches of the report {data.info['source']}, profiled by {tool}.{less}"
    return (
        f"counters of one execution of each variant by {tool}, which flushes the caches before each pass and does not "
        f"control the clocks.{less}"
    )


_BY: Final = re.compile(rf"{COUNTER} ([\d.]+);")


def _version(data: RunData) -> str:
    """The version of Nsight Compute: the collector's, or where the counters are of a further pass, as its diagnostic has it."""
    if data.info["collector"] == COUNTER:
        return str(data.info["collector_version"])
    texts = data.diagnostics.loc[data.diagnostics["source"] == Source.TRACING, "text"]
    return next((match[1] for text in texts if (match := _BY.search(text))), "")


def where_timed(frame: pd.DataFrame, run: str) -> str:
    """A sentence on where the times of `query.best` are from; empty where it has none.

    Args:
        run: the run that has them; empty for the run of the counters.
    """
    return f" The fastest and its config by the samples of {run or 'this run'}." if frame["timed_ns"].notna().any() else ""


def reason_name(reason: str) -> str:
    """`long scoreboard`."""
    return reason.replace("_", " ")


def limit(row: Mapping[Any, Any]) -> Limit:
    """What limits a row of `best`, or of `core.counters.by_config`, which knows no floor."""
    return limit_of(row, float(row.get("percent_of_floor", float("nan"))))


def limit_clause(row: Mapping[Any, Any]) -> str:
    """The end of a sentence on what limits a row of `best`. The sentence begins with the variant's name."""
    found = limit(row)
    percent = format_percent(found.percent)
    waits = ""
    if row["top_stall"]:
        waits = f"; {format_percent(row['top_stall_percent'])} of its time a warp {metrics.STALLS[row['top_stall']]}"
    match found.kind:
        case Kind.UNKNOWN:
            return "was not measured against the peaks of the device"
        case Kind.FLOOR:
            return f"is at its floor: at {percent} of it, as timed"
        case Kind.UNIT:
            return f"runs at {percent} of the peak of {found.name}: bound by {found.name}{_conflicts(row, found)}"
        case Kind.SHORT:
            return f"runs at {percent} of the peak of {found.name}, short of a limit{waits}"
    few = f"; its {significant(row['waves'])} waves do not fill the device" if row["waves"] < 1 else ""
    return f"keeps no unit busy, {found.name} the most with {percent} of its peak: latency-bound{few}{waits}"


def _conflicts(row: Mapping[Any, Any], found: Limit) -> str:
    """How much of the busiest unit's work bank conflicts are, where it is shared memory."""
    share = (row["load_conflicts"] + row["store_conflicts"]) / row["shared_wavefronts"] if row["shared_wavefronts"] > 0 else 0
    if found.unit is not SHARED or not share > _SEEN_SHARE:
        return ""
    return f"; bank conflicts make {format_percent(100 * share)} of its passes"


def limit_words(row: Mapping[Any, Any]) -> str:
    """The same in two or three words, for the end of a bar: `bound by DRAM`."""
    found = limit(row)
    match found.kind:
        case Kind.UNKNOWN:
            return "not measured"
        case Kind.UNIT:
            return f"bound by {found.name}"
        case Kind.FLOOR:
            return LABELS[found.kind]
    reason = f": {reason_name(row['top_stall'])}" if row["top_stall"] else ""
    return f"{LABELS[found.kind]}{reason}"


def answer(frame: pd.DataFrame) -> str:
    """One or two sentences on what limits the fastest variant of `query.best`, and the others.

    The samples decide which variant is fastest. Without samples, the sentence names the profiled execution with the least time
    as such. Ceilings and specimens count only where there are no other variants.
    """
    others = frame[~frame["role"].isin(["ceiling", "specimen"])]
    shown = (others if len(others) else frame).sort_values(["timed_ns", "time_ns"], kind="stable")
    first, *rest = shown.to_dict("records")
    role = ", the fastest," if pd.notna(first["timed_ns"]) else ", with the least time under the profiler,"
    lead = f"{first['variant']}{role if rest else ''} {limit_clause(first)}."
    kinds = [limit(row).kind for row in rest]
    counts = {label: kinds.count(kind) for kind, label in LABELS.items()}
    parts = [f"{count} {label}" for label, count in counts.items() if count]
    return f"{lead} The others: {', '.join(parts)}." if parts else lead


#: Bank conflicts below this share of the passes are not named.
_SEEN_SHARE: Final = 0.05

#: The most variants that a chart draws.
MOST_VARIANTS: Final = 24


def denied(data: RunData) -> tuple[str, ...]:
    """The reasons that the collector gave for reading no counters."""
    return tuple(data.diagnostics.loc[data.diagnostics["source"] == Source.COUNTERS, "text"])


def times(data: RunData, workload: str, case: str) -> pd.DataFrame:
    """The median times of a case by samples, of the cells that may be called best, in the first timing of the workload.

    Returns:
        The columns `variant`, `config`, `source_sha256`, `timed_ns` and `percent_of_floor` (NaN without a floor). No row where the run
        has no device time of the case.
    """
    every = cells(data)
    every = every[is_trusted(every) & (every["status"] == "ok") & (every["scope"] == "device") & (every["cache"] == "cold")]
    chosen = every[(every["workload"] == workload) & (every["case"] == case)].drop_duplicates(["variant", "config"])
    sources = data.variants.loc[data.variants["workload"] == workload, ["variant", "source_sha256"]]
    frame = chosen[["variant", "config", "median_ns", "percent_of_floor"]].merge(sources, on="variant")
    return frame.rename(columns={"median_ns": "timed_ns"})


def best(data: RunData, workload: str, case: str, timed: pd.DataFrame) -> pd.DataFrame:
    """Of `counters.by_config`, the row of each variant's fastest config, with the columns `timed_ns` and `percent_of_floor`.

    A time counts where the variant has the same source in both runs. Configs without one are compared by the time of their profiled
    execution.

    Args:
        timed: `times` of this run or of another one.
    """
    sources = data.variants.loc[data.variants["workload"] == workload, ["variant", "source_sha256"]]
    same = timed.merge(sources, on=["variant", "source_sha256"])[["variant", "config", "timed_ns", "percent_of_floor"]]
    frame = by_config(data, workload, case).merge(same, on=["variant", "config"], how="left")
    fastest = frame.sort_values(["timed_ns", "time_ns"], kind="stable").drop_duplicates("variant")
    return fastest.sort_index().reset_index(drop=True)


def most_time(frame: pd.DataFrame, most: int = MOST_VARIANTS) -> pd.DataFrame:
    """The rows of `best` with the most time, in their order, because an imported program can have hundreds of kernels."""
    order = frame["time_ns"].fillna(0.0).sort_values(ascending=False, kind="stable").index[:most]
    return frame.loc[sorted(order)].reset_index(drop=True)


def steps(data: RunData, workload: str, case: str, frame: pd.DataFrame) -> pd.DataFrame:
    """Each rung of `best` against the rung before it in the same precision, or in another one where there is none.

    Returns:
        One row for each step: `previous`, `variant`, `config`, `gain` (the time of the previous one over its own: timed where both are,
        else under the profiler), `cause`, `explained_percent` and `sentence`.
    """
    columns = ["previous", "variant", "config", "gain", "cause", "explained_percent", "sentence"]
    precision = data.variants.loc[data.variants["workload"] == workload].set_index("variant")["precision"]
    rows: list[tuple[Any, ...]] = []
    before: dict[str, dict[Any, Any]] = {}
    last: dict[Any, Any] | None = None
    for row in frame[frame["role"] == "rung"].to_dict("records"):
        own = str(precision.get(row["variant"], ""))
        previous = before.get(own, last)
        if previous is not None and (found := explained(data, workload, case, previous, row)):
            percent = 100 * found.explained
            cells = (previous["variant"], row["variant"], row["config"])
            rows.append((*cells, found.ratio, str(found.cause), percent, found.sentence(cells[0], cells[1])))
        before[own] = last = row
    return pd.DataFrame(rows, columns=columns)


def explained(data: RunData, workload: str, case: str, a: Mapping[Any, Any], b: Mapping[Any, Any]) -> Explanation | None:
    """Why the row B of `best` is faster or slower than the row A."""
    timed = (float(a["timed_ns"]), float(b["timed_ns"]))
    cells = ((a["variant"], a["config"]), (b["variant"], b["config"]))
    return between(data, data, workload, case, *cells, timed if timed[0] > 0 and timed[1] > 0 else None)


def pair_to_explain(frame: pd.DataFrame) -> tuple[str, str]:
    """The variants that a page explains first: the fastest rung, and the rung before it; two variants where there are no two rungs."""
    rungs = frame[frame["role"] == "rung"]
    rungs = rungs if len(rungs) > 1 else frame
    fastest = int(rungs.reset_index(drop=True).sort_values(["timed_ns", "time_ns"], kind="stable").index[0])
    names = list(rungs["variant"])
    return names[fastest - 1 if fastest else min(1, len(names) - 1)], names[fastest]


def work_table(found: Explanation, *, changed: bool) -> pd.DataFrame:
    """The work of both variants of an explanation.

    Args:
        changed: only what differs.

    Returns:
        The columns `group`, `name`, `unit`, `a`, `b` and `ratio` (B over A).
    """
    chosen = [each for each in (*found.times, *found.work) if each.changed or not changed]
    rows = [(each.group, each.name, each.unit, each.a, each.b, each.ratio) for each in chosen]
    return pd.DataFrame(rows, columns=["group", "name", "unit", "a", "b", "ratio"])


def findings(data: RunData, workload: str, case: str, frame: pd.DataFrame) -> pd.DataFrame:
    """What the rules of Nsight Compute find about the rows of `best`.

    Returns:
        The columns `variant`, `config`, `launch_index`, `section`, `severity`, `title`, `text` and `speedup_percent`, without findings
        that have no words.
    """
    rules = data.code.rules
    rules = rules[(rules["workload"] == workload) & (rules["case"] == case) & (rules["text"] != "")]
    columns = ["variant", "config", "launch_index", "section", "severity", "title", "text", "speedup_percent"]
    return frame[["variant", "config"]].merge(rules, on=["variant", "config"])[columns].reset_index(drop=True)


#: Rule of the section Speed of Light whose finding is Nsight Compute's verdict on the limit.
_VERDICT: Final = "SOLBottleneck"
_THEIR_UNIT: Final = re.compile(r"(?:analyzing|identify the) (\w+) (?:in|bottleneck)")
_PIPE: Final = "a pipe or the issue slots"
_THEIR_NAMES: Final = {"workloads": _PIPE}
#: Titles of its verdict where no unit is near its peak.
_THEIR_LATENCY: Final = frozenset({"Latency Issue", "Small Grid"})


def verdicts_beside(data: RunData, workload: str, case: str, frame: pd.DataFrame) -> pd.DataFrame:
    """The limit of each row of `best` beside Nsight Compute's own verdict, for variants of one launch.

    Returns:
        The columns `variant`, `config`, `ours`, `theirs`, `agree` and `difference`, the reason where they differ.
    """
    rules = data.code.rules
    rules = rules[(rules["workload"] == workload) & (rules["case"] == case) & (rules["rule"] == _VERDICT)]
    rows = []
    for row in frame[frame["launches"] == 1].to_dict("records"):
        theirs = rules[(rules["variant"] == row["variant"]) & (rules["config"] == row["config"])].to_dict("records")
        if theirs:
            named = _their_limit(theirs[0])
            found = limit(row)
            agree, reason = _agreement(found, row, named)
            rows.append((row["variant"], row["config"], f"{LABELS[found.kind]} ({found.name})", named, agree, reason))
    return pd.DataFrame(rows, columns=["variant", "config", "ours", "theirs", "agree", "difference"])


def _their_limit(rule: Mapping[Any, Any]) -> str:
    """Nsight Compute's verdict in two words: `latency`, or the unit that its text names."""
    if rule["title"] in _THEIR_LATENCY:
        return "latency"
    if rule["title"] == "High Compute Throughput":
        return _PIPE
    match = _THEIR_UNIT.search(rule["text"])
    return _THEIR_NAMES.get(match[1], match[1]) if match else str(rule["title"]).lower()


def _agreement(found: Limit, row: Mapping[Any, Any], theirs: str) -> tuple[bool, str]:
    """Whether the two verdicts name the same, and the reason where they do not."""
    ours = "latency" if found.kind is Kind.LATENCY else found.name
    names = {"L1": ("L1", "shared memory", "LSU"), _PIPE: tuple(unit.name for unit in (*PIPES, ISSUE))}
    if found.kind is Kind.FLOOR and theirs not in (ours, "latency") and ours not in names.get(theirs, ()):
        return (
            False,
            f"it is at {format_percent(found.percent)} of its floor, as timed; a counter of one execution knows no floor",
        )
    if ours == theirs or ours in names.get(theirs, ()):
        return True, ""
    if found.kind is Kind.FLOOR:
        return False, f"it is at {format_percent(found.percent)} of its floor, as timed, though no unit is near its peak"
    if theirs == "latency" or found.kind is Kind.LATENCY:
        return False, (
            f"the threshold is {LATENCY_PERCENT:.0f} % for both: {found.name} has {format_percent(found.percent)}, and the largest share "
            f"that Nsight Compute takes has {format_percent(max(row['compute_percent'], row['memory_percent']))}"
        )
    return False, (
        f"{found.name} has {format_percent(found.percent)}; Nsight Compute compares the largest share of the multiprocessors "
        f"({format_percent(row['compute_percent'])}) with the largest of memory ({format_percent(row['memory_percent'])})"
    )


def stalls(frame: pd.DataFrame) -> pd.DataFrame:
    """The cycles between two instructions of a warp, by reason.

    Returns:
        One row for each variant of `best` and reason: `variant`, `config`, `reason`, `meaning`, `cycles`, and their `percent`.
        The reason with the most cycles of any variant is first. Reasons without waiting are last.
    """
    columns = {f"stall_{reason}": reason for reason in metrics.STALLS}
    long = frame.melt(["variant", "config"], list(columns), "reason", "cycles").dropna(subset="cycles")
    long["reason"] = long["reason"].map(columns)
    long["meaning"] = long["reason"].map(metrics.STALLS)
    total = long.groupby(["variant", "config"])["cycles"].transform("sum")
    long["percent"] = 100 * long["cycles"] / total.where(total > 0)
    most = long.groupby("reason")["percent"].max().sort_values(ascending=False)
    order = [reason for reason in most.index if reason not in metrics.ISSUING] + list(metrics.ISSUING)
    place = {reason: number for number, reason in enumerate(order)}
    variants = {pair: number for number, pair in enumerate(zip(frame["variant"], frame["config"], strict=True))}
    long["place"] = [variants[pair] for pair in zip(long["variant"], long["config"], strict=True)]
    long["rank"] = long["reason"].map(place)
    return long.sort_values(["place", "rank"]).drop(columns=["place", "rank"]).reset_index(drop=True)


def every_metric(data: RunData, workload: str, case: str) -> pd.DataFrame:
    """The rows of table `counters` of a case, with the meaning of each metric.

    The columns are `variant`, `config`, `kernel`, `launch_index`, `group`, `metric`, `meaning`, `value` and `unit`.
    """
    rows = data.counters[(data.counters["workload"] == workload) & (data.counters["case"] == case)].copy()
    metric_of = rows["metric"].map(metrics.BY_NAME)
    rows["group"] = [metric.group if isinstance(metric, metrics.Metric) else "" for metric in metric_of]
    rows["meaning"] = [metric.meaning if isinstance(metric, metrics.Metric) else "" for metric in metric_of]
    columns = ["variant", "config", "kernel", "launch_index", "group", "metric", "meaning", "value", "unit"]
    return rows[columns].reset_index(drop=True)
