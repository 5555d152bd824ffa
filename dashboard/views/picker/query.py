"""The medians of the variants that a pattern picks, and the cells that are not ranked."""

import pandas as pd

from warpladder.dashboard.core.intervals import grouped_median_intervals
from warpladder.dashboard.core.run_data import RunData
from warpladder.data import naming
from warpladder.data.naming import CellName


def preview(data: RunData) -> pd.DataFrame:
    """The medians of the picked variants, in the order of variants and cases.

    Args:
        data: the result of `picked.pick`.

    Returns:
        One row for each cell: `workload`, `variant`, `config`, `case`, `n`, and the medians `device_ns` (null where the ranges
        launched nothing) and `operation_ns`.
    """
    groups = data.grouped
    median = grouped_median_intervals(groups.durations, groups.keys["n"].to_numpy())["median"]
    cell = list(CellName._fields)
    scopes = groups.keys.assign(median=median).pivot_table(index=cell, columns="scope", values="median", sort=False)
    counts = groups.keys.groupby(cell, sort=False)["n"].max()
    medians = scopes.reindex(columns=list(naming.SCOPES)).add_suffix("_ns")
    frame = pd.concat([counts, medians], axis="columns").rename_axis(cell)
    places = data.cases.set_index(["workload", "case"])["size_rank"]
    frame = frame.reset_index()
    frame["place"] = places.reindex(pd.MultiIndex.from_frame(frame[["workload", "case"]])).to_numpy()
    order = ["workload", "place", "variant", "config"]
    return frame.sort_values(order, ignore_index=True).drop(columns="place")


def not_ranked(data: RunData) -> pd.DataFrame:
    """The picked cells that are not ranked, because most of their device time is attributed to no range.

    Args:
        data: the result of `picked.pick`.

    Returns:
        `variant`, `case` and `detail`.
    """
    skipped = data.results["status"] == "skipped"
    return data.results.loc[skipped, ["variant", "case", "detail"]].reset_index(drop=True)
