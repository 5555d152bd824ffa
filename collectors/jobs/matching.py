"""Finds which communication kernels of different ranks are one collective of the job. Works on arrays, without a loop over events.

A group is a process group: its name, its ranks as the trace writes them, and its size. PyTorch shortens long lists of ranks in the
same way on all members, so a shortened list still identifies the group. A group of a trace without process groups is the stream.

The n-th collective of a group is the same event on all ranks. It is counted

1. within the sequence number, if every collective of the group has one,
2. else within the iteration, if all ranks have iterations,
3. else over the whole trace.

Collectives without an iteration are counted apart: those before an iteration, and those after it.

What a rank does without the others, such as NVSHMEM's puts and signals, is part of no event.

Profiles need not begin at the same collective. So an event counts only if all ranks of the group that are in the table have it. Where
counts differ and no sequence number tells which collective is missing, the order proves nothing, and all of them are left out.
"""

import re
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from warpladder.collectors.jobs.clocks import RANKS_NAMED, Notes
from warpladder.data.arrays import (
    Bools,
    Int64s,
    coded,
    heads,
    integers,
    least_of_groups,
    most_of_groups,
    occurrence,
    ordered,
)
from warpladder.data.communication import is_one_sided
from warpladder.data.words import first_of, named_ranks

UNMATCHED: Final = -1
_NULL: Final = -1
#: Collectives whose numbers of elements may differ between ranks.
_UNEVEN: Final = re.compile(r"(?i)all_?to_?all|gather|scatter|send|recv|dispatch|combine")
_GROUPS_NAMED: Final = 3


@dataclass(frozen=True)
class _Rows:
    """Columns of the collectives by group, rank and start. Codes count from 0; `_NULL` is null."""

    order: Int64s
    rank: Int64s
    group: Int64s
    names: list[str]
    kind: Int64s
    iteration: Int64s
    sequence: Int64s
    checks: dict[str, Int64s]
    is_even: Bools

    @classmethod
    def of(cls, collectives: pa.Table) -> "_Rows":
        group, names = _groups(collectives)
        rank = integers(collectives["rank"], _NULL)
        kind, kinds = coded(collectives["collective"])
        element_type, types = coded(collectives["element_type"])
        order = np.lexsort((integers(collectives["start_ns"], _NULL), rank, group))
        checks = {
            "number of input elements": integers(collectives["in_elements"], _NULL),
            "number of output elements": integers(collectives["out_elements"], _NULL),
            "element type": np.where(np.array([text == "" for text in types], bool)[element_type], _NULL, element_type),
        }
        is_even = np.array([not _UNEVEN.search(text) for text in kinds], bool)[kind]
        return cls(
            order,
            rank[order],
            group[order],
            names,
            kind[order],
            integers(collectives["iteration"], _NULL)[order],
            integers(collectives["sequence"], _NULL)[order],
            {name: values[order] for name, values in checks.items()},
            is_even[order].astype(bool),
        )


def match(collectives: pa.Table) -> tuple[Int64s, Notes]:
    """Match the collectives of all ranks.

    Args:
        collectives: rows of `job_tables.COLLECTIVES` of all ranks in any order.

    Returns:
        For each row, the event that it is a part of, numbered from 0 by time; `UNMATCHED` where it is of none. And severity and text of
        each finding.
    """
    matched = np.full(collectives.num_rows, UNMATCHED, np.int64)
    kind, kinds = coded(collectives["collective"])
    together = np.flatnonzero(~np.array([is_one_sided(text) for text in kinds], bool)[kind])
    notes: Notes = []
    if len(together) < len(kind):
        count = len(kind) - len(together)
        notes.append(
            ("info", f"{count} puts, signals and waits of one rank were not matched: no other rank has to be in them.")
        )
    if not len(together):
        return matched, notes
    rows = _Rows.of(collectives.take(together))
    has_sequence = _of_each(rows.group, rows.sequence != _NULL, np.logical_and)
    bucket = _counted_within(rows, has_sequence)
    event = ordered(rows.group, bucket, occurrence(rows.group, rows.rank, bucket))
    scope = np.where(has_sequence, rows.group, ordered(rows.group, bucket) + rows.group.max() + 1)
    kept = ~_miscounted(rows, scope, ~has_sequence, notes)
    contradicts = _contradicting(rows, event, scope, kept, notes)
    kept = _complete(rows, event, scope, kept & ~contradicts, contradicts, notes)
    matched[together[rows.order[kept]]] = event[kept]
    return _by_time(matched, integers(collectives["start_ns"], _NULL)), notes


def _groups(collectives: pa.Table) -> tuple[Int64s, list[str]]:
    """Return a code for each row's group, and the name of each code."""
    (name, names), (ranks, lists) = coded(collectives["group"]), coded(collectives["group_ranks"])
    size = integers(collectives["group_size"], _NULL)
    code = ordered(name, ranks, size)
    first = np.unique(code, return_index=True)[1]
    return code, [f"{names[name[row]]} {lists[ranks[row]]}".strip() for row in first.tolist()]


def _of_each(code: Int64s, values: Bools, combine: np.ufunc) -> Bools:
    """Combine the values of the rows with the same code, and return the result for each row."""
    result = np.full(int(code.max()) + 1, combine is np.logical_and)
    combine.at(result, code, values)
    each: Bools = result[code]
    return each


