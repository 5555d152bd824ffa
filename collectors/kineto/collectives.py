"""The collectives of a trace, from its communication kernels and the arguments that PyTorch records.

One call may launch several kernels: NCCL makes an `all_to_all` of as many as there are ranks, and a group of calls of some. The profiler
copies the arguments of the call to each of them, with its `External id` and its `Seq`. They are one collective of the size of the whole.
"""

import re
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from warpladder.collectors.kineto.columns import int_columns
from warpladder.collectors.kineto.events import CollectiveArguments, Event, arguments_of
from warpladder.collectors.trace.model import type_of
from warpladder.data.arrays import Int64s, coded, integers, lookup, numbered
from warpladder.data.columns import MOST_WORK
from warpladder.data.communication import element_bytes

#: The operator that PyTorch records for each call of NCCL.
RECORD: Final = "record_param_comms"
#: Ranges around messages: what is done, and the other rank.
_NAMED: Final = re.compile(r"nccl:(send|recv) \d+(?:->|<-)(\d+)")
#: Columns of the kernels of a trace, the first their places in the file.
OF_KERNELS: Final = ("place", "start_ns", "end_ns", "correlation", "device", "stream", "full_name", "collective")
#: Columns that are equal for all collectives of a group.
_OF_GROUP: Final = ("group", "group_ranks", "group_size")
#: Columns that are equal for all kernels of a collective. Of these, a device has the kernels of a group one after another.
_OF_ORDER: Final = ("device", "group", "group_ranks")
_OF_CALL: Final = (*_OF_ORDER, "call", "collective", "sequence", "in_elements", "out_elements", "element_type")


class _Message(NamedTuple):
    """A call that sends or receives: when it began, the other rank, its group and the ranks of that, empty where not known, and its number."""

    start: int
    sends: bool
    peer: int
    group: str = ""
    group_ranks: str = ""
    call: int = 0


class Collectives:
    """Gathers communication kernels, and the calls that send or receive, since the profiler gives the kernel of a batch no arguments."""

    def __init__(self) -> None:
        self._parts: list[pa.Table] = []
        self._messages: list[_Message] = []
        self._named: list[_Message] = []

    def add_calls(self, events: Sequence[Event], start: Int64s) -> None:
        """Add operators `RECORD`."""
        for begin, each in zip(start.tolist(), arguments_of(events, CollectiveArguments), strict=True):
            peer = each.destination if each.collective == "send" else each.source
            if each.collective in ("send", "recv") and isinstance(peer, int):
                more = _word(each.group), _word(each.group_ranks), each.call or 0
                self._messages.append(_Message(begin, each.collective == "send", peer, *more))

    def add_ranges(self, events: Sequence[Event], start: Int64s) -> None:
        """Add ranges, of which some are named like `nccl:send 2->3`, with numbers of ranks in their group."""
        for place, event in enumerate(events):
            if event.cat == "user_annotation" and (found := _NAMED.fullmatch(str(event.name))):
                self._named.append(_Message(int(start[place]), found[1] == "send", int(found[2])))

    def with_messages(self, rows: pa.Table, launched: Int64s, base_ns: int) -> pa.Table:
        """The rows with the other ranks of those that send or receive and lack them: of the calls since the launch before.

        Args:
            rows: of `gathered`.
            launched: when each was launched.
            base_ns: what is added to the times of the file.
        """
        lacks = pc.and_(pc.is_null(rows["sends_to"]), pc.is_null(rows["receives_from"]))
        places = np.flatnonzero(pc.and_(lacks, pc.equal(rows["collective"], "sendrecv")).to_numpy(zero_copy_only=False))
        known = {call for part in self._parts for call in part["call"].to_pylist()}
        messages = sorted([each for each in self._messages if each.call not in known] or self._named)
        if not len(places) or not messages:
            return rows
        places = places[np.argsort(launched[places], kind="stable")]
        at = np.searchsorted(launched[places], [each.start + base_ns for each in messages], side="left")
        names = ("sends_to", "receives_from", "group", "group_ranks")
        columns = {name: rows[name].to_pylist() for name in names}
        for place, each in zip(at.tolist(), messages, strict=True):
            if place == len(places):
                continue
            row = int(places[place])
            ranks = msgspec.json.decode(columns["group_ranks"][row] or "[]") if not each.group_ranks else []
            peer = ranks[each.peer] if each.peer < len(ranks) else each.peer
            column = columns["sends_to" if each.sends else "receives_from"]
            column[row] = f"{column[row]},{peer}" if column[row] else str(peer)
            if each.group:
                columns["group"][row], columns["group_ranks"][row] = each.group, each.group_ranks
        for name, values in columns.items():
            place = rows.schema.get_field_index(name)
            rows = rows.set_column(place, name, pa.array(values, pa.string()))
        return rows

    def gather(self, events: Sequence[Event], place: Int64s) -> None:
        """Add kernels with their places in the file."""
        if not events:
            return
        arguments = arguments_of(events, CollectiveArguments)
        numbers = int_columns(arguments, "group_size", "sequence", "call", "in_elements", "out_elements")
        types = [_word(each.dtype) for each in arguments]
        most = pc.max_element_wise(numbers["in_elements"], numbers["out_elements"]).fill_null(0).to_numpy(zero_copy_only=False)
        size = np.array([element_bytes(each) for each in types], np.int64)
        self._parts.append(
            pa.table(
                {
                    **numbers,
                    "place": place,
                    "group": [_word(each.group) for each in arguments],
                    "group_ranks": [_word(each.group_ranks) for each in arguments],
                    "element_type": types,
                    "group_title": _texts(arguments, "title"),
                    "sends_to": _texts(arguments, "destination"),
                    "receives_from": _texts(arguments, "source"),
                    "in_splits": _texts(arguments, "in_splits"),
                    "out_splits": _texts(arguments, "out_splits"),
                    "bytes": np.clip(most, 0, MOST_WORK) * size,  # with room in int64
                    "named": [bool(_word(each.collective)) for each in arguments],
                }
            )
        )

    def gathered(self, kernels: pa.Table) -> pa.Table:
        """The collectives of a trace in the order of their start.

        The profiler leaves the arguments of some kernels out. A process group has a stream of its own on each device, so the group of
        such a kernel is the only one that other kernels of its stream have.

        Args:
            kernels: columns `OF_KERNELS` of those that communicate.
        """
        kernels = kernels.cast(pa.schema([(name, type_of(name)) for name in OF_KERNELS])).rename_columns(
            {"full_name": "kernel"}
        )
        rows = pa.concat_tables(self._parts)
        rows = rows.take(pa.array(lookup(integers(rows["place"]), integers(kernels["place"]))))
        for name, column in zip(kernels.column_names[1:], kernels.columns[1:], strict=True):
            rows = rows.append_column(name, column)
        return _joined(_with_groups(rows.sort_by("start_ns")))


