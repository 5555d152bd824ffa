"""Every variant over the size axis, and who wins where."""

from typing import Any, Final

import pandas as pd

from dashboard.core.axes import View, charted_cases
from dashboard.core.cells import best_config, cells
from dashboard.core.compare import noise_of, verdict
from dashboard.core.floors import add_floors, ceiling
from dashboard.core.intervals import paired_ratio
from dashboard.core.precision import compared, precisions
from dashboard.core.run_data import Copy, RunData
from dashboard.views.ladder.query import with_speedups

_BEST_COLUMNS: Final = [
    "workload", "case", "series", "size", "size_rank", "compared_in", "variant", "precision", "config", "title", "median_ns", "low_ns", "high_ns",
    "runner_up", "margin", "margin_low", "margin_high", "n", "tied",
]  # fmt: skip


def sizes(data: RunData, workload: str, view: View, series: str = "") -> pd.DataFrame:
    """Each variant's fastest config at each size of one series.

    Args:
        series: one of `axes.series`, e.g. `perm=210`.

    Returns:
        Rows of `cells` by variant and size_rank with, besides, `size` (e.g. `n=512`), `size_value` (the number of it where the
        axis is one number, else size_rank) and `speedup`, `speedup_low`, `speedup_high`, `verdict` against the baseline. Specimens
        are left out: what they show is an error, not a time.
    """
    best = _best_of_charted(data, workload, view)
    best = best[(best["series"] == series) & (best["role"] != "specimen")]
    frame = with_speedups(data, workload, view, best.reset_index(drop=True))
    place = {name: number for number, name in enumerate(data.variants.loc[data.variants["workload"] == workload, "variant"])}
    return (
        frame.assign(place=frame["variant"].map(place))
        .sort_values(["place", "size_rank"], kind="stable")
        .drop(columns="place")
        .reset_index(drop=True)
    )


def regions(data: RunData, workload: str, series: str = "") -> pd.DataFrame:
    """Where a size is not limited by memory bandwidth or arithmetic.

    Returns:
        One row a size: `case`, `size`, `size_value`, `size_rank`, `min_bytes`, `floor_ns` (of fp32 on one GPU), `fits_l2`
        (min_bytes known and within the GPU's L2) and `launch_bound` (the measured launch latency exceeds the floor); both False where the
        run has no GPU.
    """
    cases = charted_cases(data, workload)
    cases = cases[cases["series"] == series].drop_duplicates("size").reset_index(drop=True)
    floors = add_floors(cases.assign(kind="cuda", precision="fp32", gpus=1, scope="device"), data)
    l2_bytes = data.info["l2_bytes"] or 0
    launch_ns = 1000 * ceiling(data, "launch", on_gpu=True)
    columns = ["case", "size", "size_value", "size_rank", "min_bytes", "floor_ns"]
    return floors[columns].assign(fits_l2=floors["min_bytes"].between(1, l2_bytes), launch_bound=floors["floor_ns"] < launch_ns)


def best_per_size(data: RunData, workload: str, view: View, roles: tuple[str, ...] = ("rung", "peer", "host")) -> pd.DataFrame:
    """The winner of every charted case in every precision that a rung has, peers beside those that they are compared with.

    Returns:
        One row a case and precision: `workload`, `case`, `series`, `size`, `size_rank`, `compared_in` (see `precision.precisions`),
        `variant` and its `precision` (that of a peer can be another), `config`, `title`, `median_ns`, `low_ns`, `high_ns`, `runner_up` (null
        where there is no other variant), `margin` (runner-up's time over the winner's), `margin_low`, `margin_high`, `n` and `tied`
        (the margin's interval holds 1, or lies within the noise).
    """
    best = _best_of_charted(data, workload, view)
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


def _winner(data: RunData, view: View, ranked: pd.DataFrame) -> dict[str, Any]:
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


def _best_of_charted(data: RunData, workload: str, view: View) -> pd.DataFrame:
    every = cells(data)
    chosen = (every["workload"] == workload) & (every["scope"] == view.scope) & (every["cache"] == view.cache)
    cases = charted_cases(data, workload)[["case", "size", "series", "size_value"]]
    return best_config(every[chosen]).merge(cases, on="case", how="inner")


def _copy(row: "pd.Series[Any]") -> Copy:
    return Copy(str(row["variant"]), str(row["config"]), int(str(row["gpus"])), 0)
