"""The energy of an execution: its median and interval, its rate a watt, and its ratio to that of another variant.

It is what NVML's counter read in a loop of executions, less the idle power; see docs/collectors.md.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, cast

import numpy as np
import pandas as pd

from warpladder.dashboard.compare.within_run import CaseTimes, noise_of
from warpladder.dashboard.core.cell import Entry, Estimate, with_estimates
from warpladder.dashboard.core.intervals import grouped_median_intervals, paired_ratio
from warpladder.dashboard.core.run_data import STATUS_KEY, RunData

#: The columns that `add_energy` adds.
COLUMNS: Final = (
    *(column for name in ("energy_mj", "per_watt", "energy_ratio") for column in Estimate.names(name)),
    "per_watt_unit",
    "energy_n",
    "energy_verdict",
    "energy_noise",
    "loop_ns",
    "loop_w",
    "idle_w",
)
#: Verdicts of a time, and the same of an energy.
_WORDS: Final = {"faster": "less", "slower": "more"}


def millijoules(energy: pd.DataFrame) -> "pd.Series[float]":
    """The energy of an execution in mJ of each row of table `energy`.

    The energy in the loop a nanosecond, less the idle power, times the nanoseconds of an execution. One watt is 1e-6 mJ a nanosecond.
    """
    above_idle = energy["energy_mj"] / energy["duration_ns"] - energy["idle_w"] * 1e-6
    return cast("pd.Series[float]", above_idle * energy["execution_ns"])


@lru_cache(maxsize=4)
def energies(data: RunData) -> pd.DataFrame:
    """The energy of each cell that was repeated in a loop.

    Returns:
        One row for each cell, with the columns of `STATUS_KEY`, and:

        - `energy_mj`, `energy_mj_low`, `energy_mj_high`, `energy_n`: median energy of an execution, its interval, and the repetitions;
        - `per_watt` and its ends, `per_watt_unit`: the operations of the case for each joule, in GFLOP/s/W; of a case without operations
          its least bytes, in GB/s/W; null where the energy is not above idle;
        - `loop_ns`, `loop_w`: medians of the time of an execution in the loop, and of the power there;
        - `idle_w`: median of the idle power.
    """
    rows = data.energy[data.energy["twin"] == 0]
    rows = rows.assign(mj=millijoules(rows), loop_w=rows["energy_mj"] / rows["duration_ns"] * 1e6)
    groups = rows.groupby(STATUS_KEY, observed=True, sort=False)
    n = groups.size().to_numpy().astype(np.int64)
    ordered = rows["mj"].to_numpy(dtype=float)[np.argsort(groups.ngroup().to_numpy(), kind="stable")]
    ends = grouped_median_intervals(ordered, n)
    names = dict(zip(("median", "low", "high"), Estimate.names("energy_mj"), strict=True))
    frame = groups[["execution_ns", "loop_w", "idle_w"]].median().rename(columns={"execution_ns": "loop_ns"}).reset_index()
    frame = frame.assign(energy_n=n, **{names[end]: figures for end, figures in ends.items()})
    return _with_rates(frame, data)


def _with_rates(frame: pd.DataFrame, data: RunData) -> pd.DataFrame:
    work = frame.merge(data.cases[["workload", "case", "flops", "min_bytes"]], on=["workload", "case"], how="left")
    computes = (work["flops"] > 0).to_numpy()
    amount = np.where(computes, work["flops"], work["min_bytes"]).astype(float)
    # 1e9 operations a joule are 1 GFLOP/s/W.
    ends = {
        column: np.where((amount > 0) & (work[energy] > 0), amount / work[energy].where(work[energy] > 0) * 1e-6, np.nan)
        for column, energy in zip(Estimate.names("per_watt"), ("energy_mj", "energy_mj_high", "energy_mj_low"), strict=True)
    }
    return frame.assign(**ends, per_watt_unit=np.where(computes, "GFLOP/s/W", "GB/s/W"))


def rounds(data: RunData, workload: str, case: str) -> dict[Entry, "pd.Series[float]"]:
    """The energies of an execution in mJ by round, of every entry of a case, also of the baseline's twin."""
    rows = data.energy[(data.energy["workload"] == workload) & (data.energy["case"] == case)]
    by_entry: Any = rows.assign(mj=millijoules(rows)).groupby(["variant", "config", "twin"], observed=True, sort=False)
    return {Entry(variant, config, 1, int(twin)): group.set_index("round")["mj"] for (variant, config, twin), group in by_entry}


def add_energy(frame: pd.DataFrame, data: RunData, workload: str, case: str) -> pd.DataFrame:
    """Add `COLUMNS` to rows of a case that have the columns `variant`, `config`, `baseline` and `baseline_config`.

    `energy_ratio` is the energy over that of the baseline, paired by round. `energy_verdict` is `less`, `more`, `tied` or `unknown`, as
    `within_run.verdict` has them of times; empty without the energy of both. `energy_noise` is how far the two copies of the baseline differ,
    as a factor of at least 1; see `within_run.Noise`.
    """
    own = energies(data)
    own = own[(own["workload"] == workload) & (own["case"] == case)].drop(columns=["workload", "case"])
    joined = frame.merge(own, on=["variant", "config"], how="left")
    by_round = rounds(data, workload, case)
    times = CaseTimes(by_round, noise_of(by_round, frozenset()))
    against = [_against(times, row) for row in frame.to_dict("records")]
    joined = with_estimates(joined, "energy_ratio", [ratio for ratio, _ in against])
    noise = times.noise.on_device if by_round else np.nan
    return joined.assign(energy_verdict=[verdict for _, verdict in against], energy_noise=noise)


def _against(times: CaseTimes, row: Mapping[Any, Any]) -> tuple[Estimate, str]:
    """The energy of a row over that of its baseline, and the verdict."""
    entry, reference = Entry(row["variant"], row["config"], 1, 0), Entry(row["baseline"], row["baseline_config"], 1, 0)
    if entry == reference or not all(each in times.rounds and times.rounds[each].min() > 0 for each in (entry, reference)):
        return Estimate.unknown(), ""
    word = times.judge(entry, reference).verdict
    return paired_ratio(times.rounds[entry], times.rounds[reference]).estimate, _WORDS.get(word, word)


def of_case(data: RunData, workload: str, case: str) -> pd.DataFrame:
    """The cells of a case with energy, the least first, with `COLUMNS`, and the baseline of the loops in `baseline` and `baseline_config`."""
    own = energies(data)
    cells = own[(own["workload"] == workload) & (own["case"] == case)][STATUS_KEY]
    twin = next((entry for entry in rounds(data, workload, case) if entry.twin), Entry("", "", 1, 1))
    frame = add_energy(cells.assign(baseline=twin.variant, baseline_config=twin.config), data, workload, case)
    return frame.sort_values("energy_mj", kind="stable").reset_index(drop=True)


def metered_cases(data: RunData, workload: str) -> tuple[str, ...]:
    """The cases of a workload with energy, in the order of the cases."""
    have = set(data.energy.loc[data.energy["workload"] == workload, "case"])
    return tuple(case for case in data.cases.loc[data.cases["workload"] == workload, "case"] if case in have)
