"""Time, speedup and efficiency by the number of ranks.

A rank is one process, with one GPU or on the host. The slowest rank gives the time of a round. Each number of ranks is a
launch with its own rounds, so ratios of different numbers of ranks are not paired.
"""

from dataclasses import replace
from functools import lru_cache
from typing import Final

import pandas as pd

from warpladder.dashboard.compare.within_run import UNDECIDED, CaseTimes, verdict
from warpladder.dashboard.core.cell import Cell, Entry, Estimate, Timing, records, with_estimates
from warpladder.dashboard.core.cells import best_config, cells, charted_cases, doubt, in_timing, is_trusted
from warpladder.dashboard.core.intervals import grouped_median_intervals, paired_ratio
from warpladder.dashboard.core.run_data import RunData
from warpladder.data.names import NCCL_ALLREDUCE, Phase

#: The phases of the slowest rank and their names, in the order in which they are stacked.
PARTS: Final = {Phase.H2D: "copies in", Phase.D2H: "copies out", Phase.ALLREDUCE: "communication"}
#: The phases of each scope. Communication is a part of the operation, whose data is on the device.
_PARTS_OF: Final = {"end_to_end": (Phase.H2D, Phase.D2H), "operation": (Phase.ALLREDUCE,)}

_SCOPES: Final = ("end_to_end", "operation", "device")
#: How far the growth of the operations may differ from the growth of the ranks in weak scaling.
_SAME_WORK: Final = 0.1
_CELL: Final = ["variant", "config", "case", "gpus"]
_OF_CASE: Final = ["case", "size_rank", "size", "size_value", "series"]
_SAME: Final = Estimate(1.0, 1.0, 1.0)


#: The columns of `scaling`.
_SCALING: Final = (
    *("workload", "variant", "title", "role", "kind", "rung", "precision", "config", "case", "scope", "cache", "gpus", "n"),
    *(*Estimate.names("median_ns"), "interval_kind", "flags", "flops", "size_rank", "size", "size_value", "series", "ranks"),
    *(column for name in ("speedup", "efficiency") for column in Estimate.names(name)),
)
#: The columns of `shares`.
_SHARES: Final = (
    *(
        "workload",
        "variant",
        "title",
        "kind",
        "config",
        "case",
        "size_rank",
        "size",
        "series",
        "scope",
        "cache",
        "flags",
        "ranks",
    ),
    *("median_ns", "part", *Estimate.names("share"), "least_ns", "alone_ns", "n"),
)


def timings(data: RunData, workload: str) -> tuple[Timing, ...]:
    """The timings of a workload that several ranks have samples in, without phases: end to end, operation, device.

    Where ranks communicate, operation comes first, since communication is a part of it.
    """
    together = data.together[data.together["workload"] == workload]
    first = "operation" if (together["scope"] == Phase.ALLREDUCE).any() else "end_to_end"
    pairs = together[["scope", "cache"]].drop_duplicates().astype(str).itertuples(index=False)
    scaled = [Timing(scope, cache) for scope, cache in pairs if scope in _SCOPES]
    return tuple(sorted(scaled, key=lambda timing: (timing.scope != first, _SCOPES.index(timing.scope), timing.cache)))


def scaling(data: RunData, workload: str, timing: Timing) -> pd.DataFrame:
    """Every variant that several ranks measured, by case and number of ranks, each with its fastest config there.

    Returns:
        One row for each (variant, case, ranks) of the charted cases, by ladder, size and ranks, with columns of `cells` and `axes.charted_cases`,
        and:

        - `median_ns`: an estimate, the median over rounds of the slowest rank's time;
        - `ranks`: GPUs that worked together, or processes of a host variant; 1 where one process did all;
        - `speedup`: an estimate, the median of one rank over the median of these ranks; null where one rank has no samples, or may not be
          called best;
        - `efficiency`: an estimate, the speedup in percent of the number of ranks.

        Empty where several ranks have no correct samples in this timing.
    """
    return _scaling(data, workload, timing).copy()


@lru_cache(maxsize=8)
def _scaling(data: RunData, workload: str, timing: Timing) -> pd.DataFrame:
    joined = _joined(data, workload)
    best = best_config(in_timing(cells(joined), workload, timing))
    frame = best.drop(columns="size_rank").merge(charted_cases(data, workload)[_OF_CASE], on="case")
    frame["ranks"] = frame["gpus"].astype(int).clip(lower=1)
    if not (frame["ranks"] > 1).any():
        return pd.DataFrame(columns=list(_SCALING))
    rows = records(frame)
    ones = {(row.variant, row.case): row for row in rows if row.ranks == 1 and not doubt(row.n, row.flags)}
    speedups = [_SAME if row.ranks == 1 else _ratio(joined, ones.get((row.variant, row.case)), row) for row in rows]
    frame = with_estimates(frame, "speedup", speedups)
    for column, speedup in zip(Estimate.names("efficiency"), Estimate.names("speedup"), strict=True):
        frame[column] = 100 * frame[speedup] / frame["ranks"]
    ladder = {name: place for place, name in enumerate(data.variants.loc[data.variants["workload"] == workload, "variant"])}
    frame["place"] = frame["variant"].map(ladder)
    return frame.sort_values(["place", "size_rank", "case", "ranks"], kind="stable", ignore_index=True)[list(_SCALING)]


