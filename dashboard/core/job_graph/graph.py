"""The work of the ranks of a job between collectives and messages, their waits for each other, and their iterations with other times.

A rank's time is cut where its collectives and messages are ready: at their starts, or earlier where they queue behind others of their stream. A **piece** begins at one of them and ends at the next, or at the end of the
iteration; the first piece of an iteration begins where the rank's iteration before ends. In a piece, a rank computes, waits for its host, does other
things (copies, short gaps), and communicates exposed. These four add up to the piece, to the nanosecond.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
import pandas as pd
import pyarrow.compute as pc

from warpladder.dashboard.core.job_graph.queues import without_queues
from warpladder.dashboard.core.replay import replay
from warpladder.dashboard.core.traces import Job
from warpladder.data.arrays import NONE, Bools, Floats, Int64s

_COLUMNS: Final = (
    "rank", "iteration", "device", "stream", "collective", "group", "group_ranks", "group_title", "match", "arrival_ns", "finish_ns", "wait_ns", "transfer_ns",
    "sends_to", "receives_from", "in_splits", "out_splits", "bytes", "start_ns", "end_ns",
    "held_ns", "ready_ns", "next_ns", "next_compute_ns", "next_host_ns", "next_other_ns", "next_after_ns",
)  # fmt: skip
#: Of jobs with more pieces, the last iterations are read, at least so many.
_MOST_PIECES: Final = 20_000
_FEWEST: Final = 3
_TIMES: Final = ("compute_ns", "host_ns", "other_ns")


@dataclass(frozen=True)
class JobGraph:
    """The pieces of the iterations that all ranks have; of a long profile, those of the last ones. Times are on the job's clock, since the first collective.

    Attributes:
        ranks: that take part, ascending.
        iterations: their numbers, ascending.
        pieces: by rank, iteration and time: `rank`, `iteration`, `is_first` (of the iteration), `begin_ns`, `duration_ns`, `compute_ns`, `host_ns`,
            `other_ns`, `exposed_ns`, and of the collective or message at its begin (empty for a first piece): `match`, `collective`, `group`,
            `wait_ns`, `transfer_ns`, `ends_ns` after its begin, `held_ns` before that only it ran, `after_ns` (work behind its end), and the columns of messages and splits.
        end_ns: a row for each iteration and a column for each rank, when the iteration ends there.
    """

    ranks: tuple[int, ...]
    iterations: tuple[int, ...]
    pieces: pd.DataFrame
    end_ns: pd.DataFrame

    @property
    def steps_ns(self) -> list[int]:
        """The time from the end of each iteration to the end of the next, over all ranks; of a single one, from its first begin."""
        ends = self.end_ns.max(axis=1).tolist()
        if len(ends) > 1:
            return [int(later - earlier) for earlier, later in pairwise(ends)]
        return [int(ends[0] - self.pieces["begin_ns"].min())]


def job_graph(job: Job) -> JobGraph | None:
    """The pieces of a job; None where its clocks are not aligned, or ranks have no iterations in common."""
    table = job.arrow("collectives", _COLUMNS)
    if not table.num_rows:
        return None
    origin = pc.min(table["start_ns"]).as_py()
    # Small numbers are exact in the floats that nulls need.
    for name in ("arrival_ns", "finish_ns", "start_ns", "end_ns", "ready_ns"):
        table = table.set_column(table.schema.get_field_index(name), name, pc.subtract(table[name], origin))
    rows = table.to_pandas()
    texts = rows.select_dtypes("category").columns
    rows[texts] = rows[texts].astype(object)
    columns = ("rank", "iteration", "device_start_ns", "device_end_ns", "span_ns", "compute_ns", "exposed_ns", "host_wait_ns")
    iterations = job.frame("iterations", *columns).dropna(subset="device_end_ns")
    clocks, ranks = job.clocks(), job.frame("ranks", "rank", "status")
    known = [rank for rank, clock in clocks.items() if clock is not None]
    if len(known) < 2 or set(known) != set(ranks.loc[ranks["status"] == "ok", "rank"]):
        return None
    counts = iterations.groupby("iteration")["rank"].nunique()
    common = sorted(int(number) for number in counts[counts == len(known)].index)
    common = [number for place, number in enumerate(common) if number - place == common[0]]
    rows = rows[rows["iteration"].isin(common) & rows["next_ns"].notna()]
    if not common or rows.empty:
        return None
    common = common[-max(_FEWEST, _MOST_PIECES * len(common) // len(rows)) :]
    rows = rows[rows["iteration"].isin(common)]
    iterations = iterations[iterations["iteration"].isin(common)].sort_values(["rank", "iteration"], ignore_index=True)
    for name in ("device_start_ns", "device_end_ns"):
        aligned = [
            clock.aligned(iterations.loc[iterations["rank"] == rank, name].to_numpy(np.int64))
            for rank, clock in clocks.items()
            if clock
        ]
        iterations[name] = np.concatenate(aligned) - origin
    ends = iterations.pivot(index="iteration", columns="rank", values="device_end_ns")
    return JobGraph(tuple(known), tuple(common), _pieces(rows, iterations), ends)


def _pieces(rows: pd.DataFrame, iterations: pd.DataFrame) -> pd.DataFrame:
    queued = rows["start_ns"] - rows["ready_ns"]
    rows = rows.assign(is_first=False, ends_ns=rows["end_ns"] - rows["ready_ns"])
    unaligned = rows["arrival_ns"].isna()
    rows["begin_ns"] = rows["arrival_ns"].fillna(rows["start_ns"]) - queued
    rows = rows.rename(columns={f"next_{name}": name for name in (*_TIMES, "after_ns")} | {"next_ns": "duration_ns"})
    rows["exposed_ns"] = rows["duration_ns"] - rows[list(_TIMES)].sum(axis=1)
    rows.loc[unaligned, "match"] = np.nan
    of_rows = rows.groupby(["rank", "iteration"])[[*_TIMES, "exposed_ns", "duration_ns"]].sum()
    keys = pd.MultiIndex.from_frame(iterations[["rank", "iteration"]])
    of_rows = of_rows.reindex(keys, fill_value=0).reset_index(drop=True)
    before = iterations.groupby("rank")["device_end_ns"].shift()
    begin = before.fillna(iterations["device_start_ns"]).astype("int64")
    gap = (iterations["device_start_ns"] - begin).clip(lower=0)
    other = iterations["span_ns"] - iterations["compute_ns"] - iterations["exposed_ns"] - iterations["host_wait_ns"]
    first = iterations[["rank", "iteration"]].assign(
        is_first=True,
        begin_ns=begin,
        duration_ns=iterations["span_ns"] - of_rows["duration_ns"] + gap,
        compute_ns=iterations["compute_ns"] - of_rows["compute_ns"],
        host_ns=iterations["host_wait_ns"] - of_rows["host_ns"] + gap,
        other_ns=other - of_rows["other_ns"],
        exposed_ns=iterations["exposed_ns"] - of_rows["exposed_ns"],
    )
    rows["order"] = rows["ready_ns"]
    every = pd.concat([first.assign(order=np.iinfo(np.int64).min), rows], ignore_index=True)
    every = every.sort_values(["rank", "iteration", "order", "start_ns"], kind="stable", ignore_index=True)
    numbers = ("duration_ns", *_TIMES, "exposed_ns")
    return every.astype(dict.fromkeys(numbers, "int64"))


#: A shorter time in which only communication runs is no wait: starting the next kernel takes as long.
_NO_WAIT_NS: Final = 2_000
#: A send that waits for room ends within this time of the receive that makes it.
_TOGETHER_NS: Final = 50_000
#: A piece in which the host is awaited for more than this part of compute and such waits is paced by the host: it takes as long as its launches,
#: also with faster kernels.
_PACED_BY_HOST: Final = 0.2


@dataclass(frozen=True)
class Change:
    """Factors of the times of each piece; 1 where it stays. `other`: of copies and short gaps."""

    compute: Floats
    host: Floats
    transfer: Floats
    other: Floats

    @classmethod
    def of(cls, graph: JobGraph, compute: float = 1.0, host: float = 1.0, transfer: float = 1.0) -> "Change":
        """The same factors for all pieces."""
        return cls(*(np.full(len(graph.pieces), factor) for factor in (compute, host, transfer, 1.0)))


class Replayed(NamedTuple):
    """Iterations that were executed again, with a column for each change: a row for each of `JobGraph.steps_ns`; and how long each rank waits
    for others in all iterations."""

    steps_ns: Floats
    waited_ns: Floats


def execute(graph: JobGraph, changes: Sequence[Change]) -> Replayed:
    """Execute the iterations with each of some changes.

    A rank does its work of a piece, and then waits for the collective or message at the begin of the piece if the measured one did. A collective
    or message ends a transfer after all ranks that it waits for have begun it. Where a send ended before its receive began, the bytes of its
    direction are buffered: a send then waits until no more messages are under way than were at most. Iterations follow one another, so that what one changes reaches the next.

    Raises:
        Contradiction: ranks wait for each other without end, since collectives were matched that are not the same.
    """
    blocks, late, held = _communication(graph.pieces)
    last = np.flatnonzero(~graph.pieces.duplicated(["rank", "iteration"], keep="last").to_numpy())
    closes = _closes(graph.pieces, late & held, last)
    pieces, queued = without_queues(_behind(graph.pieces, blocks, closes), blocks)
    blocks[queued], count = False, len(pieces)
    within, after, transfer = _durations(pieces, changes)
    first = ~pieces.duplicated("rank").to_numpy()
    # Events: the start of all, the begin of each piece and the end of each rank, the end of each piece's communication and of its work,
    # and the moment at which all ranks of a collective have begun it.
    begin = np.arange(count) + np.cumsum(first)
    until, done = (len(graph.ranks) + (1 + each) * count + 1 + np.arange(count) for each in (0, 1))
    match, met = np.unique(pieces["match"].fillna(NONE).astype("int64"), return_inverse=True)
    met, matched = done[-1] + 1 + met, pieces["match"].notna().to_numpy()
    buffered, room = _room(pieces)
    talks, waits = blocks | late, matched & ~buffered
    made = np.where(talks[room], until[room], done[room])
    makes = np.flatnonzero(talks & (room != NONE))
    closed = np.where(closes == NONE, begin[last[np.searchsorted(last, np.arange(count))]] + 1, done[closes])
    behind, ahead = _same_stream(pieces, late)
    begun = (pieces["begin_ns"] - pieces["begin_ns"].min()).to_numpy(np.float64)
    times = replay(
        np.zeros((int(done[-1]) + 1 + len(match), len(changes))),
        [
            (begin[first], np.zeros(int(first.sum()), np.int64), begun[first]),
            (done, begin, within),
            (begin + 1, done, after),
            (met[matched], begin[matched], 0.0),
            (until[talks], np.where(waits, met, begin)[talks], transfer[talks]),
            (until[makes], made[makes], 0.0),
            (done[blocks], until[blocks], 0.0),
            (closed[late], until[late], 0.0),
            (met[behind], until[ahead], 0.0),
        ],
    )
    steps = pd.DataFrame(times[begin[last] + 1]).groupby(pieces["iteration"].to_numpy()[last]).max().to_numpy()
    waited = np.maximum(times[until] - transfer - times[begin] - np.maximum(within, 0), 0)[blocks]
    waited = pd.DataFrame(waited).groupby(pieces["rank"].to_numpy()[blocks]).sum().reindex(list(graph.ranks), fill_value=0.0)
    return Replayed(np.diff(steps, axis=0) if len(steps) > 1 else steps, waited.to_numpy())


def _closes(pieces: pd.DataFrame, held: Bools, last: Int64s) -> Int64s:
    """The piece in which the communication of some pieces ends, which waits for it; `NONE` for the others, for which the end of the iteration waits.

    Args:
        held: the communication that ends in a later piece and holds the rank.
        last: the last piece of each rank and iteration.
    """
    starts = pieces["begin_ns"].to_numpy(np.float64)
    ends, closes = _end_ns(pieces), np.empty(len(pieces), np.int64)
    for first, end in zip(np.append(0, last[:-1] + 1), last + 1, strict=True):
        closes[first:end] = first + np.searchsorted(starts[first:end], ends[first:end]) - 1
    return np.where(held, closes, NONE)


def _end_ns(pieces: pd.DataFrame) -> Floats:
    """When the communication of each piece ends."""
    ends: Floats = (pieces["begin_ns"] + pieces["ends_ns"].fillna(0)).to_numpy(np.float64)
    return ends


def _behind(pieces: pd.DataFrame, blocks: Bools, closes: Int64s) -> pd.DataFrame:
    """The pieces with `after_ns` behind the last communication for which the rank waits in them: their own, or one of a piece before.

    Args:
        blocks: pieces that wait for their own communication.
        closes: see `_closes`.
    """
    rows = pd.DataFrame({"piece": closes, "end_ns": _end_ns(pieces), "held_ns": pieces["held_ns"].to_numpy(np.float64)})
    rows = rows[closes != NONE].sort_values("end_ns").drop_duplicates("piece", keep="last").set_index("piece")
    rows = rows[~blocks[rows.index] | (_end_ns(pieces)[rows.index] < rows["end_ns"])]
    own = pieces.loc[rows.index]
    local = own[list(_TIMES)].sum(axis=1)
    before = (rows["end_ns"] - own["begin_ns"] - rows["held_ns"]).clip(0, local)
    after = pieces["after_ns"].astype(np.float64)
    after[rows.index] = local - before
    return pieces.assign(after_ns=after)


def _same_stream(pieces: pd.DataFrame, late: Bools) -> tuple[Int64s, Int64s]:
    """Pieces with a matched collective, and for each the piece before it on the stream of the rank, whose collective the rank does not wait for at once."""
    rows = pieces[pieces["match"].notna() & pieces["sends_to"].isna() & pieces["receives_from"].isna()]
    before = (
        pd.Series(rows.index, rows.index)
        .groupby([rows["rank"], rows["device"], rows["stream"]])
        .shift()
        .dropna()
        .astype("int64")
    )
    before = before[late[before.to_numpy()]]
    return np.asarray(before.index, np.int64), np.asarray(before, np.int64)


def work_ns(pieces: pd.DataFrame, change: Change) -> Floats:
    """The time of each piece without communication."""
    compute, host, other = (pieces[name].to_numpy(np.float64) for name in _TIMES)
    paced = host > _PACED_BY_HOST * (compute + host)
    own = compute * change.compute + other * change.other
    total: Floats = np.where(paced, np.maximum(own, change.host * (compute + host + other)), own + host * change.host)
    return total


def _durations(pieces: pd.DataFrame, changes: Sequence[Change]) -> tuple[Floats, Floats, Floats]:
    """The work of each piece up to the end of its communication and behind it, and its transfer: pieces x changes."""
    first = pieces["is_first"].to_numpy(bool)
    local = pieces[list(_TIMES)].sum(axis=1).to_numpy(np.float64)
    part = np.clip(pieces["after_ns"].fillna(0).to_numpy(np.float64), 0, local) / np.maximum(local, 1)
    work = np.stack([work_ns(pieces, change) for change in changes], axis=1)
    after = np.where(first[:, None], 0.0, part[:, None] * work)
    transfer = pieces["transfer_ns"].fillna(pieces["ends_ns"]).fillna(0).to_numpy(np.float64).clip(min=0)
    return work - after, after, transfer[:, None] * np.stack([change.transfer for change in changes], axis=1)


def _communication(pieces: pd.DataFrame) -> tuple[Bools, Bools, Bools]:
    """For each piece, whether its communication holds the rank and ends in the piece, ends later, and holds the rank."""
    talks = ~pieces["is_first"].to_numpy(bool)
    late = pieces["ends_ns"].fillna(0).to_numpy() > pieces["duration_ns"].to_numpy()
    held = talks & (pieces["held_ns"].fillna(0).to_numpy() > _NO_WAIT_NS)
    return held & ~late, talks & late, held


def _room(pieces: pd.DataFrame) -> tuple[Bools, Int64s]:
    """Which sends are buffered, and for each of them the receive whose end makes room for it; `NONE` for none."""
    buffered, room = _buffered(pieces), np.full(len(pieces), NONE)
    others = pieces[~buffered].dropna(subset="match").drop_duplicates("match")
    receive = pieces["match"].map(pd.Series(others.index, others["match"]))
    finish = pieces["finish_ns"].to_numpy(np.float64)
    for _, sends in pieces.assign(receive=receive)[buffered].dropna(subset="receive").groupby(["rank", "sends_to"]):
        receives = sends["receive"].to_numpy(np.int64)
        done = np.searchsorted(finish[receives], finish[sends.index] + _TOGETHER_NS, side="right")
        most = max(int((1 + np.arange(len(sends)) - done).max()), 1)
        room[sends.index[most:]] = receives[:-most]
    return buffered, room


def _buffered(pieces: pd.DataFrame) -> Bools:
    """Which sends are of a rank to another of which any ended before its receive began."""
    sends = pieces["sends_to"].notna() & pieces["receives_from"].isna() & pieces["match"].notna()
    latest = pieces.groupby("match")["arrival_ns"].transform("max")
    early = sends & (pieces["finish_ns"] < latest)
    direction = pieces["rank"].astype(str) + ">" + pieces["sends_to"].fillna("").astype(str)
    return np.asarray(sends & direction.isin(direction[early]), bool)
