"""What more GPUs give: time, speedup and efficiency by the number of ranks, and how far the ranks of a round are apart.

A rank is one process with one GPU, or with none on the host. The time of a round is that of its slowest rank. Each number of ranks is
a launch of its own, whose rounds are not those of another: ratios across numbers are never paired.
"""

import math
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final

import pandas as pd

from warpladder.dashboard.core.axes import Timing, charted_cases
from warpladder.dashboard.core.cells import best_config, cells
from warpladder.dashboard.core.compare import noise_of, verdict
from warpladder.dashboard.core.estimate import Estimate
from warpladder.dashboard.core.intervals import grouped_median_intervals, paired_ratio
from warpladder.dashboard.core.run_data import Copy, RunData

#: What a slowest rank spends its time on, of what is sampled as a phase, in the order in which it is stacked.
PARTS: Final = {"phase:h2d": "copies in", "phase:d2h": "copies out", "phase:allreduce": "communication"}
#: What each of these is a part of: communication stands beside the operation, whose data is on the device.
_PARTS_OF: Final = {"end_to_end": ("phase:h2d", "phase:d2h"), "operation": ("phase:allreduce",)}

_SCOPES: Final = ("end_to_end", "operation", "device")
#: Where the work grows with the size axis by another factor than the ranks do, time says nothing about weak scaling.
_SAME_WORK: Final = 0.1
_CELL: Final = ["variant", "config", "case", "gpus"]
_OF_CELL: Final = [
    "workload", "variant", "title", "role", "kind", "rung", "precision", "config", "case", "scope", "cache", "gpus", "n", "median_ns", "low_ns",
    "high_ns", "interval_kind", "flops",
]  # fmt: skip
_OF_CASE: Final = ["case", "size_rank", "size", "size_value", "series"]
_RATIOS: Final = ["speedup", "efficiency", "skew"]
_COLUMNS: Final = [
    *_OF_CELL, *_OF_CASE[1:], "ranks", *(f"{name}{end}" for name in _RATIOS for end in ("", "_low", "_high")),
]  # fmt: skip
_CROSSOVER_COLUMNS: Final = [*_COLUMNS, "over_best", "over_best_low", "over_best_high", "place"]
_WEAK_COLUMNS: Final = [*_COLUMNS, "axis", "per_rank", "weak_efficiency", "weak_efficiency_low", "weak_efficiency_high"]
_SHARE_COLUMNS: Final = [
    *("workload", "variant", "title", "kind", "config", "case", "size_rank", "size", "series", "scope", "cache", "ranks"),
    *("median_ns", "part", "share", "share_low", "share_high", "least_ns", "alone_ns", "n"),
]


_SAME: Final = Estimate(1.0, 1.0, 1.0)
_UNKNOWN: Final = Estimate(math.nan, math.nan, math.nan)


def timings(data: RunData, workload: str) -> tuple[Timing, ...]:
    """The ways in which several ranks timed the workload: end to end first, then operation, then device; phases are none.

    Where ranks communicate, operation comes first: theirs are steps on what lies on the GPUs, one after another, and communication is a
    part of that time.
    """
    together = data.together[data.together["workload"] == workload]
    first = "operation" if (together["scope"] == "phase:allreduce").any() else "end_to_end"
    found = together[["scope", "cache"]].drop_duplicates().astype(str).itertuples(index=False)
    kept = [Timing(scope, cache) for scope, cache in found if scope in _SCOPES]
    return tuple(sorted(kept, key=lambda view: (view.scope != first, _SCOPES.index(view.scope), view.cache)))


def scaling(data: RunData, workload: str, view: Timing) -> pd.DataFrame:
    """Every variant that several ranks measured, by case and number of ranks, each with the config that is the fastest there.

    Returns:
        One row a (variant, case, ranks) by ladder, size and ranks, of the charted cases. Besides what names and times the cell
        (`median_ns`, `low_ns`, `high_ns` of the largest rank's time in each round) and the columns of `charted_cases`:

        - `ranks`: GPUs that worked together, or processes of a host variant; 1 where one process did all;
        - `speedup`: median of one rank over that of these, with `_low` and `_high`; null where one rank has no samples;
        - `efficiency`: the speedup in percent of the number of ranks;
        - `skew`: largest less smallest time of the ranks of a round, in percent of the largest: the median over rounds with its
          interval; null for one rank.

        Empty where several ranks have no samples in this view that are right.
    """
    return _scaling(data, workload, view).copy()


