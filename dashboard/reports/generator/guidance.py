"""What the report says on how many GPUs to take for how many images, and whether its finding holds here."""

from dataclasses import dataclass
from typing import Final

import pandas as pd

from warpladder.dashboard.core.compare import verdict
from warpladder.dashboard.core.estimate import Estimate
from warpladder.dashboard.reports.generator import query as generator

#: S. Yi, SHPC 2021 Fall Term Project Report, section 4: GPUs a node, on two nodes, by the images from which they are advised.
_ADVISED: Final = ((1001, 4), (200, 2), (0, 1))


@dataclass(frozen=True)
class Finding:
    """Whether fewer GPUs win where the work is small: `holds`, `refuted`, or `open` where an interval holds 1."""

    case: str
    ranks: int
    speedup: Estimate
    verdict: str


def advised(images: int) -> int:
    """GPUs a node that the report advises: 1 below 200 images, 2 from 200 to 1,000, 4 beyond."""
    return next(gpus for least, gpus in _ADVISED if images >= least)


def table_4() -> pd.DataFrame:
    """The report's times by images and GPUs a node, of which there are two.

    Returns:
        One row a printed number: `images`, `per_node`, `seconds`, `over_best` (over the least of its images), `best`, `advised`. It prints no
        spread, so that no tie can be told.
    """
    frame = generator.published()
    frame["per_node"] = frame["variant"].str.extract(r"(\d+)", expand=False).astype(int)
    frame["over_best"] = frame["seconds"] / frame.groupby("images")["seconds"].transform("min")
    frame["best"] = frame["over_best"] == 1.0
    frame["advised"] = frame["per_node"] == frame["images"].map(advised)
    return frame[["images", "per_node", "seconds", "over_best", "best", "advised"]]


def images_of(case: str) -> int | None:
    """Images of a case of the report's network; None for any other case."""
    name, _, number = case.partition("=")
    return int(number) if name == "images" and number.isdecimal() else None


def finding(frame: pd.DataFrame) -> Finding | None:
    """The report's finding, that small numbers of images are faster on fewer GPUs, at the smallest case here.

    Args:
        frame: `scaling.scaling` of one variant.

    Returns:
        The number of ranks that is the slowest against one there, or where one is faster the fastest; None of another workload, where
        one rank has no samples, and of device times, which have none of what ranks wait for, or of another network or the host.
    """
    frame = frame[(frame["workload"] == generator.WORKLOAD) & (frame["scope"] != "device") & (frame["kind"] != "host")]
    frame = frame[frame["case"].map(images_of).notna()]
    known = frame[(frame["ranks"] > 1) & frame["speedup"].notna()]
    if known.empty:
        return None
    smallest = known[known["size_rank"] == known["size_rank"].min()]
    verdicts = [verdict(low, high) for low, high in smallest[["speedup_low", "speedup_high"]].to_numpy()]
    words = "refuted" if "faster" in verdicts else "holds" if set(verdicts) == {"slower"} else "open"
    row = smallest.loc[smallest["speedup"].idxmax() if words == "refuted" else smallest["speedup"].idxmin()]
    return Finding(str(row["case"]), int(row["ranks"]), Estimate.of(row, "speedup"), words)
