"""The variants of one case in the order of the ladder, and their errors beside their times."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from warpladder.dashboard.compare import sustained
from warpladder.dashboard.compare.within_run import UNDECIDED, CaseTimes, add_energy, precisions, with_gains, with_speedups
from warpladder.dashboard.core import why
from warpladder.dashboard.core.cell import ROLE_ORDER, Entry, Timing
from warpladder.dashboard.core.cells import best_config, cells, in_timing, is_trusted, select
from warpladder.dashboard.core.run_data import RunData


def ladder(data: RunData, workload: str, case: str, timing: Timing) -> pd.DataFrame:
    """Each variant's fastest config of one case: ceilings, then rungs, peers, hosts and specimens.

    A variant that failed or was skipped in every config of the case has one row with null figures.

    Returns:
        Rows of `cells.best_config` with the columns of `within_run.with_speedups`, `add_energy` and `with_gains`, and

        - `beats`, `ties`: tuples of the variants of `leaders` than which it is faster, and of those than which it is not known to be slower
          or faster;
        - `held_clock_mhz`: median of its samples;
        - `clocks`: what is to be told of the clocks held in samples and in loops, in every row; see `sustained`.
    """
    every = cells(data)
    best = best_config(select(every, workload, case, timing))
    frame = pd.concat([best, _without_samples(every, workload, case, timing)], ignore_index=True)
    frame["place"] = [ROLE_ORDER.index(role) if role in ROLE_ORDER else len(ROLE_ORDER) for role in frame["role"]]
    frame = frame.sort_values(["place", "rung"], kind="stable").drop(columns="place").reset_index(drop=True)
    frame = add_energy(with_speedups(data, workload, timing, frame), data, workload, case)
    frame = with_gains(data, workload, case, timing, frame)
    frame = _against_leaders(data, workload, case, timing, frame)
    held = _held_clocks(data, workload, case, timing)
    frame = frame.assign(held_clock_mhz=[held.get(key, float("nan")) for key in _keys(frame)])
    told = (*sustained.clocks(contestants(frame), "held_clock_mhz", "the samples"), *sustained.remarks(data, workload, case))
    return frame.assign(clocks=". ".join(told))


def _held_clocks(data: RunData, workload: str, case: str, timing: Timing) -> Mapping[tuple[str, str, int], float]:
    """The median clock that the samples of each variant, config and number of GPUs held."""
    known = data.samples[data.samples["held_clock_mhz"].notna()]
    of_timing = in_timing(known, workload, timing)
    cells_of = of_timing[(of_timing["case"] == case) & (of_timing["twin"] == 0)]
    medians = cells_of.groupby(["variant", "config", "gpus"], observed=True)["held_clock_mhz"].median().reset_index()
    return {(variant, config, int(gpus)): mhz for variant, config, gpus, mhz in medians.itertuples(index=False, name=None)}


#: Variant, config, and median in nanoseconds.
TimedCell = tuple[str, str, float]


def step_to(frame: pd.DataFrame, variant: str) -> tuple[TimedCell, TimedCell] | None:
    """A rung and the rung that its gain is over, the latter first; None for a variant without a gain.

    Args:
        frame: rows of `ladder`.
    """
    rows = {row["variant"]: row for row in frame[frame["n"] > 0].to_dict("records")}
    row = rows.get(variant, {})
    before = rows.get(row.get("gain_over"))
    if before is None:
        return None
    return _timed(before), _timed(row)


def next_faster(frame: pd.DataFrame, variant: str) -> str:
    """The rung or peer of the next smaller time; empty for the fastest, and for a variant without a time.

    Args:
        frame: rows of `ladder`.
    """
    timed = contestants(frame).sort_values("median_ns", kind="stable")
    times = timed.set_index("variant")["median_ns"]
    if variant not in times:
        return ""
    faster = times[times < times[variant]]
    return str(faster.index[-1]) if len(faster) else ""


def _timed(row: Mapping[Any, Any]) -> TimedCell:
    return row["variant"], row["config"], float(row["median_ns"])


def explanation(data: RunData, workload: str, case: str, before: TimedCell, after: TimedCell) -> str:
    """Why a rung is faster or slower than the one before, by counters of this run, in a sentence; empty where they were not read."""
    explanation = why.between(data, data, workload, case, before[:2], after[:2], (before[2], after[2]))
    return explanation.sentence(before[0], after[0]) if explanation else ""


def contestants(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows with samples that can be best: rungs and peers; where no rung was timed all but specimens, and those where there is
    nothing else.
    """
    timed = frame[frame["n"] > 0]
    if (timed["role"] == "rung").any():
        return timed[timed["role"].isin(["rung", "peer"])]
    return timed[timed["role"] != "specimen"] if (timed["role"] != "specimen").any() else timed


