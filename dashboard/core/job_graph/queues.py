"""Collectives that a rank begins while it computes on, and that queue behind one that waits for a late rank.

Where a rank comes late, the others compute up to the end of what they can, while their collectives wait one behind the other. Their traces
do not tell when each collective would have begun without that. The rank that came last tells: its own work lies between its arrivals.
"""

from typing import NamedTuple

import numpy as np
import pandas as pd

from warpladder.data.arrays import Bools, Int64s

#: A collective begins within this time of the end of the one that it queued behind, and nothing else happens meanwhile.
_AT_ONCE_NS = 10_000
_WORK = ["compute_ns", "host_ns", "other_ns"]


class Queues(NamedTuple):
    """The pieces as they would be without waiting.

    Attributes:
        pieces: with the work of each queue between its collectives as on the ranks that came last.
        queued: pieces with a collective that the next one of the rank queues behind: the rank waits for the last of them only.
    """

    pieces: pd.DataFrame
    queued: Int64s


def without_queues(pieces: pd.DataFrame, blocks: Bools) -> Queues:
    """Find the queues of all ranks.

    Args:
        pieces: of the graph.
        blocks: pieces in which the rank waits for its collective.
    """
    local = pieces[_WORK].sum(axis=1).to_numpy(np.float64)
    after = np.clip(pieces["after_ns"].fillna(0).to_numpy(np.float64), 0, local)
    chain = _chains(pieces, blocks, local - after, after)
    last = pieces.groupby("match")["begin_ns"].idxmax()
    place = np.flatnonzero(chain >= 0)
    late = last.reindex(pieces["match"].to_numpy()[place]).to_numpy(np.int64)
    of_late = pd.DataFrame({"chain": chain[place], "work": (local - after)[late], "own": late == place})
    sums = of_late.groupby("chain").agg(work=("work", "sum"), own=("own", "any"))
    kept = of_late["chain"].isin(sums.index[(sums["work"] > 0) & ~sums["own"]]).to_numpy()
    place, of_late = place[kept], of_late[kept]
    if not len(place):
        return Queues(pieces, np.empty(0, np.int64))
    share = (of_late["work"] / of_late["chain"].map(sums["work"])).to_numpy()
    stays = (after / np.maximum(local, 1))[place]
    moved = pieces[_WORK].astype(np.float64)
    own = moved.to_numpy()[place]
    whole = pd.DataFrame(own * (1 - stays)[:, None]).groupby(of_late["chain"].to_numpy()).transform("sum").to_numpy()
    moved.iloc[place] = whole * share[:, None] + own * stays[:, None]
    ends = ~of_late["chain"].duplicated(keep="last").to_numpy()
    return Queues(pieces.assign(**{name: moved[name] for name in _WORK}), place[~ends])


def _chains(pieces: pd.DataFrame, blocks: Bools, within: Int64s, after: Int64s) -> Int64s:
    """A number for the queue of each piece; -1 where it is of none."""
    talks = blocks & (pieces["match"].notna() & pieces["sends_to"].isna() & pieces["receives_from"].isna()).to_numpy()
    same = (pieces[["rank", "iteration"]].shift(-1) == pieces[["rank", "iteration"]]).all(axis=1).to_numpy()
    begin, end = pieces["begin_ns"].to_numpy(np.float64), (pieces["begin_ns"] + pieces["ends_ns"]).to_numpy(np.float64)
    at_once = np.abs(np.append(begin[1:], np.inf) - end) <= _AT_ONCE_NS
    idle = np.append(within[1:] <= _AT_ONCE_NS, False)
    follows = talks & np.append(talks[1:], False) & same & at_once & idle & (after <= _AT_ONCE_NS)
    member = follows | np.append(False, follows[:-1])
    number = np.cumsum(member & ~np.append(False, follows[:-1]))
    return np.where(member, number, -1)
