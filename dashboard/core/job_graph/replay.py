"""The iterations of a job, executed again with other times: when each rank comes to its collectives and messages, and when iterations end.

A rank does its work of a piece, and then waits for the collective or message at the begin of the piece if the measured one did. A collective
or message ends a transfer after all ranks that it waits for have begun it. Where a send ended before its receive began, the bytes of its
direction are buffered: a send then waits until no more messages are under way than were at most. Iterations follow one another, so that what one changes reaches the next.
"""

from collections import deque
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from warpladder.dashboard.core.job_graph.graph import NONE, JobGraph

Floats: TypeAlias = npt.NDArray[np.float64]
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
    """Iterations that were executed again, an element for each change.

    Attributes:
        steps_ns: a row for each step and a column for each change, see `JobGraph.steps_ns`.
        waited_ns: a row for each rank: how long it waits for other ranks in all iterations.
    """

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
        self._graph, self._count = graph, len(changes)
        rank = pieces["rank"].to_numpy(np.int64)
        self._rank = rank.tolist()
        self._is_first = pieces["is_first"].tolist()
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
        self._iteration = pieces["iteration"].tolist()
        self._origin = float(pieces["begin_ns"].min())

    def run(self) -> Replayed:
        graph, count = self._graph, len(self._rank)
        begun: list[Floats | None] = [None] * count
        ended: list[Floats | None] = [None] * count
        ends = {number: np.full((len(graph.ranks), self._count), -np.inf) for number in graph.iterations}
        place_of = {rank: place for place, rank in enumerate(graph.ranks)}
        bounds = np.append(np.flatnonzero(np.diff(self._rank, prepend=NONE - 1)), count)
        waited = np.zeros((len(graph.ranks), self._count))
        parked: dict[int, list[int]] = {}
        begins, first = graph.pieces["begin_ns"].tolist(), bounds[:-1].tolist()
        state = {place: _State(piece, np.full(self._count, begins[piece] - self._origin)) for place, piece in enumerate(first)}
        ready = deque(state)
        while ready:
            place = ready.popleft()
            now = state[place]
            while now.piece < bounds[place + 1]:
                piece = now.piece
                if begun[piece] is None:
                    begun[piece] = now.time
                    ready.extend(parked.pop(piece, ()))
                missing = next((other for other in self._others[piece] if begun[other] is None), NONE)
                room = self._room[piece]
                missing = room if missing == NONE and room != NONE and ended[room] is None else missing
                if missing != NONE and (self._blocks[piece] or self._late[piece]):
                    parked.setdefault(missing, []).append(place)
                    break
                self._through(now, piece, begun, ended, waited[place])
                ready.extend(parked.pop(piece, ()))
                now.piece += 1
                if now.piece == bounds[place + 1] or self._iteration[now.piece] != self._iteration[piece]:
                    now.time = now.after_all(now.time)
                    ends[self._iteration[piece]][place_of[self._rank[piece]]] = now.time
        if any(now.piece < bounds[place + 1] for place, now in state.items()):
            raise ValueError("ranks wait for each other without end")
        last = np.stack([ends[number].max(axis=0) for number in graph.iterations])
        return Replayed(np.diff(last, axis=0) if len(last) > 1 else last, waited)

    def _through(
        self, now: "_State", piece: int, begun: list[Floats | None], ended: list[Floats | None], waited: Floats
    ) -> None:
        """From the begin of a piece to its end."""
        begin = now.time
        time = begin + self._within[piece]
        if self._blocks[piece] or self._late[piece]:
            met = begin
            for other in self._others[piece]:
                theirs = begun[other]
                met = met if theirs is None else np.maximum(met, theirs)
            room = ended[self._room[piece]] if self._room[piece] != NONE else None
            met = met if room is None else np.maximum(met, room - self._transfer[piece])
            until = met + self._transfer[piece]
            ended[piece] = until
            if self._late[piece]:
                now.open.append(until)
            else:
                waited += np.maximum(met - np.maximum(time, begin), 0)
                time = np.maximum(time, until)
        if self._blocked[piece] and not self._blocks[piece]:
            time = now.after_all(time)
        ended[piece] = time if ended[piece] is None else ended[piece]
        now.time = time + self._after[piece]


@dataclass
class _State:
    """Where a rank is: its next piece, when it begins, and the ends of communication that it has not waited for yet."""

    piece: int
    time: Floats
    open: list[Floats] = field(default_factory=list)

    def after_all(self, time: Floats) -> Floats:
        """A time at which it waits for all that."""
        while self.open:
            time = np.maximum(time, self.open.pop())
        return time


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


def _buffered(pieces: pd.DataFrame) -> npt.NDArray[np.bool_]:
    """Which sends are of a rank to another of which any ended before its receive began."""
    sends = pieces["sends_to"].notna() & pieces["receives_from"].isna() & pieces["match"].notna()
    latest = pieces.groupby("match")["arrival_ns"].transform("max")
    early = sends & (pieces["finish_ns"] < latest)
    direction = pieces["rank"].astype(str) + ">" + pieces["sends_to"].fillna("").astype(str)
    return np.asarray(sends & direction.isin(direction[early]), bool)
