"""How long each rank waits for the others, how often it came last, and how sure that is."""

from typing import Final

import pandas as pd

from warpladder.dashboard.core.lateness import Lateness
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
        `rank`, `late`, `cause`, `lateness_ns` (null in runs before it), `wait_ns`, `wait_uncertainty_ns` (a standard deviation), `last`, `collectives`, `last_percent` (of the
        collectives), the clock: `offset_ns`, `drift_ppm`, `uncertainty_ns`, and `device_name`. No rows where no wait is known.
    """
    times = ("lateness_ns", "wait_ns", "wait_uncertainty_ns", "last", "collectives", "offset_ns", "drift_ppm", "uncertainty_ns")
    ranks = data.job.frame("ranks", "rank", "late", "cause", "device_name", *times)
    order = ["late", "lateness_ns", "wait_ns", "rank"]
    ranks = ranks[ranks["wait_ns"].notna()].sort_values(order, ascending=[False, False, True, True], ignore_index=True)
    ranks["last_percent"] = 100 * ranks["last"].astype(float) / ranks["collectives"].where(ranks["collectives"] > 0)
    columns = ["rank", "late", "cause", "lateness_ns", "wait_ns", "wait_uncertainty_ns", "last", "collectives", "last_percent"]
    return ranks[[*columns, "offset_ns", "drift_ppm", "uncertainty_ns", "device_name"]]


def drawn(ranks: pd.DataFrame, most: int) -> pd.DataFrame:
    """The rows of `ranking` that are drawn: all of up to `most`, else the first ones and the one in the middle."""
    if len(ranks) <= most:
        return ranks
    return pd.concat([ranks[: most - 1], ranks.iloc[[len(ranks) // 2]]], ignore_index=True)


def title(found: Lateness, ranks: pd.DataFrame) -> str:
    """`Rank 13 is late: … longer, 1.20 s of it exposed. Cause: kernels take longer`, `No rank is late`, or why none can be told."""
    sentence, why = found.sentence[0].upper() + found.sentence[1:], cause_of(ranks)
    return f"{sentence}. Cause: {why}" if why else ": ".join(filter(None, (sentence, "; ".join(found.reasons))))


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
