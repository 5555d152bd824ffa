"""Finds device work whose times cannot be true, so that no figure counts them.

A kernel, copy or set lasts over whole later ones of its stream, because the profiler lost the record of its end: it is cut to the start of
the next one. A record has time 0 and duration 0, because its times were not taken, or it is far from all others, as with the time of another clock:
it is left out.

A stream runs its kernels one after the other, and yet two of them may overlap. With programmatic dependent launch, a kernel starts some
microseconds before the end of the one before it. The nodes of a graph run side by side, with the number of one stream.
"""

from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from warpladder.collectors.trace.model import API_CALLS, COPIES, KERNELS, RANGES, SETS, WORK, Correction, ReportError, Trace
from warpladder.collectors.trace.notes import Notes
from warpladder.data.arrays import Bools, Int64s, integers, numbered
from warpladder.data.columns import FAR
from warpladder.data.names import Source
from warpladder.data.words import first_of

#: Tables of the host.
_HOST: Final = (API_CALLS, RANGES)
#: Tables of work that a stream does one after the other.
_ON_STREAMS: Final = (KERNELS, COPIES, SETS)
#: Work that lasts this much longer than later work of its stream did not end when its record says.
_OVERRUN_NS: Final = 100_000
#: Device work so far from all calls and ranges of the host is of another clock, and where there are none, so far from other work.
_APART_NS: Final = 60 * 10**9
_APART_WITHOUT_HOST_NS: Final = 3_600 * 10**9
_CELL_NS: Final = _APART_NS // 2
#: If more than this share of the device work is so far away, it is no exception: the trace has two clocks, or two parts.
_MOST: Final = 0.1
_NAMED: Final = 3


class _Records(NamedTuple):
    """The rows of a table: start and end, and whether these are times."""

    start: Int64s
    end: Int64s
    timed: Bools

    @classmethod
    def of(cls, trace: Trace, table: str) -> "_Records":
        start, end = trace.arrays(table, ("start_ns", "end_ns"), FAR)
        if table == RANGES:  # a range that is open at the end of the trace has no end
            end = np.where(end == FAR, start, end)
        return cls(start, end, (end >= start) & (start > -FAR) & (end < FAR))


def correct(trace: Trace, notes: Notes) -> None:
    """Find impossible times, and let the trace give its rows without them from now on. Warns about each kind.

    Raises ReportError where each record of device work and of calls stands more than once.
    """
    records = {table: _Records.of(trace, table) for table in (*WORK, *_HOST) if trace.has_rows(table)}
    work = {table: each for table, each in records.items() if table in WORK}
    if work and all(_is_repeated(trace, table, each) for table, each in records.items() if table != RANGES):
        raise ReportError(
            f"{trace.name}: each kernel, copy and call stands in it more than once, as where a file was joined with itself; give the file as the "
            "profiler wrote it"
        )
    origin = trace.origin_ns
    left_out = {table: each.timed & (each.start == origin) & (each.end == origin) for table, each in work.items()}
    notes.count("warning", Source.TIMES, "{} kernels, copies and sets have time 0 and duration 0, because the profiler did not take their times, "
                "and are left out", _count(left_out))  # fmt: skip
    far = _far({table: each._replace(timed=each.timed & ~left_out.get(table, np.False_)) for table, each in records.items()})
    notes.count("warning", Source.TIMES, "{} kernels, copies and sets are minutes or more away from everything that the host did, as with times of "
                "another clock, and are left out", _count(far))  # fmt: skip
    left_out = {table: rows | far.get(table, np.False_) for table, rows in left_out.items()}
    found = {table: Correction(np.flatnonzero(rows)) for table, rows in left_out.items() if rows.any()}
    shown = {table: work[table]._replace(timed=work[table].timed & ~left_out[table]) for table in _ON_STREAMS if table in work}
    overruns: list[tuple[str, int, int]] = []
    for table, (cut, ends) in _overruns(trace, shown).items():
        found[table] = Correction(np.flatnonzero(left_out[table]), cut, ends)
        lasts, stays = work[table].end[cut] - work[table].start[cut], ends - work[table].start[cut]
        overruns += zip(_names(trace, table, cut), lasts.tolist(), stays.tolist(), strict=True)
    if overruns:
        notes.add("warning", Source.TIMES, _told(overruns))
    trace.corrections = found


