"""The variants of a case with counters: the fastest config of each by samples, what limits it in words, and why one is faster than the
one before it.
"""

from collections.abc import Mapping
from typing import Any, Final

import pandas as pd

from warpladder.dashboard.core.cells import cells, is_trusted
from warpladder.dashboard.core.counters import DIFFERENT, by_config
from warpladder.dashboard.core.limits import BOUND_PERCENT, FLOOR_PERCENT, LATENCY_PERCENT, SHARED, Kind, Limit, limit_of
from warpladder.dashboard.core.numbers import format_percent, significant
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.core.why import Explanation, between
from warpladder.data import metrics

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


def reason_name(reason: str) -> str:
    """`long scoreboard`."""
    return reason.replace("_", " ")


def limit(row: Mapping[Any, Any]) -> Limit:
    """The limit of a row of `best`, or of `core.counters.by_config`, which knows no floor."""
    return limit_of(row, float(row.get("percent_of_floor", float("nan"))))


def limit_clause(row: Mapping[Any, Any]) -> str:
    """The end of a sentence on what limits a row of `best`. The sentence begins with the variant's name."""
    verdict = limit(row)
    percent = format_percent(verdict.percent)
    waits = ""
    if row["top_stall"]:
        waits = f"; {format_percent(row['top_stall_percent'])} of its time a warp {metrics.STALLS[row['top_stall']]}"
    match verdict.kind:
        case Kind.UNKNOWN:
            return "was not measured against the peaks of the device"
        case Kind.FLOOR:
            return f"is at its floor: at {percent} of it, as timed"
        case Kind.UNIT:
            return f"runs at {percent} of the peak of {verdict.name}: bound by {verdict.name}{_conflicts(row, verdict)}"
        case Kind.SHORT:
            return f"runs at {percent} of the peak of {verdict.name}, short of a limit{waits}"
    few = f"; its {significant(row['waves'])} waves do not fill the device" if row["waves"] < 1 else ""
    return f"keeps no unit busy, {verdict.name} the most with {percent} of its peak: latency-bound{few}{waits}"


def _conflicts(row: Mapping[Any, Any], verdict: Limit) -> str:
    """How much of the busiest unit's work bank conflicts are, where it is shared memory."""
    share = (row["load_conflicts"] + row["store_conflicts"]) / row["shared_wavefronts"] if row["shared_wavefronts"] > 0 else 0
    if verdict.unit is not SHARED or not share > _SEEN_SHARE:
        return ""
    return f"; bank conflicts make {format_percent(100 * share)} of its passes"


def limit_words(row: Mapping[Any, Any]) -> str:
    """The same in two or three words, for the end of a bar: `bound by DRAM`."""
    verdict = limit(row)
    match verdict.kind:
        case Kind.UNKNOWN:
            return "not measured"
        case Kind.UNIT:
            return f"bound by {verdict.name}"
        case Kind.FLOOR:
            return LABELS[verdict.kind]
    reason = f": {reason_name(row['top_stall'])}" if row["top_stall"] else ""
    return f"{LABELS[verdict.kind]}{reason}"


#: Roles of variants that are compared only where there are no others.
_APART: Final = ("ceiling", "specimen")


def answer(frame: pd.DataFrame) -> str:
    """One or two sentences on what limits the fastest variant of `query.best`, and the others.

    The samples decide which variant is fastest. Without samples, the sentence names the profiled execution with the least time
    as such. Ceilings and specimens count only where there are no other variants.
    """
    others = frame[~frame["role"].isin(_APART)]
    shown = (others if len(others) else frame).sort_values(["timed_ns", "time_ns"], kind="stable")
    first, *rest = shown.to_dict("records")
    if pd.isna(first["timed_ns"]):
        role = ", with the least time under the profiler,"
    else:
        role = ", the fastest," if first["timed_ns"] <= first["fastest_ns"] else ", the fastest with counters,"
    lead = f"{first['variant']}{role if rest else ''} {limit_clause(first)}."
    kinds = [limit(row).kind for row in rest]
    counts = {label: kinds.count(kind) for kind, label in LABELS.items()}
    parts = [f"{count} {label}" for label, count in counts.items() if count]
    return f"{lead} The others: {', '.join(parts)}." if parts else lead


#: Bank conflicts below this share of the passes are not named.
_SEEN_SHARE: Final = 0.05


def times(data: RunData, workload: str, case: str) -> pd.DataFrame:
    """The median times of a case by samples, of the cells that may be called best, in the first timing of the workload.

    Returns:
        The columns `variant`, `config`, `source_sha256`, `timed_ns` and `percent_of_floor` (NaN without a floor). No row where the run
        has no device time of the case.
    """
    every = cells(data)
    every = every[is_trusted(every) & (every["status"] == "ok") & (every["scope"] == "device") & (every["cache"] == "cold")]
    chosen = every[(every["workload"] == workload) & (every["case"] == case)].drop_duplicates(["variant", "config"])
    sources = data.variants[data.variants["workload"] == workload][["variant", "source_sha256"]]
    frame = chosen[["variant", "config", "median_ns", "percent_of_floor"]].merge(sources, on="variant")
    return frame.rename(columns={"median_ns": "timed_ns"})


