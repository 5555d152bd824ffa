"""The best rung of each workload and precision, compared with the baseline, the floor and the best peer."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from warpladder.dashboard.compare.suspect import stale_variants, unsteady
from warpladder.dashboard.compare.within_run import CaseTimes, is_peer_of, noise_floors, precisions, verdict
from warpladder.dashboard.core.cell import Cell, Entry, Estimate, Timing, records
from warpladder.dashboard.core.cells import (
    baselines,
    best_of_charted,
    cells,
    charted_cases,
    in_timing,
    is_trusted,
    passed_over,
    scaled_workloads,
    timings,
)
from warpladder.dashboard.core.intervals import MIN_SAMPLES
from warpladder.dashboard.core.run_data import RunData, find_entry, once
from warpladder.data.words import counted, first_of

_BROKEN: Final = ("launch_error", "out_of_memory", "timeout")
#: The roles among which the best is found, the first that was timed.
_COMPETING: Final = ("rung", "host", "peer")
#: A time up to this many times the fastest of a case counts as equally good.
_AS_GOOD: Final = 1.05
_COLUMNS: Final = (
    *("workload", "on", "precision", "cases", "case", "scope", "cache"),
    *("baseline", "baseline_config", "best", "best_config", "tied_with", *Estimate.names("best_ns")),
    *(*Estimate.names("speedup"), "speedup_verdict", *Estimate.names("percent_of_floor")),
    *("peer", "peer_config", *Estimate.names("over_peer"), "over_peer_verdict", "n", "doubts", "badges"),
)


#: Columns of `overview` -> the columns of cells that say the same of the best rung.
_OF_BEST: Final = dict(
    zip(
        ("best", "best_config", *Estimate.names("best_ns"), "speedup_verdict"),
        ("variant", "config", *Estimate.names("median_ns"), "verdict"),
        strict=True,
    )
)


def lines(data: RunData, root: Path | None = None) -> tuple[Cell, ...]:
    """A line for each workload and precision of `overview`, in its order.

    Returns:
        The last row of the workload and precision, as the best rung with its figures. Without a rung that may be called best, `variant` and
        the figures are empty. Further attributes are:

        - `cases_apart`: how many cases of the largest size have a row of their own; 1 where all are in one row;
        - `last_case`, `params`: the last of its cases, to which the line leads, and the axes of that case;
        - `by_size`: percent of floor of the best rung at each size, the mean over the cases of that size; empty without floors;
        - `badges`: the reasons to distrust the workload's figures.
    """
    frame = overview(data, root)
    badges = frame.groupby("workload", sort=False)["badges"].sum().to_dict()
    result = []
    for (workload, precision), rows in frame.groupby(["workload", "precision"], sort=False):
        (best,) = records(rows.tail(1).rename(columns=_OF_BEST))
        _, every = _candidates(data, str(workload), Timing(best.scope, best.cache))
        every = every[every["precision"] == precision].sort_values("size_rank", kind="stable")
        largest = _of_largest_size(every)
        last = (_may_be_best(largest) or [largest])[-1].iloc[-1]
        params = {axis: str(value) for axis, value in json.loads(last["params"]).items()}
        trusted = every[is_trusted(every)]
        of_case = trusted.groupby(["size_rank", "case"], sort=True)["percent_of_floor"].max()  # of the fastest variant
        sizes = tuple(of_case.groupby(level="size_rank").mean().tolist()) if of_case.notna().any() else ()
        further = {"cases_apart": len(rows), "last_case": str(last["case"]), "params": params, "by_size": sizes}
        result.append(Cell(**{**vars(best), **further, "badges": tuple(badges[str(workload)])}))
    return tuple(result)


def _candidates(data: RunData, workload: str, timing: Timing) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The charted cells of a workload, and those among which the best is found: the rungs, or without any the host variants, or without
    these the peers."""
    every = best_of_charted(data, workload, timing)
    role = next((role for role in _COMPETING if (every["role"] == role).any()), "")
    return every, every[every["role"] == role]