def _is_repeated(trace: Trace, table: str, records: _Records) -> bool:
    """Whether each record of a table stands more than once. A stream or a thread does the same thing only once at a time."""
    if any(np.count_nonzero(records.start == end) < 2 for end in (records.start.min(), records.start.max())):
        return False
    names = [
        each
        for each in ("process", "thread", "device", "stream", "correlation", "graph_node_id")
        if each in trace.columns[table]
    ]
    columns = [records.start, records.end, *trace.arrays(table, names)]
    order = np.lexsort(columns)
    same = np.logical_and.reduce([np.diff(column[order]) == 0 for column in columns])
    return bool((np.append(False, same) | np.append(same, False)).all())


def _count(rows: dict[str, Bools]) -> int:
    return sum(int(each.sum()) for each in rows.values())


def _far(records: dict[str, _Records]) -> dict[str, Bools]:
    """The device work that is far from the host's records, or from nearly all work where the trace has none of the host."""
    if not any(each.timed.any() for each in records.values()):
        return {}
    start = np.concatenate([each.start[each.timed] for each in records.values()])
    host = np.repeat([table in _HOST for table in records], [int(each.timed.sum()) for each in records.values()])
    # The end of device work may be what is wrong.
    end = np.where(host, np.concatenate([each.end[each.timed] for each in records.values()]), start)
    if end.max() - start.min() <= _APART_NS or _is_dense(start, end):
        return {}
    order = np.argsort(start, kind="stable")
    apart = start[order][1:] - np.maximum.accumulate(end[order])[:-1]
    cluster = np.empty(len(order), np.int64)
    cluster[order] = np.append(0, np.cumsum(apart > (_APART_NS if host.any() else _APART_WITHOUT_HOST_NS)))
    of_host, of_work = (np.bincount(cluster[rows], minlength=int(cluster.max()) + 1) for rows in (host, ~host))
    lost = (of_host == 0) if host.any() else of_work <= _MOST * of_work.sum()
    if of_work[lost].sum() > _MOST * of_work.sum():
        return {}
    found, place = {}, 0
    for table, each in records.items():
        count = int(each.timed.sum())
        if table in WORK:
            found[table] = np.zeros(len(each.start), bool)
            found[table][each.timed] = lost[cluster[place : place + count]]
        place += count
    return found