@lru_cache(maxsize=8)
def _scaling(data: RunData, workload: str, view: Timing) -> pd.DataFrame:
    joined = _joined(data, workload)
    every = cells(joined)
    best = best_config(every[(every["workload"] == workload) & (every["scope"] == view.scope) & (every["cache"] == view.cache)])
    frame = best[_OF_CELL].merge(charted_cases(data, workload)[_OF_CASE], on="case")
    frame["ranks"] = frame["gpus"].astype(int).clip(lower=1)
    if not (frame["ranks"] > 1).any():
        return pd.DataFrame(columns=_COLUMNS)
    ones = {(row["variant"], row["case"]): row for row in frame[frame["ranks"] == 1].to_dict("records")}
    ratios = [
        _SAME if row["ranks"] == 1
        else _ratio(joined, one, row) if (one := ones.get((row["variant"], row["case"])))
        else _UNKNOWN
        for row in frame.to_dict("records")
    ]  # fmt: skip
    names = list(_UNKNOWN.columns("speedup"))
    frame[names] = pd.DataFrame([ratio.columns("speedup") for ratio in ratios], frame.index, names, dtype=float)
    for end in ("", "_low", "_high"):
        frame[f"efficiency{end}"] = 100 * frame[f"speedup{end}"] / frame["ranks"]
    frame = frame.merge(_skew(data, workload, view), "left", _CELL)
    ladder = {name: place for place, name in enumerate(data.variants.loc[data.variants["workload"] == workload, "variant"])}
    frame["place"] = frame["variant"].map(ladder)
    return frame.sort_values(["place", "size_rank", "case", "ranks"], kind="stable", ignore_index=True)[_COLUMNS]


def variant_to_show(frame: pd.DataFrame) -> str:
    """Of `scaling`, not empty, the fastest variant at the largest case that the most ranks measured."""
    most = frame[frame["ranks"] == frame["ranks"].max()]
    return str(most[most["size_rank"] == most["size_rank"].max()].nsmallest(1, "median_ns")["variant"].iloc[0])


def crossover(data: RunData, workload: str, view: Timing, variant: str) -> pd.DataFrame:
    """Which number of ranks is best at each case, for one variant.

    Returns:
        The rows of `scaling` of the variant, by size and ranks, with `over_best` (time over that of the best number of the case), its
        `_low` and `_high`, and `place`: `best`, `tied` (the interval holds 1 or lies within the A/A of the two), or `slower`.
    """
    frame = scaling(data, workload, view)
    frame = frame[frame["variant"] == variant]
    joined = _joined(data, workload)
    rows: list[dict[Any, Any]] = []
    for _, case in frame.groupby(["size_rank", "case"]):
        best = case.nsmallest(1, "median_ns").iloc[0].to_dict()
        for row in case.to_dict("records"):
            is_best = row["ranks"] == best["ranks"]
            ratio = _SAME if is_best else _ratio(joined, row, best)
            tied = verdict(ratio.low, ratio.high, _noise(joined, row, best)) == "tied"
            place = "best" if is_best else "tied" if tied else "slower"
            rows.append(row | ratio.columns("over_best") | {"place": place})
    return pd.DataFrame(rows, columns=_CROSSOVER_COLUMNS)


