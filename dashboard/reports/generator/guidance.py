"""The report's finding that fewer GPUs are faster for few images, and whether it holds on the hardware of a run."""

from dataclasses import dataclass

import pandas as pd

from warpladder.dashboard.core.estimate import Estimate
from warpladder.dashboard.core.noise import verdict
from warpladder.dashboard.core.trusted import is_trusted
from warpladder.dashboard.reports.generator.names import WORKLOAD


@dataclass(frozen=True)
class Finding:
    """Whether fewer GPUs are faster for few images: `holds`, `differs` where some larger number is faster, or `open` where a verdict is `tied` or `unknown`."""

    case: str
    ranks: int
    speedup: Estimate
    verdict: str


def images_of(case: str) -> int | None:
    """The number of images of a case of the report's network; None for any other case."""
    name, _, number = case.partition("=")
    return int(number) if name == "images" and number.isdecimal() else None


def finding(frame: pd.DataFrame) -> Finding | None:
    """The report's finding that few images are faster on fewer GPUs, tested at the run's smallest case.

    Args:
        frame: `views.gpus.query.scaling` of one variant.

    Returns:
        The finding for the number of ranks that is slowest against one rank, or for the fastest number where some number is
        faster than one rank. None for other workloads and networks, for host variants, for device times (they exclude the
        waiting of ranks), and where one rank has no samples.
    """
    frame = frame[(frame["workload"] == WORKLOAD) & (frame["scope"] != "device") & (frame["kind"] != "host")]
    frame = frame[frame["case"].map(images_of).notna()]
    known = frame[(frame["ranks"] > 1) & frame["speedup"].notna()]
    if known.empty:
        return None
    smallest = known[known["size_rank"] == known["size_rank"].min()]
    one = frame[(frame["ranks"] == 1) & (frame["case"] == smallest["case"].iloc[0])]
    believed = is_trusted(one).all() and is_trusted(smallest).all()
    fewest = int(one["n"].min()) if believed else 0
    rows = smallest[["speedup_low", "speedup_high", "n"]].itertuples(index=False, name=None)
    verdicts = [verdict(low, high, min(n, fewest)) for low, high, n in rows]
    words = "differs" if "faster" in verdicts else "holds" if set(verdicts) == {"slower"} else "open"
    row = smallest.loc[smallest["speedup"].idxmax() if words == "differs" else smallest["speedup"].idxmin()]
    return Finding(str(row["case"]), int(row["ranks"]), Estimate.of(row, "speedup"), words)
