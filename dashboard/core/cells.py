"""The cells of a run: the median of each with its interval, its rates, and its distance from the floor."""

from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from warpladder.dashboard.core import clock
from warpladder.dashboard.core.axes import charted_cases
from warpladder.dashboard.core.floors import add_floors, measured
from warpladder.dashboard.core.intervals import grouped_median_intervals, interval_kind
from warpladder.dashboard.core.run_data import VERDICT_CELL, RunData
from warpladder.dashboard.core.timing import Timing
from warpladder.dashboard.core.trusted import fastest_trusted
from warpladder.data import limits
from warpladder.data.names import PHASE, Source

_OF_VARIANT: Final = ["role", "kind", "precision", "title", "rung", "transfer"]
_OF_CASE: Final = ["size_rank", "params", "flops", "min_bytes", "h2d_bytes", "d2h_bytes"]


def cells(data: RunData) -> pd.DataFrame:
    """Every cell of a run, also those without samples.

    Returns:
        One row for each (workload, variant, config, case, gpus, cache, scope), in the order of the variants and cases. A cell
        without samples failed, was skipped, or was only verified. It has one row, with null in `gpus`, `cache`, `scope` and all
        figures. The columns besides the key are:

        - `n`: number of samples, without those of the baseline's second copy;
        - `median_ns`, `low_ns`, `high_ns`, `interval_kind`: their median, the ends of its interval with the error of the clock
          (see `clock`), and the kind of the interval;
        - `role`, `kind`, `precision`, `title`, `rung`, `transfer`: columns of the variant;
        - `size_rank`, `params`, `flops`, `min_bytes`, `h2d_bytes`, `d2h_bytes`: columns of the case;
        - `gb_per_s`, `gflop_per_s`: `min_bytes` and `flops` over the median; null for a phase, and where the count is 0;
        - `floor_ns`, `floor_bound`, `floor_ceiling`: see `floors.add_floors`;
        - `percent_of_floor`: the floor over the median, in percent;
        - `_low` and `_high` of `gb_per_s`, `gflop_per_s` and `percent_of_floor`: the ends of their intervals;
        - `status`, `detail`, `rel_l2_error`: the verdict, and the error against float64; null where it was not verified;
        - `flags`: a tuple with the sources of the warnings and errors about the cell, and `above_ceiling` where a time of it is below
          a floor by more than the margin of `data.limits`.

        The frame is the caller's own copy. It is computed once for each run.
    """
    # The copy shares the memory of the cached frame until either is written to (pandas' copy on write).
    return _cells(data).copy()


@lru_cache(maxsize=4)
def _cells(data: RunData) -> pd.DataFrame:
    groups = data.grouped
    intervals = grouped_median_intervals(groups.durations, groups.keys["n"].to_numpy())
    timed = groups.keys.assign(**{f"{end}_ns": figures for end, figures in intervals.items()})
    single = [clock.is_single(*each) for each in zip(timed["scope"], timed["cache"], strict=True)]
    error_ns = clock.error_ns(data.info["collector"], measured(data))
    low, high = clock.widened(timed["low_ns"].to_numpy(), timed["high_ns"].to_numpy(), error_ns, np.array(single, dtype=bool))
    timed = timed.assign(low_ns=low, high_ns=high)
    timed = timed[(timed["twin"] == 0) & ~_hidden(timed, data)].drop(columns="twin")
    frame = timed.merge(data.results[[*VERDICT_CELL, "status", "detail", "rel_l2_error"]], on=VERDICT_CELL, how="outer")
    frame["status"] = frame["status"].fillna("ok")
    frame["detail"] = frame["detail"].fillna("")
    frame["rel_l2_error"] = frame["rel_l2_error"].astype(float)
    frame["n"] = frame["n"].fillna(0).astype(int)
    frame["gpus"] = frame["gpus"].astype("Int64")
    frame["interval_kind"] = [interval_kind(n) if n else "" for n in frame["n"]]
    variants = data.variants[["workload", "variant", *_OF_VARIANT]].reset_index(names="variant_place")
    cases = data.cases[["workload", "case", *_OF_CASE]].reset_index(names="case_place")
    frame = frame.merge(variants, on=["workload", "variant"], how="left").merge(cases, on=["workload", "case"], how="left")
    frame = add_floors(frame, data)
    frame = _add_rates(frame)
    frame["flags"] = _flags(frame, data)
    places = ["variant_place", "config", "case_place", "gpus", "scope", "cache"]
    return frame.sort_values(places, kind="stable").drop(columns=["variant_place", "case_place"]).reset_index(drop=True)


