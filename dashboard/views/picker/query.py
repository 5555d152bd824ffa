"""What the variants that a pattern picks have measured, and which of them are not ranked."""

import pandas as pd

from warpladder.dashboard.core.intervals import grouped_median_intervals
from warpladder.dashboard.core.run_data import RunData
from warpladder.data import naming
from warpladder.data.naming import CellName


def preview(data: RunData) -> pd.DataFrame:
    """What the picked variants measured, in the order of variants and cases.

    Args:
        data: of `pick`.

    Returns:
        One row a cell: `workload`, `variant`, `config`, `case`, `n`, `device_ns` and `operation_ns` (medians; the first is null where its
        ranges launched nothing).
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
    """Picked cells that are not ranked, as most of their device time is attributed to no range.

    Args:
        data: of `pick`.

    Returns:
        Columns `variant`, `case` and `detail`.
    """
    skipped = data.results["status"] == "skipped"
    return data.results.loc[skipped, ["variant", "case", "detail"]].reset_index(drop=True)
