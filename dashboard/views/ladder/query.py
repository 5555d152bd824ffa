"""The variants of one case in the order of the ladder, and their errors beside their times."""

from dataclasses import dataclass

import pandas as pd

from warpladder.dashboard.core.cell import ROLE_ORDER, Cell
from warpladder.dashboard.core.cells import best_config, cells, select
from warpladder.dashboard.core.compare import steps, with_speedups
from warpladder.dashboard.core.estimate import Estimate
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.core.timing import Timing


@dataclass(frozen=True)
class Rung(Cell):
    """A row of `ladder`.

    Attributes:
        speedup: over the baseline.
        baseline: the variant that speedups are counted from; empty where there is none.
        gain: of a rung, over the rung `gain_over`, whose precision is `gain_from`; see `compare.steps`.
        gain_verdict: `faster`, `slower` or `tied`; empty for the first rung and for other roles.
    """

    speedup: Estimate
    baseline: str
    baseline_config: str
    gain: Estimate
    gain_verdict: str
    gain_over: str
    gain_from: str


@dataclass(frozen=True)
class Point(Cell):
    """A row of `error_and_time`.

    Attributes:
        on_front: no other variant is both as fast and as exact, and better in one of the two.
    """

    on_front: bool


def ladder(data: RunData, workload: str, case: str, timing: Timing) -> pd.DataFrame:
    """Each variant's fastest config of one case: ceilings, then rungs, peers, hosts and specimens.

    A variant that failed or was skipped in every config of the case has one row with null figures.

    Returns:
        Rows of `cells` with the columns of `Rung`, and `verdict` of the speedup.
    """
    every = cells(data)
    best = best_config(select(every, workload, case, timing.scope, timing.cache))
    frame = pd.concat([best, _without_samples(every, workload, case, timing)], ignore_index=True)
    frame["place"] = [ROLE_ORDER.index(role) if role in ROLE_ORDER else len(ROLE_ORDER) for role in frame["role"]]
    frame = frame.sort_values(["place", "rung"], kind="stable").drop(columns="place").reset_index(drop=True)
    frame = with_speedups(data, workload, timing, frame)
    gains = [
        (step.variant, *step.gain.columns("gain").values(), step.verdict, step.previous_precision or None, step.previous)
        for step in steps(data, workload, case, timing, best)
    ]
    found = pd.DataFrame(gains, columns=["variant", *Estimate.names("gain"), "gain_verdict", "gain_from", "previous"])
    found["gain_over"] = [previous.variant if previous else None for previous in found["previous"]]
    columns = ["variant", *Estimate.names("gain"), "gain_verdict", "gain_over", "gain_from"]
    types = {"variant": frame["variant"].dtype, **dict.fromkeys(Estimate.names("gain"), float)}
    return frame.merge(found[columns].astype(types), on="variant", how="left")


def _without_samples(every: pd.DataFrame, workload: str, case: str, timing: Timing) -> pd.DataFrame:
    """One row for each variant that is not ok in any config of the case.

    Host variants count only in a timing that has host samples, since they have no device time.
    """
    of_case = every[(every["workload"] == workload) & (every["case"] == case)]
    of_timing = every[(every["workload"] == workload) & (every["scope"] == timing.scope) & (every["cache"] == timing.cache)]
    if not (of_timing["kind"] == "host").any():
        of_case = of_case[of_case["kind"] != "host"]
    usable = of_case.loc[of_case["status"] == "ok", "variant"].unique()
    failed = of_case[~of_case["variant"].isin(usable) & (of_case["n"] == 0)]
    return failed.drop_duplicates("variant")


def error_and_time(data: RunData, workload: str, case: str, timing: Timing) -> pd.DataFrame:
    """Each variant's fastest config of a case with its measured error against float64, by time.

    The variants are rungs and peers, or host variants where the case has no others in this timing. A variant without a measured
    error is left out.

    Returns:
        Rows of `cells` with the column `on_front` of `Point`.
    """
    best = best_config(select(cells(data), workload, case, timing.scope, timing.cache))
    on_device = best[best["role"].isin(["rung", "peer"])]
    best = on_device if len(on_device) else best[best["role"] == "host"]
    frame = best[best["rel_l2_error"].notna()].sort_values(["median_ns", "rel_l2_error"], kind="stable")
    # In the order of time, a variant is on the front where it is more exact than all before it.
    before = frame["rel_l2_error"].cummin().shift()
    return frame.assign(on_front=(before.isna() | (frame["rel_l2_error"] < before)).astype(bool)).reset_index(drop=True)
