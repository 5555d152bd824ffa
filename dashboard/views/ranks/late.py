"""Why a rank is late."""

from typing import Final

import pandas as pd

from warpladder.dashboard.core.run_data import RunData
from warpladder.data.words import first_of, named_ranks

#: Cause of a late rank -> its words.
CAUSES: Final = {
    "compute": "kernels take longer",
    "work": "other kernels, or more of them",
    "host": "the host launches work later",
    "copies": "copies take longer",
    "clock": "nearly all kernels are slower by about the same factor, as at a lower clock",
    "": "not known, since none of its times is longer than the others' by a quarter of their wait",
}
#: Those that another kind of GPU explains.
_OF_KERNELS: Final = {"compute", "work", "clock"}
_DEVICES_NAMED: Final = 3


def ranking(data: RunData) -> pd.DataFrame:
    """The ranks with matched collectives, the latest first: by how much longer others wait than they do, then by their own wait.

    Returns:
        `rank`, `late`, `cause` and `device_name`. No rows where no wait is known.
    """
    ranks = data.job.frame("ranks", "rank", "late", "cause", "device_name", "lateness_ns", "wait_ns")
    order = ["late", "lateness_ns", "wait_ns", "rank"]
    ranks = ranks[ranks["wait_ns"].notna()].sort_values(order, ascending=[False, False, True, True], ignore_index=True)
    return ranks[["rank", "late", "cause", "device_name"]]


def cause_of(ranks: pd.DataFrame) -> str:
    """Why the late ranks of `ranking` are late, in words; empty where none is late or their causes differ."""
    causes = {str(cause) for cause in ranks.loc[ranks["late"].astype(bool), "cause"]}
    return other_gpu(ranks) or (CAUSES[causes.pop()] if len(causes) == 1 else "")


def other_gpu(ranks: pd.DataFrame) -> str:
    """`another GPU: rank 2 has NVIDIA A100, the others have NVIDIA H100`, where the kernels of late ranks of `ranking` take longer on another kind of GPU;
    else empty."""
    late = ranks["late"].astype(bool)
    own, others = (sorted({str(name) for name in ranks.loc[chosen, "device_name"]}) for chosen in (late, ~late))
    if not own or not others or "" in own + others or not set(own).isdisjoint(others):
        return ""
    if not set(ranks.loc[late, "cause"]) <= _OF_KERNELS:
        return ""
    numbers = sorted(ranks.loc[late, "rank"].tolist())
    has = f"{named_ranks(numbers)} {'has' if len(numbers) == 1 else 'have'}"
    return f"another GPU: {has} {first_of(own, _DEVICES_NAMED)}, the others have {first_of(others, _DEVICES_NAMED)}"