def overview(data: RunData, root: Path | None = None, *, every_size: bool = False) -> pd.DataFrame:
    """The best rung of each workload and precision, against the baseline, the floor and the best peer.

    The best rung of a precision is compared with the best of the peers that it replaces. Both may be called best (see
    `core.trusted`), and so may the baseline, or else there is no ratio. The figures belong to the largest size at which a rung of
    the precision has samples, in the first of `axes.timings`. Without a rung, the host variants take the place of the rungs, and without
    these the peers, which then have no peer.

    A size can have several cases, such as permutations or layers. If one rung is within 5 % of the fastest in each case, the
    figures are geometric means over the cases. The ends of the interval of such a mean are the means of the ends, so it is
    wider than a 95 % interval. Otherwise each case has its own row.

    Args:
        root: the project's folder, for the badge of sources that changed since; None leaves that check out.
        every_size: whether each size has rows of its own, the smallest first, and not the largest alone.

    Returns:
        One row for each (workload, precision) with samples, or for each of its cases, fp32 first. An estimate `name` has the
        columns `name_low` and `name_high` too. The columns are `workload`, `precision`, `scope`, `cache`, `baseline_config`,
        `best_config`, `peer_config`, and

        - `on`: `1 GPU` where the run also has times of the workload on several GPUs, which these figures leave out; else empty;
        - `cases`: number of cases;
        - `case`: the size, such as `n=512`; for some of its cases, the common part of their names;
        - `baseline`, `best`, `peer`: the variants; `peer` is null without a peer;
        - `best`, `best_ns`, `percent_of_floor` and what depends on them are null where no rung may be called best;
        - `tied_with`: the next rung, where it is not known to be slower; else null;
        - `best_ns`, `percent_of_floor`: estimates of the best rung's time and percent of floor;
        - `speedup`, `speedup_verdict`: estimate of the best rung's speedup over the baseline, and the word for it
          (`within_run.verdict`);
        - `over_peer`, `over_peer_verdict`: estimate of the peer's time over the best rung's, and the word for it;
        - `n`: least number of samples of the cells used;
        - `doubts`: text on a faster cell that was passed over, and on ratios that are missing; empty without doubts;
        - `badges`: tuple of texts on the whole workload, in its first row; empty where nothing is distrusted.
    """
    stale = stale_variants(data, root) if root else None
    noise = noise_floors(data)
    rows: list[dict[str, Any]] = []
    for workload in data.workloads:
        on = "1 GPU" if data.on_gpu and workload in scaled_workloads(data) else ""
        of_workload = [row | {"on": on} for row in _rows(data, workload, every_size)]
        badges = _badges(data, workload, noise, stale)
        rows += [row | {"badges": () if place else badges} for place, row in enumerate(of_workload)]
    return pd.DataFrame(rows, columns=list(_COLUMNS))


@once
def _rows(data: RunData, workload: str, every_size: bool) -> list[dict[str, Any]]:
    """The rows of one workload; no rows without a rung or host variant with samples."""
    known_timings = timings(data, workload)
    if not known_timings:
        return []
    every, candidates = _candidates(data, workload, known_timings[0])
    rows = []
    for precision in precisions(candidates):
        of_precision = candidates[candidates["precision"] == precision]
        sizes = (
            [of_size for _, of_size in of_precision.groupby("size_rank")] if every_size else [_of_largest_size(of_precision)]
        )
        for of_size in sizes:
            known = [_row(data, known_timings[0], every, each, precision) for each in _may_be_best(of_size)]
            rows += known or [_undecided(known_timings[0], of_size, precision)]
    return rows


def _of_largest_size(candidates: pd.DataFrame) -> pd.DataFrame:
    largest: pd.DataFrame = candidates[candidates["size_rank"] == candidates["size_rank"].max()]
    return largest


def _undecided(timing: Timing, rows: pd.DataFrame, precision: str) -> dict[str, Any]:
    """The row of a workload and precision without a winner, with the reason."""
    return {
        "workload": rows["workload"].iloc[0],
        "precision": precision,
        "cases": rows["case"].nunique(),
        "case": _in_all(rows["case"]),
        "scope": timing.scope,
        "cache": timing.cache,
        "n": int(rows["n"].min()),
        "doubts": passed_over(rows, rows.head(0)),
    }


