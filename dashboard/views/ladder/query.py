"""The rungs of one case, with the ceiling, the peers and the host set apart."""

from typing import Final

import pandas as pd

from warpladder.dashboard.core.axes import Timing
from warpladder.dashboard.core.cells import ROLE_ORDER, best_config, cells, select
from warpladder.dashboard.core.compare import steps_of, with_speedups
from warpladder.dashboard.core.run_data import RunData

_GAIN: Final = {
    "low": "gain_low", "high": "gain_high", "verdict": "gain_verdict", "previous_variant": "gain_over", "previous_precision": "gain_from",
}  # fmt: skip


def ladder(data: RunData, workload: str, case: str, view: Timing) -> pd.DataFrame:
    """Each variant's fastest config of one case, in the order in which the chart shows them.

    Returns:
        Rows of `cells` (ceilings, then rungs by rung, peers, host, specimens) with, besides, `speedup`, `speedup_low`,
        `speedup_high`, `verdict` against the baseline; `gain`, `gain_low`, `gain_high`, `gain_verdict` of a rung over
        `gain_over`, a rung before it whose precision is `gain_from` (see `compare.steps`); `baseline`, `baseline_config`. A variant of which every config failed or was skipped in this case is one row
        with null figures, and its `status` and `detail`.
    """
    every = cells(data)
    best = best_config(select(every, workload, case, view.scope, view.cache))
    frame = pd.concat([best, _without_samples(every, workload, case, view)], ignore_index=True)
    frame["place"] = [ROLE_ORDER.index(role) if role in ROLE_ORDER else len(ROLE_ORDER) for role in frame["role"]]
    frame = frame.sort_values(["place", "rung"], kind="stable").drop(columns="place").reset_index(drop=True)
    frame = with_speedups(data, workload, view, frame)
    gains = steps_of(data, workload, case, view, best)[["variant", "gain", *_GAIN]].rename(columns=_GAIN)
    return frame.merge(gains, on="variant", how="left")


def _without_samples(every: pd.DataFrame, workload: str, case: str, view: Timing) -> pd.DataFrame:
    """One row of each variant that is not ok in any config of the case; a host variant has no device time that it could fail at."""
    of_case = every[(every["workload"] == workload) & (every["case"] == case)]
    of_view = every[(every["workload"] == workload) & (every["scope"] == view.scope) & (every["cache"] == view.cache)]
    if not (of_view["kind"] == "host").any():
        of_case = of_case[of_case["kind"] != "host"]
    usable = of_case.loc[of_case["status"] == "ok", "variant"].unique()
    failed = of_case[~of_case["variant"].isin(usable) & (of_case["n"] == 0)]
    return failed.drop_duplicates("variant")


def error_and_time(data: RunData, workload: str, case: str, view: Timing) -> pd.DataFrame:
    """Each variant's fastest config of a case with its measured error against float64.

    Returns:
        Rows of `cells` of rungs and peers (host variants where the case has no others in this view) with, besides, `on_front`: no other is
        at once no slower and no less exact, and better in one of the two. By time; variants without a measured error are left out.
    """
    best = best_config(select(cells(data), workload, case, view.scope, view.cache))
    on_device = best[best["role"].isin(["rung", "peer"])]
    best = on_device if len(on_device) else best[best["role"] == "host"]
    frame = best[best["rel_l2_error"].notna()].sort_values(["median_ns", "rel_l2_error"], kind="stable")
    # In the order of time, one is on the front where it is more exact than all before it.
    before = frame["rel_l2_error"].cummin().shift()
    return frame.assign(on_front=(before.isna() | (frame["rel_l2_error"] < before)).astype(bool)).reset_index(drop=True)
