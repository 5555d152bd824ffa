"""The iterations of a job, executed again with other times: when each rank comes to its collectives and messages, and when iterations end.

A rank does its work of a piece, and then waits for the collective or message at the begin of the piece if the measured one did. A collective
or message ends a transfer after all ranks that it waits for have begun it. Where a send ended before its receive began, the bytes of its
direction are buffered: a send then waits until no more messages are under way than were at most. Iterations follow one another, so that what one changes reaches the next.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
import pandas as pd

from warpladder.dashboard.core.job_graph.graph import JobGraph
from warpladder.data.arrays import NONE, Bools, Floats

#: Exposed communication below this is no wait: starting the next kernel takes as long.
_NO_WAIT_NS: Final = 2_000
#: A send that waits for room ends within this time of the receive that makes it.
_TOGETHER_NS: Final = 50_000
#: A piece in which the host is awaited for more than this part of compute and such waits is paced by the host: it takes as long as its launches,
#: also with faster kernels.
_PACED_BY_HOST: Final = 0.2


@dataclass(frozen=True)
class Change:
    """Factors of the times of each piece; 1 where it stays."""

    compute: Floats
    host: Floats
    transfer: Floats

    @classmethod
    def of(cls, graph: JobGraph, compute: float = 1.0, host: float = 1.0, transfer: float = 1.0) -> "Change":
        """The same factors for all pieces."""
        return cls(*(np.full(len(graph.pieces), factor) for factor in (compute, host, transfer)))


class Replayed(NamedTuple):
    """Iterations that were executed again, with a column for each change: a row for each of `JobGraph.steps_ns`; and how long each rank waits
    for others in all iterations."""

    steps_ns: Floats
    waited_ns: Floats


def replay(graph: JobGraph, changes: list[Change]) -> Replayed:
    """Execute the iterations with each of some changes.

    Raises:
        ValueError: ranks wait for each other without end, since collectives were matched that are not the same.
    """
    return _Replay(graph, changes).run()


def work_ns(pieces: pd.DataFrame, change: Change) -> Floats:
    """The time of each piece without communication."""
    compute, host, other = (pieces[name].to_numpy(np.float64) for name in ("compute_ns", "host_ns", "other_ns"))
    paced = host > _PACED_BY_HOST * (compute + host)
    own = compute * change.compute + other
    total: Floats = np.where(paced, np.maximum(own, change.host * (compute + host + other)), own + host * change.host)
    return total


class _Replay:
    def __init__(self, graph: JobGraph, changes: list[Change]) -> None:
        pieces = graph.pieces
        self._graph, self._changes = graph, len(changes)
        local = pieces[["compute_ns", "host_ns", "other_ns"]].sum(axis=1).to_numpy(np.float64)
        after = np.clip(pieces["after_ns"].fillna(0).to_numpy(np.float64), 0, local)
        work = np.stack([work_ns(pieces, change) for change in changes], axis=1)
        factor = work / np.maximum(local, 1)[:, None]
        first = pieces["is_first"].to_numpy(bool)
        self._after = np.where(local[:, None] > 0, after[:, None] * factor, 0)
        self._within = work - self._after
        self._within[first] = work[first]
        self._after[first] = 0
        transfer = np.maximum(pieces["transfer_ns"].fillna(pieces["ends_ns"]).fillna(0).to_numpy(np.float64), 0)
        self._transfer = transfer[:, None] * np.stack([change.transfer for change in changes], axis=1)
        ends, duration = pieces["ends_ns"].fillna(0).to_numpy(np.float64), pieces["duration_ns"].to_numpy(np.float64)
        exposed = pieces["exposed_ns"].to_numpy(np.float64)
        self._blocks = ((ends <= duration) & (exposed > _NO_WAIT_NS) & ~first).tolist()
        self._late = ((ends > duration) & ~first).tolist()
        self._blocked = ((exposed > _NO_WAIT_NS) & ~first).tolist()
        self._others, self._room = _waits_for(pieces)
        self._iteration: list[int] = pieces["iteration"].tolist()
        self._begins: list[float] = (pieces["begin_ns"] - pieces["begin_ns"].min()).astype(float).tolist()
        self._begun: list[Floats | None] = [None] * len(pieces)
        self._ended: list[Floats | None] = [None] * len(pieces)
        self._ends = np.full((len(graph.iterations), len(graph.ranks), len(changes)), -np.inf)
        self._waited = np.zeros((len(graph.ranks), len(changes)))
        self._parked: dict[int, list[Iterator[int]]] = {}
        self._ready = deque[Iterator[int]]()

    def run(self) -> Replayed:
        rows = self._graph.pieces.groupby("rank", sort=True).indices
        self._ready.extend(self._events(place, np.asarray(rows[rank]).tolist()) for place, rank in enumerate(self._graph.ranks))
        while self._ready:
            events = self._ready.popleft()
            if (awaited := next(events, NONE)) != NONE:
                self._parked.setdefault(awaited, []).append(events)
        if self._parked:
            raise ValueError("ranks wait for each other without end")
        last = self._ends.max(axis=1)
        return Replayed(np.diff(last, axis=0) if len(last) > 1 else last, self._waited)

    def _events(self, place: int, pieces: list[int]) -> Iterator[int]:
        """Execute the pieces of a rank. Yields pieces of other ranks, for whose begins or ends it waits."""
        numbers = self._iteration
        time: Floats = np.full(self._changes, self._begins[pieces[0]])
        open_ends: list[Floats] = []  # of communication that it has not waited for yet
        for piece, following in pairwise([*pieces, NONE]):
            begin = met = time
            until: Floats | None = None
            self._begun[piece] = begin
            self._ready.extend(self._parked.pop(piece, ()))
            time = begin + self._within[piece]
            if self._blocks[piece] or self._late[piece]:
                room = self._room[piece]
                for other in self._others[piece]:
                    while (theirs := self._begun[other]) is None:
                        yield other
                    met = np.maximum(met, theirs)
                if room != NONE:
                    while (made := self._ended[room]) is None:
                        yield room
                    met = np.maximum(met, made - self._transfer[piece])
                until = met + self._transfer[piece]
                if self._late[piece]:
                    open_ends.append(until)
                else:
                    self._waited[place] += np.maximum(met - np.maximum(time, begin), 0)
                    time = np.maximum(time, until)
            if self._blocked[piece] and not self._blocks[piece]:
                time, open_ends = reduce(np.maximum, open_ends, time), []
            self._ended[piece] = time if until is None else until
            self._ready.extend(self._parked.pop(piece, ()))
            time = time + self._after[piece]
            if following == NONE or numbers[following] != numbers[piece]:
                time, open_ends = reduce(np.maximum, open_ends, time), []
                self._ends[self._graph.iterations.index(numbers[piece]), place] = time


def _waits_for(pieces: pd.DataFrame) -> tuple[list[list[int]], list[int]]:
    """The pieces at whose begins the communication of each piece waits, and for a buffered send the receive whose end makes room for it."""
    match = pieces["match"].fillna(NONE).astype("int64").to_numpy()
    of: dict[int, list[int]] = {}
    for piece, number in enumerate(match.tolist()):
        if number != NONE:
            of.setdefault(number, []).append(piece)
    rank = pieces["rank"].tolist()
    buffered, room = _buffered(pieces), [NONE] * len(match)
    sends: dict[tuple[int, str], list[int]] = {}
    for piece in np.flatnonzero(buffered).tolist():
        sends.setdefault((rank[piece], str(pieces["sends_to"].iat[piece])), []).append(piece)
    finish = pieces["finish_ns"].astype(float).to_numpy()
    for own in sends.values():
        receives = [next((other for other in of[int(match[piece])] if other != piece), NONE) for piece in own]
        done = np.searchsorted(finish[receives], finish[own] + _TOGETHER_NS, side="right")
        most = max(int((1 + np.arange(len(own)) - done).max()), 1)
        for place in range(most, len(own)):
            room[own[place]] = receives[place - most]
    others = [
        [other for other in of.get(number, ()) if other != piece] if not free else []
        for piece, (number, free) in enumerate(zip(match.tolist(), buffered.tolist(), strict=True))
    ]
    return others, room


def _buffered(pieces: pd.DataFrame) -> Bools:
    """Which sends are of a rank to another of which any ended before its receive began."""
    sends = pieces["sends_to"].notna() & pieces["receives_from"].isna() & pieces["match"].notna()
    latest = pieces.groupby("match")["arrival_ns"].transform("max")
    early = sends & (pieces["finish_ns"] < latest)
    direction = pieces["rank"].astype(str) + ">" + pieces["sends_to"].fillna("").astype(str)
    return np.asarray(sends & direction.isin(direction[early]), bool)