def leaders(frame: pd.DataFrame) -> pd.DataFrame:
    """The best variant of each precision, fp32 first: the fastest rung that may be called best, or where no rung was timed the fastest
    variant that is no specimen, or else the fastest specimen.

    Args:
        frame: rows of `cells.best_config` of one case.
    """
    chosen = contestants(frame)
    chosen = chosen[chosen["role"] == "rung"] if (chosen["role"] == "rung").any() else chosen
    by_time = chosen[is_trusted(chosen)].sort_values("median_ns", kind="stable").drop_duplicates("precision")
    return by_time.set_index("precision").loc[precisions(by_time)].reset_index()


def _against_leaders(data: RunData, workload: str, case: str, timing: Timing, frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with `beats` and `ties`."""
    times = CaseTimes.of(data, workload, case, timing)
    first = [Entry(*key, 0) for key in _keys(leaders(frame))]
    beats: list[tuple[str, ...]] = []
    ties: list[tuple[str, ...]] = []
    for key, trusted in zip(_keys(frame), is_trusted(frame), strict=True):
        others = [leader for leader in first if trusted and leader[:3] != key]
        verdicts = {leader.variant: times.judge(Entry(*key, 0), leader).verdict for leader in others}
        beats.append(tuple(name for name, word in verdicts.items() if word == "faster"))
        ties.append(tuple(name for name, word in verdicts.items() if word in UNDECIDED))
    return frame.assign(beats=pd.Series(beats, frame.index, dtype=object), ties=pd.Series(ties, frame.index, dtype=object))


def _keys(frame: pd.DataFrame) -> list[tuple[str, str, int]]:
    rows = frame[["variant", "config", "gpus"]].itertuples(index=False, name=None)
    return [(variant, config, 0 if pd.isna(gpus) else int(gpus)) for variant, config, gpus in rows]


def _without_samples(every: pd.DataFrame, workload: str, case: str, timing: Timing) -> pd.DataFrame:
    """One row for each variant that is not ok in any config of the case.

    Host variants count only in a timing that has host samples, since they have no device time.
    """
    of_case = every[(every["workload"] == workload) & (every["case"] == case)]
    if not (in_timing(every, workload, timing)["kind"] == "host").any():
        of_case = of_case[of_case["kind"] != "host"]
    usable = of_case.loc[of_case["status"] == "ok", "variant"].unique()
    failed = of_case[~of_case["variant"].isin(usable) & (of_case["n"] == 0)]
    return failed.drop_duplicates("variant")


def has_errors(data: RunData, workload: str) -> bool:
    """Whether the error of a variant is known."""
    of_workload = data.results[data.results["workload"] == workload]
    return bool(of_workload["rel_l2_error"].notna().any())


def error_and_time(data: RunData, workload: str, case: str, timing: Timing) -> pd.DataFrame:
    """Each variant's fastest config of a case with its measured error against float64, by time. What may not be called best is not on
    the front.

    The variants are rungs and peers, or host variants where the case has no others in this timing. A variant without a measured
    error is left out.

    Returns:
        Rows of `cells` with `on_front`: no other variant is both as fast and as exact, and better in one of the two.
    """
    best = best_config(select(cells(data), workload, case, timing))
    on_device = best[best["role"].isin(["rung", "peer"])]
    best = on_device if len(on_device) else best[best["role"] == "host"]
    frame = best[best["rel_l2_error"].notna()].sort_values(["median_ns", "rel_l2_error"], kind="stable")
    # In the order of time, a variant is on the front where it is more exact than all before it.
    trusted = is_trusted(frame)
    before = frame["rel_l2_error"].where(trusted).cummin().shift().ffill()
    return frame.assign(on_front=trusted & (before.isna() | (frame["rel_l2_error"] < before))).reset_index(drop=True)