def _is_dense(start: Int64s, end: Int64s) -> bool:
    """Whether each interval of time of half of `_APART_NS` has a start or an end, so that no gap is as long as that. It is seen without
    sorting."""
    first = int(start.min()) // _CELL_NS
    cells = int(end.max()) // _CELL_NS - first + 1
    if cells > len(start):
        return False
    has = np.zeros(cells, bool)
    for times in (start, end):
        has[times // _CELL_NS - first] = True
    return bool(has.all())


def _overruns(trace: Trace, work: dict[str, _Records]) -> dict[str, tuple[Int64s, Int64s]]:
    """By table, the rows of work that lasts over whole later work of its stream, and the start of the next one of each.

    A table that a reader gave up before its end is left out.
    """
    names = ("process", "device", "context", "stream", "graph_id", "graph_node_id")
    parts: dict[str, tuple[Int64s, Int64s]] = {}
    stream_of: dict[tuple[int, ...], int] = {}
    for table in work:
        own = [(np.empty(0, np.int64),) * 2]
        for batch in trace.batches(table, names):
            columns = [integers(batch[name], -1) for name in names]
            number, first = numbered(*columns[:4])
            distinct = zip(*(column[first].tolist() for column in columns[:4]), strict=True)
            codes = [stream_of.setdefault(each, len(stream_of)) for each in distinct]
            own.append((np.array(codes, np.int64)[number], np.maximum(columns[4], columns[5])))
        streams, graphs = map(np.concatenate, zip(*own, strict=True))
        if len(streams) == len(work[table].start):
            parts[table] = streams, graphs
    if not parts:
        return {}
    work = {table: work[table] for table in parts}
    stream, graph = map(np.concatenate, zip(*parts.values(), strict=True))
    every = _Records(*(np.concatenate(column) for column in zip(*work.values(), strict=True)))
    alone = every.timed & (graph <= 0)
    cut, ends = _covering(every, stream, np.flatnonzero(alone))
    if len(cut):  # nodes of graphs are known by their common launch, too
        cut, ends = _covering(every, stream, np.flatnonzero(alone & ~_launched_together(trace, tuple(work), len(stream))))
    order = np.argsort(cut)
    cut, ends = cut[order], ends[order]
    firsts = np.cumsum([0, *(len(each.start) for each in work.values())])
    bounds = np.searchsorted(cut, firsts)
    of_tables = zip(work, firsts.tolist(), bounds[:-1].tolist(), bounds[1:].tolist(), strict=False)
    return {table: (cut[low:high] - first, ends[low:high]) for table, first, low, high in of_tables if high > low}


def _covering(work: _Records, stream: Int64s, rows: Int64s) -> tuple[Int64s, Int64s]:
    """The rows among some that last over whole later ones of their stream, and the start of the next one of each."""
    rows = rows[np.lexsort((work.start[rows], stream[rows]))]
    cut, ends = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for own in np.split(rows, np.flatnonzero(np.diff(stream[rows])) + 1):
        start, end = work.start[own], work.end[own]
        # Work without a duration shows nothing.
        shown = np.where(end > start, end, FAR)
        first_end = np.append(np.minimum.accumulate(shown[::-1])[::-1][1:], FAR)[: len(own)]
        found = np.flatnonzero(end - first_end > _OVERRUN_NS)
        cut.append(own[found])
        ends.append(start[np.minimum(found + 1, max(len(own) - 1, 0))])
    return np.concatenate(cut), np.concatenate(ends)


def _launched_together(trace: Trace, tables: tuple[str, ...], rows: int) -> Bools:
    """Mark work that shares its launch with other work of its process; all of it where a reader gives up before its end."""
    parts = [trace.arrays(table, ("process", "correlation"), -1) for table in tables]
    process, correlation = map(np.concatenate, zip(*parts, strict=True))
    if len(process) != rows:
        return np.ones(rows, bool)
    order = np.lexsort((correlation, process))
    same = (np.diff(process[order]) == 0) & (np.diff(correlation[order]) == 0) & (correlation[order][1:] > 0)
    together = np.zeros(len(order), bool)
    together[order[1:][same]] = together[order[:-1][same]] = True
    return together


def _names(trace: Trace, table: str, rows: Int64s) -> list[str]:
    """The names of some kernels, given by their rows; of copies and sets, what they are."""
    if table != KERNELS:
        return ["a copy" if table == COPIES else "a set"] * len(rows)
    name = "name" if trace.has(KERNELS, "name") else "full_name"
    first, found = 0, []
    for batch in trace.batches(KERNELS, (name,)):
        own = rows[(rows >= first) & (rows < first + len(batch))] - first
        found += batch[name].take(pa.array(own)).to_pylist()
        first += len(batch)
    return found


def _told(overruns: list[tuple[str, int, int]]) -> str:
    """The warning about work with these names, how long it lasts, and how long it lasts after it is cut."""
    longest_first = sorted(overruns, key=lambda each: -each[1])
    each = (f"{name} ({_time(lasts)}, counted as {_time(stays)})" for name, lasts, stays in longest_first)
    of_its = "of their streams" if len(overruns) > 1 else "of its stream"
    return f"{first_of(each, _NAMED)}: too long to be true, as later work {of_its} ran meanwhile; counted up to the start of that work"


def _time(ns: Any) -> str:
    return f"{ns / 1e9:.3g} s" if ns >= 1e9 else f"{ns / 1e6:.3g} ms" if ns >= 1e6 else f"{ns / 1e3:.3g} µs"
