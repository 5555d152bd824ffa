"""A group of ranks whose collectives take longer than the same collectives of other groups, as over a slow link."""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pandas as pd

from warpladder.dashboard.core.job_graph.graph import Change, JobGraph

#: A group is slow where its collectives take this many times those of the others, and so much longer.
_SLOW: Final = 1.5
_LEAST_NS: Final = 10_000
#: Collectives of a group that have to be matched.
_FEWEST: Final = 3
_KIND: Final = ["group_title", "collective", "bytes", "size"]


@dataclass(frozen=True)
class SlowGroup:
    """A slow group.

    Attributes:
        ranks: of the group, as far as they have profiles.
        own_ns, usual_ns: a collective's time without waiting, in the group and in the others; of the collectives that cost the most.
        others: how many groups it is compared with.
        level: the change that makes it like the others.
    """

    ranks: tuple[int, ...]
    own_ns: float
    usual_ns: float
    others: int
    level: Change


def slow_group(graph: JobGraph) -> SlowGroup | None:
    """The group that loses the most time against groups with the same collectives; None where none is slow."""
    pieces = graph.pieces
    talks = pieces["match"].notna() & pieces["sends_to"].isna() & pieces["receives_from"].isna()
    if not talks.any():
        return None
    rows = pieces.loc[talks, ["match", "rank", "group_ranks", "group_title", "collective", "bytes", "transfer_ns"]]
    rows = rows.assign(size=rows.groupby("match")["rank"].transform("size"), place=np.flatnonzero(talks))
    rows = rows.fillna({"group_title": "", "bytes": -1})
    each = rows.groupby("match").agg({**dict.fromkeys(["group_ranks", *_KIND], "first"), "transfer_ns": "median"})
    of_groups = each.groupby([*_KIND, "group_ranks"])["transfer_ns"]
    times = of_groups.quantile(np.array([0.25, 0.5, 0.75])).unstack().set_axis(["low_ns", "own_ns", "high_ns"], axis=1)
    times = _slowest(times.assign(count=of_groups.size()).reset_index())
    if times.empty:
        return None
    own, usual, others = (times[name].iloc[0] for name in ("own_ns", "usual_ns", "others"))
    of_group = rows.merge(times[[*_KIND, "group_ranks"]].head(1), on=[*_KIND, "group_ranks"])
    transfer = np.ones(len(pieces))
    transfer[of_group["place"]] = usual / own
    ranks = tuple(sorted({int(rank) for rank in of_group["rank"]}))
    return SlowGroup(ranks, float(own), float(usual), int(others), replace(Change.of(graph), transfer=transfer))


def _slowest(times: pd.DataFrame) -> pd.DataFrame:
    """The slow groups, the one that loses the most time first, with `usual_ns` and the number of `others`.

    Args:
        times: of each kind of collectives and group: `low_ns`, `own_ns`, `high_ns` (quartiles), and their `count`.
    """
    times = times[times["count"] >= _FEWEST].reset_index(drop=True)
    kind = times.groupby(_KIND).ngroup()
    others = [times[(kind == own) & (times.index != place)] for place, own in enumerate(kind)]
    times = times.assign(usual_ns=[each["own_ns"].median() for each in others], others=[len(each) for each in others])
    most = np.array([each["high_ns"].max() for each in others], np.float64)
    slow = times["low_ns"] > np.maximum(_SLOW * most, most + _LEAST_NS)  # never where there is no other
    lost = times["count"] * (times["own_ns"] - times["usual_ns"])
    return times[slow].loc[lost[slow].sort_values(ascending=False).index]


def sentence(slow: SlowGroup, own: str, usual: str, ranks: str) -> str:
    """`the group of ranks 4, 5, 6 and 7 is slow: its collectives take 181 µs without waiting, those of the other group 31.1 µs`."""
    which = "the other group" if slow.others == 1 else f"the {slow.others} other groups"
    return f"the group of {ranks} is slow: its collectives take {own} without waiting, those of {which} {usual}"
