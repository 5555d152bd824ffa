"""Who wins each charted case, in every precision that a rung has."""

from functools import lru_cache
from typing import Any, Final

import pandas as pd

from warpladder.dashboard.core.axes import Timing, charted_cases
from warpladder.dashboard.core.cells import best_config, cells
from warpladder.dashboard.core.compare import noise_of, verdict
from warpladder.dashboard.core.intervals import paired_ratio
from warpladder.dashboard.core.precision import compared, precisions
from warpladder.dashboard.core.run_data import Copy, RunData

_BEST_COLUMNS: Final = [
    "workload", "case", "series", "size", "size_rank", "compared_in", "variant", "precision", "config", "title", "median_ns", "low_ns", "high_ns",
    "runner_up", "margin", "margin_low", "margin_high", "n", "tied",
]  # fmt: skip
_ROLES: Final = ("rung", "peer", "host")


def at_largest(data: RunData, workload: str, view: Timing) -> pd.DataFrame:
    """The rows of `best_per_size` of the largest size."""
    every = best_per_size(data, workload, view)
    found: pd.DataFrame = every[every["size_rank"] == every["size_rank"].max()]
    return found


def best_per_size(data: RunData, workload: str, view: Timing, roles: tuple[str, ...] = _ROLES) -> pd.DataFrame:
    """The winner of every charted case in every precision that a rung has, peers beside those that they are compared with.

    Returns:
        One row a case and precision: `workload`, `case`, `series`, `size`, `size_rank`, `compared_in` (see `precision.precisions`),
        `variant` and its `precision` (that of a peer can be another), `config`, `title`, `median_ns`, `low_ns`, `high_ns`, `runner_up` (null
        where there is no other variant), `margin` (runner-up's time over the winner's), `margin_low`, `margin_high`, `n` and `tied`
        (the margin's interval holds 1, or lies within the noise).
    """
    found: pd.DataFrame = _best_per_size(data, workload, view, roles).copy()
    return found


@lru_cache(maxsize=8)
def _best_per_size(data: RunData, workload: str, view: Timing, roles: tuple[str, ...]) -> pd.DataFrame:
    best = best_of_charted(data, workload, view)
    best = best[best["role"].isin(roles)].sort_values(["size_rank", "median_ns"], kind="stable")
    rows = [
        _winner(data, view, ranked) | {"compared_in": precision}
        for precision in precisions(best)
        for _, ranked in compared(best, precision).groupby("case", sort=False)
    ]
    order = charted_cases(data, workload)["case"].tolist()
    rows.sort(key=lambda row: order.index(row["case"]))
    frame = pd.DataFrame(rows, columns=_BEST_COLUMNS)
    return frame.astype({"margin": float, "margin_low": float, "margin_high": float})


def _winner(data: RunData, view: Timing, ranked: pd.DataFrame) -> dict[str, Any]:
    """The first of the rows of one case, and by how much."""
    winner = ranked.iloc[0]
    row = {column: winner[column] for column in _BEST_COLUMNS if column in winner}
    if len(ranked) == 1:
        return row | {"runner_up": None, "margin": None, "margin_low": None, "margin_high": None, "tied": False}
    second = ranked.iloc[1]
    rounds = data.rounds(str(winner["workload"]), str(winner["case"]), view.scope, view.cache)
    margin = paired_ratio(rounds[_copy(second)], rounds[_copy(winner)])
    noise = noise_of(rounds, data.hosts(str(winner["workload"])))
    band = noise.between(str(winner["variant"]), str(second["variant"]))
    return row | {
        "runner_up": second["variant"], "margin": margin.ratio, "margin_low": margin.low, "margin_high": margin.high,
        "tied": verdict(margin.low, margin.high, band) == "tied",
    }  # fmt: skip


def best_of_charted(data: RunData, workload: str, view: Timing) -> pd.DataFrame:
    every = cells(data)
    chosen = (every["workload"] == workload) & (every["scope"] == view.scope) & (every["cache"] == view.cache)
    cases = charted_cases(data, workload)[["case", "size", "series", "size_value"]]
    return best_config(every[chosen]).merge(cases, on="case", how="inner")


def _copy(row: "pd.Series[Any]") -> Copy:
    return Copy(str(row["variant"]), str(row["config"]), int(str(row["gpus"])), 0)
