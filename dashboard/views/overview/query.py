"""One row a workload and precision: how far its best rung is from the baseline, the floor and the best peer."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from warpladder.dashboard.core.axes import Baseline, Timing, baseline, charted_cases, timings
from warpladder.dashboard.core.cells import best_config, cells
from warpladder.dashboard.core.compare import find_copy, noise_floors
from warpladder.dashboard.core.estimate import Estimate
from warpladder.dashboard.core.intervals import paired_ratio
from warpladder.dashboard.core.precision import is_peer_of, precisions
from warpladder.dashboard.core.run_data import Copy, RunData
from warpladder.dashboard.core.staleness import stale_variants

_BROKEN: Final = ("launch_error", "out_of_memory", "timeout")
#: Of the fastest time of a case, what is as good.
_AS_GOOD: Final = 1.05
_COLUMNS: Final = [
    "workload", "precision", "cases", "case", "scope", "cache", "baseline", "baseline_config", "baseline_precision", "baseline_ns", "best",
    "best_title", "best_config", "error", "best_ns", "best_ns_low", "best_ns_high", "speedup", "speedup_low", "speedup_high", "percent_of_floor",
    "percent_of_floor_low", "percent_of_floor_high", "floor_bound", "baseline_percent_of_floor", "peer", "peer_title",
    "peer_config", "peer_precision", "peer_error", "peer_percent_of_floor", "over_peer", "over_peer_low", "over_peer_high", "n", "badges",
]  # fmt: skip


def overview(data: RunData, root: Path | None = None) -> pd.DataFrame:
    """What the first page answers.

    Each precision that a rung has is apart, and its best rung is compared with the best of the peers that it replaces. The figures are those
    of the cases of the largest size_rank at which such a rung (or, without a GPU, a host variant) has samples, in the first of
    `axes.timings`. Where there are several (permutations, layers) and one rung is as good as the fastest of each, to 5 %, each figure is the
    geometric mean over them and `cases` counts them; the ends of such a mean's interval are the means of the ends, which is
    wider than 95 %. Where none is, each case has a row of its own.

    Args:
        root: the project's folder, for the badge of a source that changed since; None leaves that check out.

    Returns:
        One row a (workload, precision) with samples, or several of one case each, fp32 first: `workload`, `precision`, `cases`, `case` (the size,
        e.g. `n=512`; of some of its cases, what their names have in common), `scope`, `cache`, `baseline`, `baseline_config`,
        `baseline_precision`, `baseline_ns`, `best`, `best_title`, `best_config`, `error` (the largest
        rel_l2_error against float64 of its cells), `best_ns` (+`_low`, `_high`), `speedup` over the baseline (+`_low`, `_high`),
        `percent_of_floor` (+`_low`, `_high`), `floor_bound`, `baseline_percent_of_floor`, `peer`, `peer_title`, `peer_config`,
        `peer_precision`, `peer_error`, `peer_percent_of_floor` (of the best rung's floor), `over_peer` (+`_low`, `_high`: the peer's time over the best rung's), `n`
        (least of the cells used) and `badges` (tuple of texts on the whole workload, in its first row; empty where nothing is
        distrusted). Where there is no GPU, best is the fastest host variant, the baseline `numba_serial`, and the peer null.
    """
    stale = stale_variants(data, root) if root else None
    noise = noise_floors(data)
    rows: list[dict[str, Any]] = []
    for workload in data.workloads:
        of_workload = _rows(data, workload)
        badges = _badges(data, workload, noise, stale)
        rows += [row | {"badges": () if place else badges} for place, row in enumerate(of_workload)]
    return pd.DataFrame(rows, columns=_COLUMNS)


def _rows(data: RunData, workload: str) -> list[dict[str, Any]]:
    """The rows of one workload; none where it has no rung and no host variant with samples."""
    found = timings(data, workload)
    if not found:
        return []
    every = best_config(cells(data))
    every = every[(every["workload"] == workload) & (every["scope"] == found[0].scope) & (every["cache"] == found[0].cache)]
    every = every[every["case"].isin(charted_cases(data, workload)["case"])]
    candidates = every[every["role"] == ("rung" if (every["role"] == "rung").any() else "host")]
    return [
        _row(data, found[0], every, rows, precision)
        for precision in precisions(candidates)
        for rows in _largest(candidates[candidates["precision"] == precision])
    ]


def _largest(candidates: pd.DataFrame) -> list[pd.DataFrame]:
    """The cases of the largest size: together where one variant is nearly the fastest in all of them, else each for itself."""
    candidates = candidates[candidates["size_rank"] == candidates["size_rank"].max()]
    fastest = candidates.groupby("case", sort=False)["median_ns"].min()
    times = _fastest(candidates).set_index("case")["median_ns"].reindex(fastest.index)
    if (times <= _AS_GOOD * fastest).all():
        return [candidates]
    return [rows for _, rows in candidates.groupby("case", sort=False)]


def _row(data: RunData, view: Timing, every: pd.DataFrame, candidates: pd.DataFrame, precision: str) -> dict[str, Any]:
    """The figures of one workload in one precision, over the cases of the candidates."""
    workload = str(candidates["workload"].iloc[0])
    cases = charted_cases(data, workload)
    of_size = cases.loc[cases["size_rank"] == candidates["size_rank"].iloc[0]]
    peers = every[is_peer_of(every, precision)]
    best = _fastest(candidates)
    row = {
        "workload": workload, "precision": precision, "cases": len(best), "case": _in_all(best["case"] if len(best) < len(of_size) else of_size["size"]),
        "scope": view.scope, "cache": view.cache, "best": best["variant"].iloc[0], "best_title": best["title"].iloc[0],
        "best_config": _configs(best), "error": best["rel_l2_error"].max(),
        **Estimate(*(_mean(best[column]) for column in ("median_ns", "low_ns", "high_ns"))).columns("best_ns"),
        "floor_bound": best["floor_bound"].iloc[0], "n": int(best["n"].min()),
    }  # fmt: skip
    for column in ("percent_of_floor", "percent_of_floor_low", "percent_of_floor_high"):
        row[column] = _mean(best[column])
    return (
        row
        | _against_baseline(data, view, best, baseline(data, workload, view, cases=best["case"]))
        | _against_peer(data, view, best, peers)
    )


def _in_all(names: pd.Series) -> str:
    """What the names of cases have in common, such as `n=1` of `n=1,perm=021` and `n=1,perm=210`."""
    first, *others = (name.split(",") for name in names)
    return ",".join(part for part in first if all(part in other for other in others))


def _against_baseline(data: RunData, view: Timing, best: pd.DataFrame, reference: Baseline | None) -> dict[str, Any]:
    if reference is None:
        return {}
    every = cells(data)
    rows = every[
        (every["variant"] == reference.variant) & (every["config"] == reference.config) & (every["workload"] == best["workload"].iloc[0])
        & (every["scope"] == view.scope) & (every["cache"] == view.cache) & every["case"].isin(best["case"])
    ]  # fmt: skip
    precision = data.variants.loc[
        (data.variants["workload"] == best["workload"].iloc[0]) & (data.variants["variant"] == reference.variant), "precision"
    ]
    name = {"baseline": reference.variant, "baseline_config": reference.config, "baseline_precision": next(iter(precision), "")}
    over = _ratio(data, view, best, dict.fromkeys(best["case"], (reference.variant, reference.config)))
    if over is None:
        return name
    return name | {
        "baseline_ns": _mean(rows["median_ns"]), "baseline_percent_of_floor": _mean(rows["percent_of_floor"]),
        **over.columns("speedup"),
    }  # fmt: skip


def _against_peer(data: RunData, view: Timing, best: pd.DataFrame, peers: pd.DataFrame) -> dict[str, Any]:
    """The best peer of those that have a time in every case of the best rung; nulls where there is none."""
    peers = peers[peers["case"].isin(best["case"])]
    peer = _fastest(peers) if len(peers) else peers
    if len(peer) < len(best):
        return {}
    floors = peer["case"].map(best.set_index("case")["floor_ns"])
    over = _ratio(data, view, best, {case: (name, config) for case, name, config in _names(peer)})
    if over is None:
        return {}
    return {
        "peer": peer["variant"].iloc[0], "peer_title": peer["title"].iloc[0], "peer_config": _configs(peer),
        "peer_precision": peer["precision"].iloc[0], "peer_error": peer["rel_l2_error"].max(),
        "peer_percent_of_floor": _mean(100 * floors / peer["median_ns"]),
        **over.columns("over_peer"),
    }  # fmt: skip


def _fastest(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows of the variant of the least geometric mean time, of those that have a time in the most cases."""
    times = frame.assign(log=np.log(frame["median_ns"])).groupby("variant", sort=False)["log"].agg(["size", "mean"])
    times = times[times["size"] == times["size"].max()]
    fastest: pd.DataFrame = frame[frame["variant"] == times["mean"].idxmin()]
    return fastest


def _ratio(data: RunData, view: Timing, best: pd.DataFrame, others: Mapping[str, tuple[str, str]]) -> Estimate | None:
    """Geometric mean over the cases of the other's time over the best's; None where the other lacks one."""
    ratios = []
    for case, variant, config in _names(best):
        rounds = data.rounds(best["workload"].iloc[0], case, view.scope, view.cache)
        other = find_copy(rounds, *others[case])
        if other is None:
            return None
        gpus = best.loc[best["case"] == case, "gpus"].iloc[0]
        ratios.append(paired_ratio(rounds[other], rounds[Copy(variant, config, int(gpus), 0)]))
    return Estimate(*(_mean([ratio[end] for ratio in ratios]) for end in range(3)))


def _names(frame: pd.DataFrame) -> list[tuple[str, str, str]]:
    return list(frame[["case", "variant", "config"]].itertuples(index=False, name=None))


def _configs(frame: pd.DataFrame) -> str:
    return " or ".join(dict.fromkeys(frame["config"]))


def _mean(values: Any) -> float:
    """Geometric mean; NaN where a value is missing or not positive."""
    array = np.asarray(values, dtype=float)
    return float(np.exp(np.log(array).mean())) if array.size and (array > 0).all() else float("nan")


def _badges(data: RunData, workload: str, noise: pd.DataFrame, stale: pd.DataFrame | None) -> tuple[str, ...]:
    """What gives reason to distrust a workload's figures. Specimens are there to be caught, so they do not count."""
    every = cells(data)
    every = every[(every["workload"] == workload) & (every["role"] != "specimen")]
    verdicts = every.drop_duplicates(["variant", "config", "case"])
    flagged = verdicts[verdicts["flags"].map(len) > 0]
    wrong = int((verdicts["status"] == "wrong_result").sum())
    broken = int(verdicts["status"].isin(_BROKEN).sum())
    own_noise = noise[noise["workload"] == workload]
    off = int((~own_noise["holds_one"].astype(bool)).sum())
    badges = []
    if len(flagged):
        sources = sorted({source for sources in flagged["flags"] for source in sources})
        badges.append(f"{_count(len(flagged), 'cell')} flagged: {', '.join(sources)}")
    if wrong:
        badges.append(f"{_count(wrong, 'wrong result')}")
    if broken:
        badges.append(f"{_count(broken, 'cell')} failed")
    # One interval in twenty misses 1 by chance.
    if off > max(1, 0.1 * len(own_noise)):
        badges.append(f"A/A off in {off} of {len(own_noise)} cells")
    if stale is not None and (changed := list(stale.loc[stale["workload"] == workload, "variant"])):
        shown = ", ".join(changed[:2]) + (f" and {len(changed) - 2} more" if len(changed) > 2 else "")
        badges.append(f"source changed since: {shown}")
    return tuple(badges)


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