def _counted_within(rows: _Rows, has_sequence: Bools) -> Int64s:
    """Return for each row the sequence number or the part of the trace within which the collectives are counted."""
    with_iterations = np.unique(rows.rank[rows.iteration != _NULL])
    if len(with_iterations) < len(np.unique(rows.rank)):
        return np.where(has_sequence, rows.sequence, 0)
    known = rows.iteration != _NULL
    latest = np.where(known, np.arange(len(known)), 0)
    new_ranks = heads(rows.group, rows.rank)
    latest[new_ranks] = new_ranks
    latest = np.maximum.accumulate(latest)
    part = np.where(known[latest], 2 * rows.iteration[latest] + 1 + ~known, 0)
    return np.where(has_sequence, rows.sequence, part)


def _miscounted(rows: _Rows, scope: Int64s, by_order: Bools, notes: Notes) -> Bools:
    """Find rows that are counted by order where the ranks of the group do not all have the same number of collectives."""
    own = ordered(scope, rows.rank)
    count, is_first = np.bincount(own)[own], occurrence(own) == 0
    least, most = (of_groups(scope, count, int(scope.max()) + 1) for of_groups in (least_of_groups, most_of_groups))
    members, here = _members(rows), np.bincount(scope, is_first)
    found = by_order & ((least < most)[scope] | (here[scope] < members)) & (members > 1)
    if found.any():
        notes.append(
            (
                "warning",
                f"{int(found.sum())} collectives of {_named(rows, found)} were not matched: their number differs between ranks, "
                "and the profiles lack sequence numbers. Profile the same steps on all ranks.",
            )
        )
    return found


def _members(rows: _Rows) -> Int64s:
    """Return for each row the number of ranks that have collectives of its group."""
    return np.bincount(rows.group, occurrence(rows.group, rows.rank) == 0)[rows.group].astype(np.int64)


def _contradicting(rows: _Rows, event: Int64s, scope: Int64s, kept: Bools, notes: Notes) -> Bools:
    """Find rows of a rank that, within a scope, contradicts most ranks of the group in any event."""
    contradicts = np.zeros(len(event), bool)
    checked = [("kind", rows.kind, rows.kind != _NULL)]
    checked += [(name, values, (values != _NULL) & rows.is_even) for name, values in rows.checks.items()]
    for name, values, stands in checked:
        found = _against_most(event, values, stands & kept)
        if found.any():
            ranks = named_ranks(np.unique(rows.rank[found]).tolist(), RANKS_NAMED)
            notes.append(
                (
                    "warning",
                    f"Collectives of {_named(rows, found)} were not matched on {ranks}: the {name} differs from that on most ranks.",
                )
            )
        contradicts |= found
    return _of_each(ordered(scope, rows.rank), contradicts, np.logical_or)


def _against_most(event: Int64s, values: Int64s, stands: Bools) -> Bools:
    """Find rows whose value is not that of more than half of the event's ranks. Only values that stand are compared."""
    at = np.flatnonzero(stands)
    found = np.zeros(len(event), bool)
    if not len(at):
        return found
    code, value = event[at], values[at]
    least, most = (of_groups(code, value, int(event.max()) + 1) for of_groups in (least_of_groups, most_of_groups))
    unequal = least[code] < most[code]
    at, code, value = at[unequal], code[unequal], value[unequal]
    if len(at):
        same, ranks = ordered(code, value), np.bincount(code)
        found[at] = 2 * np.bincount(same)[same] <= ranks[code]
    return found


def _complete(rows: _Rows, event: Int64s, scope: Int64s, kept: Bools, contradicts: Bools, notes: Notes) -> Bools:
    """Keep events that all ranks of the group have, but ranks that contradict the others in the scope."""
    own = occurrence(scope, rows.rank) == 0
    ranks = _members(rows) - np.bincount(scope, own & contradicts).astype(np.int64)[scope]
    here = np.bincount(event, kept, int(event.max()) + 1)[event]
    alone, partial = kept & (ranks < 2), kept & (ranks > 1) & (here < ranks)
    if alone.any():
        count = len(np.unique(rows.group[alone]))
        of = "a process group" if count == 1 else f"{count} process groups"
        notes.append(("info", f"Collectives of {of} were not matched: the profiles are of a single rank of the group."))
    if partial.any():
        notes.append(
            (
                "info",
                f"{int(partial.sum())} collectives of {_named(rows, partial)} were not matched: not all ranks' profiles have them.",
            )
        )
    return kept & ~alone & ~partial


def _named(rows: _Rows, chosen: Bools) -> str:
    """Name the groups of the rows, a few of them if they are many."""
    names = [rows.names[code] for code in np.unique(rows.group[chosen]).tolist()]
    return first_of(names, _GROUPS_NAMED)


def _by_time(match: Int64s, start: Int64s) -> Int64s:
    """Number the events from 0 by their first start."""
    at = np.flatnonzero(match != UNMATCHED)
    if not len(at):
        return match
    codes, inverse = np.unique(match[at], return_inverse=True)
    first = least_of_groups(inverse, start[at], len(codes))
    number = np.empty(len(codes), np.int64)
    number[np.argsort(first, kind="stable")] = np.arange(len(codes))
    result = np.full(len(match), UNMATCHED, np.int64)
    result[at] = number[inverse]
    return result
