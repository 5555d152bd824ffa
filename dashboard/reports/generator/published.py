"""The printed numbers of the generator's report: its table 4, and the number of GPUs that it advises."""

from typing import Final

import pandas as pd

from warpladder.dashboard.reports.generator.names import WORKLOAD
from warpladder.data import figures

#: Pairs of a number of images and the GPUs for each of two nodes that section 4 of the report advises from that number on.
_ADVISED: Final = ((1001, 4), (200, 2), (0, 1))


def published() -> pd.DataFrame:
    """The report's table 4, in its order.

    The columns are `variant` (as printed, such as `1 GPU a node`), `images`, `seconds`, `hardware` and `note`.
    """
    rows = figures.read(WORKLOAD)
    rows = rows[(rows["table"] == "4") & (rows["quantity"] == "time")].rename(columns={"value": "seconds"})
    rows["images"] = rows["case"].map(images_in)
    return rows[["variant", "images", "seconds", "hardware", "note"]].reset_index(drop=True)


def advised(images: int) -> int:
    """GPUs for each node that the report advises: 1 below 200 images, 2 from 200 to 1,000, 4 above."""
    return next(gpus for least, gpus in _ADVISED if images >= least)


def table_4() -> pd.DataFrame:
    """The report's times by number of images and by GPUs in each of its two nodes.

    The report prints no spread, so ties cannot be detected.

    Returns:
        One row for each printed number: `images`, `per_node`, `seconds`, `over_best` (time over the least time for as many
        images), `best` and `advised`.
    """
    frame = published()
    frame["per_node"] = frame["variant"].str.extract(r"(\d+)", expand=False).astype(int)
    frame["over_best"] = frame["seconds"] / frame.groupby("images")["seconds"].transform("min")
    frame["best"] = frame["over_best"] == 1.0
    frame["advised"] = frame["per_node"] == frame["images"].map(advised)
    return frame[["images", "per_node", "seconds", "over_best", "best", "advised"]]


def images_in(case: str) -> int:
    axes = dict(axis.split("=", 1) for axis in case.split(","))
    return int(axes["images"])