def _may_be_best(candidates: pd.DataFrame) -> list[pd.DataFrame]:
    """The rows of a size that may be called best.

    They are together where one variant is nearly the fastest in all cases, else case by case.
    """
    candidates = candidates[is_trusted(candidates)]
    fastest = candidates.groupby("case", sort=False)["median_ns"].min()
    if candidates.empty:
        return []
    times = _fastest(candidates).set_index("case")["median_ns"].reindex(fastest.index)
    if (times <= _AS_GOOD * fastest).all():
        return [candidates]
    return [rows for _, rows in candidates.groupby("case", sort=False)]


def _row(data: RunData, timing: Timing, every: pd.DataFrame, candidates: pd.DataFrame, precision: str) -> dict[str, Any]:
    """The figures of one workload in one precision, over the cases of the candidates."""
    workload = str(candidates["workload"].iloc[0])
    cases = charted_cases(data, workload)
    of_size = cases.loc[cases["size_rank"] == candidates["size_rank"].iloc[0]]
    best = _fastest(candidates)
    peers = every[is_peer_of(every, precision) & (best["role"].iloc[0] != "peer")]
    against_baseline, no_speedup = _against_baseline(data, timing, best)
    contest = every[(every["precision"] == precision) & (every["role"] == best["role"].iloc[0]) | is_peer_of(every, precision)]
    passed = passed_over(contest[contest["case"].isin(best["case"])], best)
    row = {
        "workload": workload,
        "precision": precision,
        "cases": len(best),
        "case": _in_all(best["case"] if len(best) < len(of_size) else of_size["size"]),
        "scope": timing.scope,
        "cache": timing.cache,
        "best": best["variant"].iloc[0],
        "best_config": _configs(best),
        "tied_with": _tied_with(data, timing, best, candidates),
        **Estimate(*(_mean(best[column]) for column in ("median_ns", "low_ns", "high_ns"))).columns("best_ns"),
        "n": int(best["n"].min()),
        "doubts": "; ".join(filter(None, (passed, no_speedup))),
    }
    for column in ("percent_of_floor", "percent_of_floor_low", "percent_of_floor_high"):
        row[column] = _mean(best[column])
    return row | against_baseline | _against_peer(data, timing, best, peers[is_trusted(peers)])


def _tied_with(data: RunData, timing: Timing, best: pd.DataFrame, candidates: pd.DataFrame) -> str | None:
    """The next rung with a time in every case of the best rung, where it is not known to be slower."""
    others = candidates[(candidates["variant"] != best["variant"].iloc[0]) & candidates["case"].isin(best["case"])]
    second = _fastest(others) if len(others) else others
    if len(second) < len(best):
        return None
    _, word = _ratio(data, timing, best, _configs_of(second))
    return None if word in ("", "faster") else str(second["variant"].iloc[0])


def _in_all(names: pd.Series) -> str:
    """The common part of the names of cases, such as `n=1` for `n=1,perm=021` and `n=1,perm=210`."""
    first, *others = (name.split(",") for name in names)
    return ",".join(part for part in first if all(part in other for other in others))


def _against_baseline(data: RunData, timing: Timing, best: pd.DataFrame) -> tuple[dict[str, Any], str]:
    """The figures, and the reason for a missing ratio; empty where the ratio is known."""
    workload = best["workload"].iloc[0]
    references = baselines(data, workload, timing, frozenset(best["case"]))
    every = in_timing(cells(data.selected_from or data), workload, timing)
    by_cell = every.set_index(["case", "variant", "config", "gpus"])
    keys = [(case, each.variant, each.config, each.gpus) for case, each in references.items()]
    rows = by_cell.loc[keys].reset_index()
    if rows.empty:
        return {}, ""
    columns = {
        "baseline": rows["variant"].iloc[0],
        "baseline_config": _configs(rows),
    }
    if len(rows) < len(best):
        return columns, ""
    if why := next(filter(None, (each.no_speedup for each in references.values())), ""):
        return columns | {"speedup_verdict": "unknown"}, why
    over, word = _ratio(data, timing, best, {case: (each.variant, each.config) for case, each in references.items()})
    return columns | {**over.columns("speedup"), "speedup_verdict": word}, ""