def weak(data: RunData, workload: str, view: Timing) -> pd.DataFrame:
    """Cases whose size grows with the ranks: as much for each of them as one rank has in the first.

    Returns:
        The rows of `scaling` whose case has as much for each rank as a case of one rank, that row included, with `axis` and `per_rank` (e.g.
        `batch`, 400), and `weak_efficiency`: the time of one rank in percent of that of these, with `_low` and `_high`. By ladder, `per_rank` and
        ranks; only sizes that several numbers of ranks have, and by whose growth the operations grow as the ranks do.
    """
    frame = scaling(data, workload, view)
    frame = frame[frame["size"].str.fullmatch(r"\w+=\d+")]
    frame = frame.assign(axis=frame["size"].str.partition("=")[0], per_rank=frame["size_value"] / frame["ranks"])
    joined = _joined(data, workload)
    rows: list[dict[Any, Any]] = []
    for _, group in frame.groupby(["variant", "series", "per_rank"], sort=False):
        ones = group[group["ranks"] == 1]
        if ones.empty:
            continue
        one = ones.iloc[0].to_dict()
        same = [
            row for row in group.to_dict("records")
            if abs(row["flops"] / (one["flops"] * row["ranks"]) - 1 if one["flops"] else 0.0) <= _SAME_WORK
        ]  # fmt: skip
        for row in same if len(same) > 1 else []:
            ratio = _SAME if row["ranks"] == 1 else _ratio(joined, one, row)
            rows.append(row | ratio.times(100).columns("weak_efficiency"))
    found = pd.DataFrame(rows, columns=_WEAK_COLUMNS)
    found["place"] = found["variant"].map({name: place for place, name in enumerate(dict.fromkeys(found["variant"]))})
    return found.sort_values(["place", "series", "per_rank", "ranks"], kind="stable", ignore_index=True)[_WEAK_COLUMNS]


def weak_to_show(frame: pd.DataFrame) -> float:
    """Of `weak`, not empty, the largest `per_rank` of those that the most numbers of ranks have."""
    counts = frame.groupby("per_rank")["ranks"].nunique()
    return float(counts[counts == counts.max()].index.max())


def shares(data: RunData, workload: str, view: Timing) -> pd.DataFrame:
    """What the slowest rank of each round spends on copies and on communication, of the whole that they are parts of.

    Copies are parts of `end_to_end`, communication is of `operation`.

    Returns:
        One row a (variant, case, ranks, part) that has phases: what names the cell of `scaling` and its `median_ns`; `part` (of `PARTS`),
        `share` (in percent: the median over rounds of the phase over the whole, both of that round's slowest rank), `share_low`,
        `share_high`, and `n` rounds. Of communication besides `least_ns`, the median over rounds of the rank with the least, which waits for
        no other, and `alone_ns`, what NCCL by itself was measured to take for as many bytes as the case's outputs among as many GPUs; null
        where it was not. By ladder, size, ranks and part. Empty in a view of another scope, or without phases.
    """
    parts_of = _PARTS_OF.get(view.scope, ())
    frame = scaling(data, workload, view).drop(columns="n")
    raw = _joined(data, workload).samples
    raw = raw[(raw["cache"] == view.cache) & (raw["twin"] == 0) & raw["scope"].isin([view.scope, *parts_of])]
    raw = raw.astype(dict.fromkeys(("variant", "config", "case", "scope"), str))
    raw = raw.merge(frame[_CELL].astype({"gpus": int}), on=_CELL)
    in_round = [*_CELL, "round"]
    whole = raw[raw["scope"] == view.scope].sort_values("duration_ns", kind="stable").drop_duplicates(in_round, keep="last")
    whole = whole[[*in_round, "rank", "duration_ns"]].rename(columns={"duration_ns": "whole_ns"})
    phases = raw[raw["scope"] != view.scope]
    parts = phases.merge(whole, on=[*in_round, "rank"])
    if parts.empty:
        return pd.DataFrame(columns=_SHARE_COLUMNS)
    parts["part"] = parts["scope"].map(PARTS)
    parts["value"] = 100 * parts["duration_ns"] / parts["whole_ns"]
    found = frame.merge(_medians(parts, [*_CELL, "part"], "share"), on=_CELL)
    found = found.merge(_least(phases), "left", [*_CELL, "part"]).merge(_alone(data, workload), "left", ["case", "ranks"])
    found.loc[found["part"] != PARTS["phase:allreduce"], ["least_ns", "alone_ns"]] = None
    found["order"] = found["part"].map(list(PARTS.values()).index)
    found["place"] = found["variant"].map({name: place for place, name in enumerate(dict.fromkeys(frame["variant"]))})
    return found.sort_values(["place", "size_rank", "case", "ranks", "order"], kind="stable", ignore_index=True)[_SHARE_COLUMNS]


