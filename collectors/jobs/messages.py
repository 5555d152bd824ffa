"""Matches the messages between two ranks, relates clocks through them, and tells waiting from transfer.

The n-th message from one rank to another in a group and an iteration is the same on both. One call may send and receive several messages, as a
batch of `isend` and `irecv` does: it ends when all of them have.

**Waiting.** A call waits until the last rank that it receives from, or sends to, has begun its own. The rest of its time is transfer. NCCL may
take the bytes of a message into its buffers. A call that sends and ends before the receiver has begun does not wait for that, but for room:
what it takes longer than the shortest call of its direction and size is waiting.

**Clocks.** A message ends on the receiver after it began on the sender. So each message bounds how far the receiver's clock is behind, and
messages in both directions bound it from both sides. The middle of the bounds is taken, and a half of their distance is the uncertainty. Ranks
of one host have one clock if the bounds permit it, and where no message tells.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa

from warpladder.collectors.jobs.clocks import RANKS_NAMED, Clocks, Notes, Waits
from warpladder.data.arrays import Bools, Floats, Int64s, coded, integers, least_of_groups, occurrence, ordered
from warpladder.data.job_tables import peers_of
from warpladder.data.words import first_of, named_ranks

#: Ends and starts of kernels on one clock are this exact.
_SAME_CLOCK_NS: Final = 2_000.0
_PAIRS_NAMED: Final = 4


@dataclass(frozen=True)
class Messages:
    """Matched messages.

    Attributes:
        sent, received: the rows of each at its source and at its destination.
        notes: severity and text of each finding.
    """

    sent: Int64s
    received: Int64s
    notes: Notes


def is_message(collectives: pa.Table) -> Bools:
    """Which rows send or receive messages whose other rank is known."""
    known: Bools = np.logical_or(*(collectives[name].is_valid().to_numpy() for name in ("sends_to", "receives_from")))
    return known


def _parts(collectives: pa.Table, column: str) -> tuple[Int64s, Int64s]:
    """The rows of calls that send or receive, in the order of their starts, once for each rank of the other side, and these ranks."""
    code, texts = coded(collectives[column].fill_null(""))
    lists = [peers_of(text) for text in texts]
    lengths, peers = (
        np.array([len(each) for each in lists], np.int64),
        np.array([rank for each in lists for rank in each], np.int64),
    )
    count = lengths[code]
    row = np.repeat(np.arange(len(code)), count)
    first = (np.cumsum(lengths) - lengths)[code] - (np.cumsum(count) - count)
    peer = peers[first[row] + np.arange(len(row))]
    order = np.argsort(integers(collectives["start_ns"])[row], kind="stable")
    return row[order], peer[order]


def match(collectives: pa.Table) -> Messages:
    """Match the messages of rows of `job_tables.COLLECTIVES`, in any order."""
    rank, iteration = integers(collectives["rank"]), integers(collectives["iteration"], -1)
    group = ordered(coded(collectives["group"])[0], coded(collectives["group_ranks"])[0]) if len(rank) else rank
    sides = []
    for column, sends in (("sends_to", True), ("receives_from", False)):
        row, peer = _parts(collectives, column)
        keys = (rank[row], peer) if sends else (peer, rank[row])
        sides.append((row, np.stack((*keys, group[row], iteration[row]))))
    (sent, sent_keys), (received, received_keys) = sides
    if not len(sent) or not len(received):
        return Messages(np.empty(0, np.int64), np.empty(0, np.int64), _unmatched(sent_keys, received_keys))
    code = ordered(*np.concatenate((sent_keys, received_keys), axis=1))
    of_sent, of_received = code[: len(sent)], code[len(sent) :]
    codes = int(code.max()) + 1
    equal = np.bincount(of_sent, minlength=codes) == np.bincount(of_received, minlength=codes)
    kept_sent, kept_received = equal[of_sent], equal[of_received]
    notes = _unmatched(sent_keys[:, ~kept_sent], received_keys[:, ~kept_received])
    order_sent, order_received = (
        np.lexsort((occurrence(of[kept]), of[kept])) if kept.any() else np.empty(0, np.int64)
        for of, kept in ((of_sent, kept_sent), (of_received, kept_received))
    )
    return Messages(sent[kept_sent][order_sent], received[kept_received][order_received], notes)


def _unmatched(sent: Int64s, received: Int64s) -> Notes:
    """A warning about messages whose number differs between sender and receiver. Columns are source, destination, group, iteration."""
    count = sent.shape[1] + received.shape[1]
    if not count:
        return []
    pairs = np.unique(np.concatenate((sent, received), axis=1)[:2], axis=1).T.tolist()
    named = first_of((f"{source} to {destination}" for source, destination in pairs), _PAIRS_NAMED)
    text = (
        f"{count} calls that send or receive were not matched, from rank {named}: their number differs between sender and "
        "receiver. Profile the same steps on all ranks."
    )
    return [("warning", text)]


def join(clocks: Clocks, collectives: pa.Table, found: Messages, host_of: Mapping[int, int]) -> Clocks:
    """Relate clocks that no collective relates.

    Args:
        clocks: fitted to the collectives; those of ranks without any, or all, may be unknown.
        collectives: rows of all ranks.
        host_of: the host of ranks that are known to share one.
    """
    every = np.unique(integers(collectives["rank"]))
    clocks = _of_all(clocks, every, collectives)
    rank, start, end = (integers(collectives[name]) for name in ("rank", "start_ns", "end_ns"))
    begun, ended = (
        clocks.aligned(rank[found.sent], start[found.sent]),
        clocks.aligned(rank[found.received], end[found.received]),
    )
    source, destination = (np.searchsorted(clocks.ranks, rank[rows]) for rows in (found.sent, found.received))
    hosts = np.array([host_of.get(each, -1 - each) for each in clocks.ranks.tolist()], np.int64)
    edges = _edges(clocks.component, source, destination, (ended - begun).astype(np.float64), hosts)
    offset, deviation, component = clocks.offset_ns.copy(), clocks.uncertainty_ns.copy(), clocks.component.copy()
    shift = {int(each): (0.0, 0.0) for each in np.unique(component)}
    for doubt, one, other, ahead in sorted(edges):
        here, there = (int(component[np.flatnonzero(clocks.component == each)[0]]) for each in (one, other))
        if here == there:
            continue
        moved = shift[one][0] + ahead - shift[other][0]
        for each in np.unique(clocks.component[component == there]).tolist():
            shift[each] = (shift[each][0] + moved, float(np.hypot(shift[each][1], doubt)))
        component[component == there] = here
    for each, (ahead, doubt) in shift.items():
        members = clocks.component == each
        related = component == component[np.flatnonzero(members)[0]]
        if related.sum() > members.sum():
            offset[members] += ahead
            deviation[members] = np.hypot(np.nan_to_num(deviation[members]), max(doubt, _SAME_CLOCK_NS / 2))
    return _told(replace(clocks, offset_ns=offset, uncertainty_ns=deviation, component=component))


def _of_all(clocks: Clocks, every: Int64s, collectives: pa.Table) -> Clocks:
    """The clocks with a line for each rank: that of the job where collectives give none."""
    own = not clocks.refused
    offset, drift, deviation = np.zeros(len(every)), np.zeros(len(every)), np.full(len(every), np.nan)
    component = len(every) + np.arange(len(every))
    t0 = clocks.t0_ns if own else int(np.median(collectives["end_ns"].to_numpy()))
    if own:
        at = np.searchsorted(every, clocks.ranks)
        offset[at], drift[at], deviation[at] = clocks.offset_ns, clocks.drift, clocks.uncertainty_ns
        component[at] = clocks.component
    spread = clocks.spread_ns if own else _SAME_CLOCK_NS / 2
    return Clocks(every, offset, drift, t0, deviation, spread, component, [])


def _edges(
    component: Int64s, source: Int64s, destination: Int64s, delay: Floats, hosts: Int64s
) -> list[tuple[float, int, int, float]]:
    """Pairs of components whose clocks messages relate: the uncertainty, both, and how far the second is ahead of the first."""
    least: dict[tuple[int, int], float] = {}
    one_host: dict[tuple[int, int], bool] = {}
    for place in np.argsort(delay, kind="stable").tolist():
        pair = int(component[source[place]]), int(component[destination[place]])
        least.setdefault(pair, float(delay[place]))
        same = bool(hosts[source[place]] == hosts[destination[place]])
        one_host[pair] = one_host.get(pair, True) and same
    edges = []
    for (one, other), high in least.items():
        low = -least.get((other, one), np.inf)
        if one == other or ((other, one) in least and one > other) or low > high + _SAME_CLOCK_NS:
            continue
        if one_host[one, other] and low <= _SAME_CLOCK_NS and high >= -_SAME_CLOCK_NS:
            edges.append((0.0, one, other, 0.0))
        elif np.isfinite(low):
            edges.append(((high - low) / 2, one, other, (high + low) / 2))
    for host in np.unique(hosts).tolist():
        first, *others = np.unique(component[hosts == host]).tolist()
        edges += [(_SAME_CLOCK_NS, first, each, 0.0) for each in others if {(first, each), (each, first)}.isdisjoint(least)]
    return edges


def _told(clocks: Clocks) -> Clocks:
    """With what is to be told of ranks that nothing relates to the others."""
    components, members = np.unique(clocks.component, return_counts=True)
    apart = clocks.ranks[clocks.component != components[np.argmax(members)]]
    component = np.unique(clocks.component, return_inverse=True)[1].reshape(-1)
    if not len(apart):
        return replace(clocks, component=component)
    named = named_ranks(apart.tolist(), RANKS_NAMED)
    text = (
        f"No matched collective or message relates the clocks of {named} ({len(apart)} of {len(clocks.ranks)}) to those of the "
        "others; their times cannot be compared."
    )
    deviation = np.where(np.isin(clocks.ranks, apart), np.nan, clocks.uncertainty_ns)
    return replace(clocks, component=component, uncertainty_ns=deviation, notes=[("warning", text)])


def _shortest(collectives: pa.Table, rows: Int64s, duration: Int64s) -> Int64s:
    """The shortest duration of the rows that have the rank, the other ranks and the size of each."""
    texts = [coded(collectives[name].fill_null(""))[0] for name in ("sends_to", "receives_from")]
    numbers = [integers(collectives[name]) for name in ("rank", "bytes")]
    code = ordered(*texts, *numbers)
    return least_of_groups(code[rows], duration[rows], int(code.max(initial=-1)) + 1)[code]


def times(clocks: Clocks, collectives: pa.Table, found: Messages, first: int) -> tuple[Int64s, Waits]:
    """The number of each row with a matched message, -1 for other rows, and its times. No rank comes last: only one
    waits for the other. `first`: the number of the first message; what two rows exchange is one."""
    rank, start, end = (integers(collectives[name]) for name in ("rank", "start_ns", "end_ns"))
    rows = len(rank)
    ours = np.unique(np.concatenate((found.sent, found.received)))
    arrival, finish = np.zeros(rows, np.int64), np.zeros(rows, np.int64)
    arrival[ours], finish[ours] = clocks.aligned(rank[ours], start[ours]), clocks.aligned(rank[ours], end[ours])
    until = arrival.copy()
    np.maximum.at(until, found.received, arrival[found.sent])
    waits = finish[found.sent] > arrival[found.received]
    np.maximum.at(until, found.sent[waits], arrival[found.received[waits]])
    wait = np.clip(until - arrival, 0, finish - arrival)
    early = found.sent[~waits]
    wait[early] = (finish - arrival)[early] - _shortest(collectives, found.sent, finish - arrival)[early]
    number = np.full(rows, rows, np.int64)
    ids = np.minimum(found.sent, found.received)
    np.minimum.at(number, found.sent, ids)
    np.minimum.at(number, found.received, ids)
    # Calls with messages of several other calls are one only in pairs: each takes the least number.
    pair = np.full(rows, -1, np.int64)
    agree = number[found.sent] == number[found.received]
    pair[found.sent[agree]] = pair[found.received[agree]] = number[found.sent[agree]]
    numbers, dense = np.unique(pair[pair >= 0], return_inverse=True)
    pair[pair >= 0] = first + dense.reshape(-1) if len(numbers) else -1
    return pair, Waits(arrival, finish, wait, finish - arrival - wait, np.zeros(rows, bool))