def _against_peer(data: RunData, timing: Timing, best: pd.DataFrame, peers: pd.DataFrame) -> dict[str, Any]:
    """The best of the peers that have a time in every case of the best rung; nulls without such a peer."""
    peers = peers[peers["case"].isin(best["case"])]
    peer = _fastest(peers) if len(peers) else peers
    if len(peer) < len(best):
        return {}
    over, word = _ratio(data, timing, best, _configs_of(peer))
    if not word:
        return {}
    return {
        "peer": peer["variant"].iloc[0],
        "peer_config": _configs(peer),
        **over.columns("over_peer"),
        "over_peer_verdict": word,
    }


def _fastest(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows of the variant with the least geometric mean time, among the variants with a time in the most cases."""
    times = frame.assign(log=np.log(frame["median_ns"])).groupby("variant", sort=False)["log"].agg(["size", "mean"])
    times = times[times["size"] == times["size"].max()]
    fastest: pd.DataFrame = frame[frame["variant"] == times["mean"].idxmin()]
    return fastest


def _ratio(data: RunData, timing: Timing, best: pd.DataFrame, others: Mapping[str, tuple[str, str]]) -> tuple[Estimate, str]:
    """The geometric mean, over the cases, of the other's time over the best's, with its verdict.

    The noise floor is the mean of the noise floors of the cases. Where the other lacks a time, the mean is unknown and the
    verdict is empty.
    """
    workload, comparisons = best["workload"].iloc[0], []
    for case, variant, config, gpus in best[["case", "variant", "config", "gpus"]].itertuples(index=False, name=None):
        times = CaseTimes.of(data, workload, case, timing)
        other = find_entry(times.rounds, *others[case])
        if other is None:
            return Estimate.unknown(), ""
        comparisons.append(times.judge(Entry(variant, config, int(gpus), 0), other))
    over = Estimate(*(_mean([each.ratio[end] for each in comparisons]) for end in range(3)))
    word = verdict(over, min(each.ratio.n for each in comparisons), _mean([each.noise for each in comparisons]))
    return (Estimate.unknown() if word == "unknown" else over), word


def _configs_of(frame: pd.DataFrame) -> dict[str, tuple[str, str]]:
    """Case -> variant and config."""
    rows = frame[["case", "variant", "config"]].itertuples(index=False, name=None)
    return {case: (variant, config) for case, variant, config in rows}


def _configs(frame: pd.DataFrame) -> str:
    return " or ".join(dict.fromkeys(frame["config"]))


def _mean(values: Any) -> float:
    """The geometric mean; NaN where a value is missing or not positive."""
    array = np.asarray(values, dtype=float)
    return float(np.exp(np.log(array).mean())) if array.size and (array > 0).all() else float("nan")


def _badges(data: RunData, workload: str, noise: pd.DataFrame, stale: pd.DataFrame | None) -> tuple[str, ...]:
    """The reasons to distrust a workload's figures. Specimens do not count, because the checks must catch them."""
    every = cells(data)
    every = every[(every["workload"] == workload) & (every["role"] != "specimen")]
    results = every.drop_duplicates(["variant", "config", "case"])
    flagged = results[results["flags"].map(len) > 0]
    wrong = int((results["status"] == "wrong_result").sum())
    broken = int(results["status"].isin(_BROKEN).sum())
    own_noise = noise[(noise["workload"] == workload) & (noise["n"] >= MIN_SAMPLES)]
    off = int((~own_noise["holds_one"].astype(bool)).sum())
    badges = []
    if len(flagged):
        sources = sorted({source for sources in flagged["flags"] for source in sources})
        badges.append(f"{counted(len(flagged), 'cell')} flagged: {', '.join(sources)}")
    if wrong:
        badges.append(f"{counted(wrong, 'wrong result')}")
    if broken:
        badges.append(f"{counted(broken, 'cell')} failed")
    doubtful = unsteady(data)
    for what, count in doubtful.loc[doubtful["workload"] == workload, "what"].value_counts().items():
        badges.append(f"{counted(count, 'cell')} of {what}")
    # By chance, one 95 % interval in twenty does not hold 1.
    if off > max(1, 0.1 * len(own_noise)):
        badges.append(f"A/A off in {off} of {len(own_noise)} cells")
    if stale is not None and (changed := list(stale.loc[stale["workload"] == workload, "variant"])):
        badges.append(f"source changed since: {first_of(changed, 2)}")
    return tuple(badges)