def variant_to_show(frame: pd.DataFrame) -> str:
    """The best variant of `scaling`, not empty, at the largest case that the most ranks measured."""
    trusted = frame[is_trusted(frame)]
    frame = trusted if len(trusted) else frame
    most = frame[frame["ranks"] == frame["ranks"].max()]
    return str(most[most["size_rank"] == most["size_rank"].max()].nsmallest(1, "median_ns")["variant"].iloc[0])


def crossover(data: RunData, workload: str, timing: Timing, variant: str) -> pd.DataFrame:
    """How far each number of ranks is from the best one at each case, for one variant.

    Returns:
        The rows of `scaling` of the variant, by size and ranks, with the estimate `over_best`, its time over the time of
        the best number of ranks at the case, and `place`: `best`, `tied` (see `within_run.verdict`), `slower`, or `unknown` where the row
        or every row of the case may not be called best.
    """
    frame = scaling(data, workload, timing)
    frame = frame[frame["variant"] == variant].sort_values(["size_rank", "case"], kind="stable", ignore_index=True)
    joined = _joined(data, workload)
    rows = records(frame)
    best: dict[str, Cell] = {}
    for row in sorted(rows, key=lambda row: row.median_ns.value):
        if not doubt(row.n, row.flags):
            best.setdefault(row.case, row)
    ratios, places = [], []
    for row in rows:
        fastest = best.get(row.case)
        ratio = _SAME if row is fastest else _ratio(joined, row, fastest) if fastest else Estimate.unknown()
        ratios.append(ratio)
        places.append(_place(joined, row, fastest, ratio))
    return with_estimates(frame, "over_best", ratios).assign(place=places)


def _place(joined: RunData, row: Cell, fastest: Cell | None, over_best: Estimate) -> str:
    if fastest is None or doubt(row.n, row.flags):
        return "unknown"
    if row is fastest:
        return "best"
    word = verdict(over_best, min(row.n, fastest.n), _noise(joined, row, fastest))
    return word if word in UNDECIDED else "slower"


def weak(data: RunData, workload: str, timing: Timing) -> pd.DataFrame:
    """Cases whose size grows with the ranks, so that each rank has as much work as one rank has in a smaller case.

    Returns:
        The rows of `scaling` of such cases, rows of one rank included, by ladder, `per_rank` and ranks. A `per_rank` counts
        only where several numbers of ranks have it, and where the operations grow as the ranks do. Further columns are:

        - `axis`: the size axis, such as `batch`;
        - `per_rank`: the value of that axis over the number of ranks, such as 400;
        - `weak_efficiency`: an estimate, the time of one rank in percent of the time of these ranks.
    """
    frame = scaling(data, workload, timing)
    frame = frame[frame["size"].str.fullmatch(r"\w+=\d+")].reset_index(drop=True)
    frame = frame.assign(axis=frame["size"].str.partition("=")[0], per_rank=frame["size_value"] / frame["ranks"])
    joined = _joined(data, workload)
    ratios: dict[int, Estimate] = {}
    for _, group in frame.groupby(["variant", "series", "per_rank"], sort=False):
        rows = dict(zip(group.index.tolist(), records(group), strict=True))
        one = next((row for row in rows.values() if row.ranks == 1 and not doubt(row.n, row.flags)), None)
        same = {
            place: row
            for place, row in rows.items()
            if one and (not one.flops or abs(row.flops / (one.flops * row.ranks) - 1) <= _SAME_WORK)
        }
        for place, row in same.items() if len(same) > 1 else ():
            ratios[place] = _SAME if row.ranks == 1 else _ratio(joined, one, row)
    grown = with_estimates(frame.loc[list(ratios)], "weak_efficiency", [ratio.times(100) for ratio in ratios.values()])
    # A peer has no rung. Exported files have held the rungs beside it as floats.
    grown = grown.astype({"rung": float if grown["rung"].isna().any() else int})
    grown["place"] = grown["variant"].map({name: place for place, name in enumerate(dict.fromkeys(grown["variant"]))})
    return grown.sort_values(["place", "series", "per_rank", "ranks"], kind="stable", ignore_index=True).drop(columns="place")


def weak_to_show(frame: pd.DataFrame) -> float:
    """The largest `per_rank` of a nonempty `weak`, among the values that most numbers of ranks have."""
    counts = frame.groupby("per_rank")["ranks"].nunique()
    return float(counts[counts == counts.max()].index.max())