def _with_groups(rows: pa.Table) -> pa.Table:
    columns = {name: rows.column(name).to_pylist() for name in _OF_GROUP}
    stream = list(zip(rows.column("device").to_pylist(), rows.column("stream").to_pylist(), strict=True))
    several = len({device for device, _ in stream}) > 1
    named: dict[Any, set[tuple[Any, ...]]] = {}
    for number, *group in zip(stream, *columns.values(), strict=True):
        if group[0]:
            named.setdefault(number, set()).add(tuple(group))
    for place, (device, number) in enumerate(stream):
        if columns["group"][place]:
            continue
        groups = named.get((device, number), ())
        lone = f"stream {number} of GPU {device}" if several else f"stream {number}"
        found = next(iter(groups)) if len(groups) == 1 else (lone, columns["group_ranks"][place], columns["group_size"][place])
        for values, value in zip(columns.values(), found, strict=True):
            values[place] = value
    for name, values in columns.items():
        at = rows.schema.get_field_index(name)
        rows = rows.set_column(at, name, pa.array(values, rows.schema.field(at).type))
    return rows


def _joined(rows: pa.Table) -> pa.Table:
    """One row for the kernels of a call, from the start of the first to the end of the last.

    A call is known by its `External id`; in a trace without it, kernels that follow one another in their group with equal `Seq` are of one.
    """
    kernels = np.arange(rows.num_rows)
    called = pc.greater(rows["call"], 0).fill_null(False).to_numpy(zero_copy_only=False)
    counted = rows["sequence"].is_valid().to_numpy(zero_copy_only=False)
    named = rows["named"].to_numpy(zero_copy_only=False)
    (call, first_of_call), (order, _) = (numbered(*(coded(rows[name])[0] for name in of)) for of in (_OF_CALL, _OF_ORDER))
    by_group = np.lexsort((kernels, order))
    follows = np.zeros(len(kernels), bool)
    follows[by_group[1:]] = call[by_group[1:]] == call[by_group[:-1]]
    first = np.empty(len(kernels), np.int64)
    first[by_group] = np.maximum.accumulate(np.where(follows[by_group], 0, np.arange(len(kernels))))
    first = by_group[first]
    head = np.where(named & called, first_of_call[call], np.where(named & counted, first, kernels))
    heads, inverse = np.unique(head, return_inverse=True)
    end = np.full(len(heads), np.iinfo(np.int64).min)
    np.maximum.at(end, inverse.reshape(-1), rows["end_ns"].to_numpy())
    joined = rows.take(pa.array(heads)).drop_columns(["call", "named"])
    joined = joined.set_column(joined.schema.get_field_index("end_ns"), "end_ns", pa.array(end))
    return joined.append_column("kernels", pa.array(np.bincount(inverse.reshape(-1)).astype(np.int32)))


def _texts(arguments: Sequence[CollectiveArguments], name: str) -> pa.Array:
    """An argument of each as text; null where it lacks it, or has an empty list."""
    values = [_word(getattr(each, name)) for each in arguments]
    return pa.array([None if value in ("", "[]") else value for value in values], pa.string())


def _word(value: Any) -> str:
    return "" if value is None else str(value)