def best(data: RunData, workload: str, case: str, timed: pd.DataFrame) -> pd.DataFrame:
    """Of `counters.by_config`, the row of each variant's fastest config, with the columns `timed_ns` and `percent_of_floor`; and `fastest_ns`,
    the least time of all variants, also of those without counters.

    A time counts where the variant has the same source in both runs. Configs without one are compared by the time of their profiled
    execution.

    Args:
        timed: `times` of this run or of another one.
    """
    sources = data.variants[data.variants["workload"] == workload][["variant", "source_sha256"]]
    same = timed.merge(sources, on=["variant", "source_sha256"])[["variant", "config", "timed_ns", "percent_of_floor"]]
    frame = by_config(data, workload, case).merge(same, on=["variant", "config"], how="left")
    fastest = frame.sort_values(["timed_ns", "time_ns"], kind="stable").drop_duplicates("variant")
    of_another_source = set(sources["variant"]) - set(same["variant"])
    apart = data.variants.loc[data.variants["role"].isin(_APART), "variant"]
    rivals = timed[~timed["variant"].isin({*of_another_source, *apart})]
    return fastest.sort_index().reset_index(drop=True).assign(fastest_ns=rivals["timed_ns"].min())


def steps(data: RunData, workload: str, case: str, frame: pd.DataFrame) -> pd.DataFrame:
    """Each rung of `best` against the rung before it in the same precision, or in another one where there is none.

    Returns:
        One row for each step: `previous`, `variant`, `config`, `gain` (the time of the previous one over its own: timed where both are,
        else under the profiler), `cause`, `explained_percent` and `sentence`.
    """
    columns = ["previous", "variant", "config", "gain", "cause", "explained_percent", "sentence"]
    precision = _precisions(data, workload)
    rows: list[tuple[Any, ...]] = []
    before: dict[str, dict[Any, Any]] = {}
    last: dict[Any, Any] | None = None
    for row in frame[frame["role"] == "rung"].to_dict("records"):
        own = str(precision.get(row["variant"], ""))
        previous = before.get(own, last)
        if previous is not None and (explanation := explained(data, workload, case, previous, row)):
            percent = 100 * explanation.explained
            cells = (previous["variant"], row["variant"], row["config"])
            rows.append((*cells, explanation.ratio, str(explanation.cause), percent, explanation.sentence(cells[0], cells[1])))
        before[own] = last = row
    return pd.DataFrame(rows, columns=columns)


def _precisions(data: RunData, workload: str) -> pd.Series:
    return data.variants.loc[data.variants["workload"] == workload].set_index("variant")["precision"]


def explained(data: RunData, workload: str, case: str, a: Mapping[Any, Any], b: Mapping[Any, Any]) -> Explanation | None:
    """Why the row B of `best` is faster or slower than the row A."""
    timed = (float(a["timed_ns"]), float(b["timed_ns"]))
    cells = ((a["variant"], a["config"]), (b["variant"], b["config"]))
    return between(data, data, workload, case, *cells, timed if timed[0] > 0 and timed[1] > 0 else None)


def pair_to_explain(data: RunData, workload: str, frame: pd.DataFrame) -> tuple[str, str]:
    """The variants that are explained first: the fastest rung, and the last rung before it that is slower, of its precision if there is one.
    Where all before it are as fast, a later one; two variants where there are no two rungs."""
    rungs = frame[frame["role"] == "rung"]
    rungs = (rungs if len(rungs) > 1 else frame).reset_index(drop=True)
    fastest = int(rungs.sort_values(["timed_ns", "time_ns"], kind="stable").index[0])
    ns, precision = rungs["timed_ns"].fillna(rungs["time_ns"]), rungs["variant"].map(_precisions(data, workload))
    is_slower = ns > (1 + DIFFERENT) * ns[fastest]
    is_before, is_alike = rungs.index < fastest, precision == precision[fastest]
    otherwise = fastest - 1 if fastest else min(1, len(rungs) - 1)
    choices = (is_slower & is_before & is_alike, is_slower & is_before)
    before = next((rungs.index[each][-1] for each in choices if each.any()), None)
    first = before if before is not None else next(iter(rungs.index[is_slower]), otherwise)
    return str(rungs["variant"][first]), str(rungs["variant"][fastest])


def step_to_fastest(data: RunData, workload: str, case: str, frame: pd.DataFrame) -> str:
    """The sentence about `pair_to_explain`; empty where none is slower, or without counters of both."""
    names = pair_to_explain(data, workload, frame)
    a, b = (frame[frame["variant"] == name].to_dict("records")[0] for name in names)
    explanation = explained(data, workload, case, a, b)
    return explanation.sentence(*names) if explanation and not explanation.ratio < 1 + DIFFERENT else ""