def shares(data: RunData, workload: str, timing: Timing) -> pd.DataFrame:
    """The shares of copies and of communication in the time of each round's slowest rank.

    Copies are parts of `end_to_end`, and communication is a part of `operation`.

    Returns:
        One row for each (variant, case, ranks, part) that has phases, by ladder, size, ranks and part, with columns of
        `scaling`, and:

        - `median_ns`: the median of the whole operation;
        - `part`: a value of `PARTS`;
        - `share`: an estimate, the phase over the whole operation in percent, both for the slowest rank of the round; the median over
          rounds;
        - `least_ns`: of communication, the least time of a rank, which waits for no other rank; the median over rounds;
        - `alone_ns`: of communication, the time that NCCL alone was measured to take for the bytes of the case's outputs on as many GPUs;
        - `n`: rounds.

        Empty in a timing of another scope, or without phases.
    """
    parts_of = _PARTS_OF.get(timing.scope, ())
    frame = scaling(data, workload, timing).drop(columns="n")
    raw = _joined(data, workload).samples
    raw = raw[(raw["cache"] == timing.cache) & (raw["twin"] == 0) & raw["scope"].isin([timing.scope, *parts_of])]
    raw = raw.astype(dict.fromkeys(("variant", "config", "case", "scope"), str))
    raw = raw.merge(frame[_CELL].astype({"gpus": int}), on=_CELL)
    in_round = [*_CELL, "round"]
    operation = (
        raw[raw["scope"] == timing.scope].sort_values("duration_ns", kind="stable").drop_duplicates(in_round, keep="last")
    )
    operation = operation[[*in_round, "rank", "duration_ns"]].rename(columns={"duration_ns": "whole_ns"})
    phases = raw[raw["scope"] != timing.scope]
    parts = phases.merge(operation, on=[*in_round, "rank"])
    if parts.empty:
        return pd.DataFrame(columns=list(_SHARES))
    parts["part"] = parts["scope"].map(PARTS)
    parts["value"] = 100 * parts["duration_ns"] / parts["whole_ns"]
    parts_frame = frame.merge(_medians(parts, [*_CELL, "part"], "share"), on=_CELL)
    # The least time of a rank of a round, in the median over rounds.
    least = phases.groupby([*_CELL, "scope", "round"])["duration_ns"].min().groupby([*_CELL, "scope"]).median()
    shortest = least.rename("least_ns").reset_index().assign(part=lambda each: each["scope"].map(PARTS)).drop(columns="scope")
    parts_frame = parts_frame.merge(shortest, "left", [*_CELL, "part"]).merge(_alone(data, workload), "left", ["case", "ranks"])
    parts_frame.loc[parts_frame["part"] != PARTS[Phase.ALLREDUCE], ["least_ns", "alone_ns"]] = None
    parts_frame["order"] = parts_frame["part"].map(list(PARTS.values()).index)
    parts_frame["place"] = parts_frame["variant"].map(
        {name: place for place, name in enumerate(dict.fromkeys(frame["variant"]))}
    )
    return parts_frame.sort_values(["place", "size_rank", "case", "ranks", "order"], kind="stable", ignore_index=True)[
        list(_SHARES)
    ]


def _alone(data: RunData, workload: str) -> pd.DataFrame:
    """`alone_ns` by case and ranks, from the ceilings `nccl_allreduce_<bytes>_bytes` of as many GPUs."""
    of_nccl = data.ceilings["name"].str.extract(NCCL_ALLREDUCE, expand=False)
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
    """The run with the samples of one process and of several together, of the variants that several measured."""
    together = data.together[data.together["workload"] == workload]
    alone = data.samples[(data.samples["workload"] == workload) & data.samples["variant"].isin(together["variant"].unique())]
    results = data.results[data.results["workload"] == workload]
    # An empty frame has no types, and a frame joined to it would lose its types.
    samples = pd.concat([alone, together], ignore_index=True) if len(together) else alone.iloc[:0]
    return replace(data, samples=samples, results=results, together=together)


def _ratio(joined: RunData, numerator: Cell | None, denominator: Cell) -> Estimate:
    """Median of one cell over the median of another, with its interval; unknown without a numerator."""
    if numerator is None:
        return Estimate.unknown()
    return paired_ratio(_durations(joined, numerator), _durations(joined, denominator), independent=True).estimate


def _durations(joined: RunData, row: Cell) -> "pd.Series[float]":
    return joined.rounds(row.workload, row.case, row.scope, row.cache)[Entry(row.variant, row.config, row.gpus, 0)]


def _noise(joined: RunData, *rows: Cell) -> float:
    """The noise floor for rows of one case, from the baseline's two copies on as many ranks, as a factor of at least 1."""
    first = rows[0]
    rounds = joined.rounds(first.workload, first.case, first.scope, first.cache)
    counts = {row.gpus for row in rows}
    same = {copy: rounds[copy] for copy in rounds if copy.gpus in counts}
    return CaseTimes(same, joined.hosts(first.workload)).noise(*(row.variant for row in rows))


def _medians(frame: pd.DataFrame, keys: list[str], name: str) -> pd.DataFrame:
    """Median of `value` with its interval by the keys, in the columns `name`, `_low` and `_high`, and `n`."""
    ordered = frame.sort_values(keys, kind="stable")
    groups = ordered.groupby(keys, sort=True).size().rename("n").reset_index()
    medians = grouped_median_intervals(ordered["value"].to_numpy(dtype=float), groups["n"].to_numpy())
    return groups.assign(**{name: medians["median"], f"{name}_low": medians["low"], f"{name}_high": medians["high"]})