def _least(phases: pd.DataFrame) -> pd.DataFrame:
    """`least_ns` by `_CELL` and part: the median over rounds of the least of all ranks."""
    least = phases.groupby([*_CELL, "scope", "round"])["duration_ns"].min().groupby([*_CELL, "scope"]).median()
    found = least.rename("least_ns").reset_index()
    return found.assign(part=found["scope"].map(PARTS)).drop(columns="scope")


def _alone(data: RunData, workload: str) -> pd.DataFrame:
    """`alone_ns` by case and ranks, out of the ceilings `nccl_allreduce_<bytes>_bytes` of so many GPUs."""
    of_nccl = data.ceilings["name"].str.extract(r"^nccl_allreduce_(\d+)_bytes$", expand=False)
    measured = pd.DataFrame(
        {
            "d2h_bytes": pd.to_numeric(of_nccl),
            "ranks": pd.to_numeric(data.ceilings["device"].str.extract(r"^(\d+) GPUs$", expand=False)),
            "alone_ns": 1000 * data.ceilings["value"],
        }
    ).dropna()
    cases = data.cases.loc[data.cases["workload"] == workload, ["case", "d2h_bytes"]]
    return cases.merge(measured, on="d2h_bytes")[["case", "ranks", "alone_ns"]]


@lru_cache(maxsize=8)
def _joined(data: RunData, workload: str) -> RunData:
    """The run with the samples of one process and of several side by side, of what several measured alone."""
    together = data.together[data.together["workload"] == workload]
    alone = data.samples[(data.samples["workload"] == workload) & data.samples["variant"].isin(together["variant"].unique())]
    results = data.results[data.results["workload"] == workload]
    # The frame of no samples has no types of its own, which a frame that is joined to it would lose.
    samples = pd.concat([alone, together], ignore_index=True) if len(together) else alone.iloc[:0]
    return replace(data, samples=samples, results=results, together=together)


def _copy(row: dict[Any, Any]) -> Copy:
    return Copy(row["variant"], row["config"], int(row["gpus"]), 0)


def _ratio(joined: RunData, numerator: dict[Any, Any], denominator: dict[Any, Any]) -> Estimate:
    """Median of one cell over that of another, with its interval."""
    return paired_ratio(_series(joined, numerator), _series(joined, denominator), independent=True).estimate


def _series(joined: RunData, row: dict[Any, Any]) -> "pd.Series[float]":
    return joined.rounds(row["workload"], row["case"], row["scope"], row["cache"])[_copy(row)]


def _noise(joined: RunData, *rows: dict[Any, Any]) -> float:
    """How far the baseline is from itself at the numbers of ranks of these rows, as a factor of at least 1."""
    first = rows[0]
    rounds = joined.rounds(first["workload"], first["case"], first["scope"], first["cache"])
    counts = {int(row["gpus"]) for row in rows}
    same = {copy: rounds[copy] for copy in rounds if copy.gpus in counts}
    return noise_of(same, joined.hosts(first["workload"])).between(*(row["variant"] for row in rows))


def _skew(data: RunData, workload: str, view: Timing) -> pd.DataFrame:
    """`skew` with its interval by `_CELL`, of what several ranks measured."""
    raw = data.together
    raw = raw[(raw["workload"] == workload) & (raw["scope"] == view.scope) & (raw["cache"] == view.cache) & (raw["twin"] == 0)]
    raw = raw.astype(dict.fromkeys(("variant", "config", "case"), str))
    ends = raw.groupby([*_CELL, "round", "position"])["duration_ns"].agg(["min", "max"]).reset_index()
    ends["value"] = 100 * (ends["max"] - ends["min"]) / ends["max"]
    return _medians(ends, _CELL, "skew").drop(columns="n")


def _medians(frame: pd.DataFrame, keys: list[str], name: str) -> pd.DataFrame:
    """Median of `value` with its interval by the keys: the columns `name`, `_low`, `_high`, and `n`."""
    ordered = frame.sort_values(keys, kind="stable")
    groups = ordered.groupby(keys, sort=True).size().rename("n").reset_index()
    medians = grouped_median_intervals(ordered["value"].to_numpy(dtype=float), groups["n"].to_numpy())
    return groups.assign(**{name: medians["median"], f"{name}_low": medians["low"], f"{name}_high": medians["high"]})