def _hidden(frame: pd.DataFrame, data: RunData) -> npt.NDArray[np.bool_]:
    """Whether each row is of a variant that `data` hides."""
    if not data.hidden:
        return np.zeros(len(frame), dtype=bool)
    return np.asarray(pd.MultiIndex.from_frame(frame[["workload", "variant"]]).isin(data.hidden))


def best_config(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows of `cells` of each variant's fastest config, for each (workload, variant, case, gpus, cache, scope).

    A config that may be called best goes before others; see `trusted.fastest_trusted` for the further columns. Cells without samples
    and cells with a wrong result are left out.
    """
    usable = frame[(frame["n"] > 0) & (frame["status"] == "ok")]
    return fastest_trusted(usable, ["workload", "variant", "case", "gpus", "cache", "scope"]).reset_index(drop=True)


def best_of_charted(data: RunData, workload: str, timing: Timing) -> pd.DataFrame:
    """The rows of `best_config` of the charted cases in one timing, with the columns `size`, `series` and `size_value`.

    The frame is the caller's own copy. It is computed once for the last workloads and timings.
    """
    return _best_of_charted(data, workload, timing).copy()


@lru_cache(maxsize=16)
def _best_of_charted(data: RunData, workload: str, timing: Timing) -> pd.DataFrame:
    every = _cells(data)
    chosen = (every["workload"] == workload) & (every["scope"] == timing.scope) & (every["cache"] == timing.cache)
    cases = charted_cases(data, workload)[["case", "size", "series", "size_value"]]
    return best_config(every[chosen]).merge(cases, on="case", how="inner")


def select(frame: pd.DataFrame, workload: str, case: str, scope: str, cache: str) -> pd.DataFrame:
    """The rows of `cells` of one case in one timing."""
    chosen = (frame["workload"] == workload) & (frame["case"] == case)
    return frame[chosen & (frame["scope"] == scope) & (frame["cache"] == cache)].reset_index(drop=True)


def _add_rates(frame: pd.DataFrame) -> pd.DataFrame:
    phase = frame["scope"].str.startswith(PHASE).fillna(False).astype(bool)
    rates = {}
    for name, amount, scale in (
        ("gb_per_s", frame["min_bytes"], 1.0),
        ("gflop_per_s", frame["flops"], 1.0),
        ("percent_of_floor", frame["floor_ns"], 100.0),
    ):
        counted = pd.to_numeric(amount).astype(float).where(~phase & (amount > 0)) * scale
        for suffix, time in (("", "median_ns"), ("_low", "high_ns"), ("_high", "low_ns")):
            # One byte a nanosecond is one GB/s, and one FLOP a nanosecond is one GFLOP/s.
            rates[name + suffix] = counted / frame[time].replace(0, np.nan)
    return frame.assign(**rates)


def _flags(frame: pd.DataFrame, data: RunData) -> list[tuple[str, ...]]:
    """The sources of the warnings and errors about each cell, and what the limits of today find in a run of any age.

    A null in a diagnostic stands for any value. A diagnostic without a variant and without a case is about the run, not its
    cells.
    """
    diagnostics = data.diagnostics
    flags: list[list[str]] = [[] for _ in range(len(frame))]
    serious = diagnostics[diagnostics["severity"].isin(["warning", "error"])]
    for finding in serious[serious["variant"].notna() | serious["case"].notna()].to_dict("records"):
        about = np.ones(len(frame), dtype=bool)
        for column in VERDICT_CELL:
            if pd.notna(finding[column]):
                about &= (frame[column] == finding[column]).to_numpy()
        for row in np.flatnonzero(about):
            if finding["source"] not in flags[row]:
                flags[row].append(str(finding["source"]))
    beyond = np.any(list(limits.beyond(frame, measured(data), data.info["l2_bytes"] or 0).values()), axis=0)
    if beyond.any():
        cells_beyond = pd.MultiIndex.from_frame(frame.loc[beyond, VERDICT_CELL])
        for row in np.flatnonzero(pd.MultiIndex.from_frame(frame[VERDICT_CELL]).isin(cells_beyond)):
            if Source.ABOVE_CEILING not in flags[row]:
                flags[row].append(Source.ABOVE_CEILING)
    return [tuple(sources) for sources in flags]
