"""The rungs of one case, with the ceiling, the peers and the host set apart."""

from typing import Final

import pandas as pd

from dashboard.core.axes import View, baseline
from dashboard.core.cells import best_config, cells, select
from dashboard.core.compare import speedups, steps_of
from dashboard.core.run_data import RunData

ROLE_ORDER: Final = ("ceiling", "rung", "peer", "host", "specimen")
_SPEEDUP: Final = {"low": "speedup_low", "high": "speedup_high"}
_GAIN: Final = {
    "low": "gain_low", "high": "gain_high", "verdict": "gain_verdict", "previous_variant": "gain_over", "previous_precision": "gain_from",
}  # fmt: skip


def ladder(data: RunData, workload: str, case: str, view: View) -> pd.DataFrame:
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


def with_speedups(data: RunData, workload: str, view: View, frame: pd.DataFrame) -> pd.DataFrame:
    """Rows of `cells` of one view with `speedup`, `speedup_low`, `speedup_high`, `verdict`, `baseline`, `baseline_config`."""
    reference = baseline(data, workload, view, cases=frame["case"].unique())
    if reference is None:
        return frame.assign(
            speedup=float("nan"),
            speedup_low=float("nan"),
            speedup_high=float("nan"),
            verdict="",
            baseline="",
            baseline_config="",
        )
    ratios = [
        speedups(data, workload, case, view.scope, view.cache, reference.variant, reference.config).assign(case=case)
        for case in frame["case"].unique()
    ]
    columns = ["case", "variant", "config", "gpus", "speedup", "low", "high", "verdict"]
    found = pd.concat([part for part in ratios if len(part)] or ratios[:1])[columns].rename(columns=_SPEEDUP)
    found["gpus"] = found["gpus"].astype("Int64")
    joined = frame.merge(found, on=["case", "variant", "config", "gpus"], how="left")
    joined["verdict"] = joined["verdict"].fillna("")
    return joined.assign(baseline=reference.variant, baseline_config=reference.config)


def _without_samples(every: pd.DataFrame, workload: str, case: str, view: View) -> pd.DataFrame:
    """One row of each variant that is not ok in any config of the case; a host variant has no device time that it could fail at."""
    of_case = every[(every["workload"] == workload) & (every["case"] == case)]
    of_view = every[(every["workload"] == workload) & (every["scope"] == view.scope) & (every["cache"] == view.cache)]
    if not (of_view["kind"] == "host").any():
        of_case = of_case[of_case["kind"] != "host"]
    usable = of_case.loc[of_case["status"] == "ok", "variant"].unique()
    failed = of_case[~of_case["variant"].isin(usable) & (of_case["n"] == 0)]
    return failed.drop_duplicates("variant")
