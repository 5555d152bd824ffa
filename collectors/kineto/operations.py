"""The operators of PyTorch in a trace, with the device time of what they launched."""

from collections.abc import Sequence
from operator import attrgetter
from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from warpladder.collectors.kineto.columns import Codes, Texts, int_column, numbers
from warpladder.collectors.kineto.events import NO_TEXT, Event, FunctionArguments, OperatorArguments, arguments_of, times_ns
from warpladder.collectors.kineto.threads import Threads
from warpladder.collectors.trace.attribution import ByTime, LaunchedWork
from warpladder.collectors.trace.model import process_of
from warpladder.data import nesting, schema
from warpladder.data.arrays import NONE, Int64s
from warpladder.data.columns import FAR
from warpladder.data.nesting import Innermost

#: Frames of Python that are kept of a stack.
_MOST_FRAMES: Final = 32
_TEXTS: Final = ("input_dims", "input_types", "input_strides", "concrete_inputs")
_MOST_TEXT: Final = 2000


class Spans:
    """Intervals of threads, gathered piece by piece: thread, start and end."""

    def __init__(self) -> None:
        self._parts: list[tuple[Int64s, Int64s, Int64s]] = []

    def gather(self, thread: Int64s, start: Int64s, end: Int64s) -> None:
        self._parts.append((thread, start, end))

    def all(self, base_ns: int) -> tuple[Int64s, Int64s, Int64s]:
        """All of them, with a number of ns added to the times. Frees the pieces."""
        none = (np.empty(0, np.int64),) * 3
        thread, start, end = map(np.concatenate, zip(none, *self._parts, strict=True))
        self._parts.clear()
        start += base_ns
        end += base_ns
        return thread, start, end


class Operations:
    """Gathers operators, the links of the backward pass, and the functions of Python around them."""

    def __init__(self) -> None:
        self._spans, self._functions = Spans(), Spans()
        self._names, self._function_names = Texts(), Texts()
        self._texts = {name: Texts() for name in _TEXTS}
        self._codes: dict[str, list[Codes]] = {name: [] for name in ("name", "function", *_TEXTS)}
        self._frames: dict[str, list[Int64s]] = {name: [] for name in ("function_id", "parent_id")}
        self._columns: dict[str, list[pa.Array]] = {"sequence": [], "forward_thread": []}
        self._links: dict[str, list[tuple[Int64s, Int64s, Int64s]]] = {"s": [], "f": []}

    def __bool__(self) -> bool:
        return bool(self._codes.get("name"))

    def gather(self, events: Sequence[Event], thread: Int64s, start: Int64s, end: Int64s) -> None:
        """Add operators, with their global thread ids and times in ns."""
        self._spans.gather(thread, start, end)
        self._codes["name"].append(self._names.codes([event.name for event in events]))
        arguments = arguments_of(events, OperatorArguments)
        for name, texts in self._texts.items():
            values = list(map(attrgetter(name), arguments))
            self._codes[name].append(
                texts.codes(_json(values)) if values.count(NO_TEXT) < len(values) else np.zeros(len(values), np.int32)
            )
        for name, parts in self._columns.items():
            parts.append(int_column(list(map(attrgetter(name), arguments))))

    def add_functions(self, events: Sequence[Event], thread: Int64s, start: Int64s, end: Int64s) -> None:
        """Add functions of Python, from which the stacks of operators are made."""
        self._functions.gather(thread, start, end)
        self._codes["function"].append(self._function_names.codes([event.name for event in events]))
        arguments = arguments_of(events, FunctionArguments)
        self._frames["function_id"].append(numbers([each.number for each in arguments]))
        self._frames["parent_id"].append(numbers([each.parent for each in arguments]))

    def add_links(self, phase: str, events: Sequence[Event], thread: Int64s) -> None:
        """Add ends of arrows from the forward pass, `s`, to the backward pass, `f`."""
        time, _ = times_ns([event.ts for event in events])
        self._links[phase].append((numbers([event.id for event in events]), thread, time))

    def table(
        self,
        base_ns: int,
        work: LaunchedWork,
        ranges: Innermost,
        by_time: ByTime,
        threads: Threads,
        processes: Sequence[int] | None = None,
    ) -> pa.Table:
        """The rows of `operations`. Frees what was gathered.

        Args:
            base_ns: what is added to every time.
            work: all device work of the trace.
            ranges, by_time: finders over the trace's ranges.
            threads: numbers of processes and threads.
            processes: codes of the processes whose operators are wanted; None for all.
        """
        thread, start, end = self._spans.all(base_ns)
        order = _ordered(thread, start, end, processes)
        thread, start, end = thread[order], start[order], end[order]
        innermost = Innermost(thread, start, end)
        parent = nesting.parents(thread, end)
        own, launches = _sums(innermost.at(work.thread, work.launched), work.end - work.start, len(order))
        inside = ranges.at(thread, start)
        of_step = by_time.at(thread, start, inside >= 0)
        forward = self._forward(base_ns, innermost, len(order), processes)
        del innermost
        number = np.arange(len(order))
        codes = {name: np.concatenate(self._codes.pop(name))[order] for name in ("name", *_TEXTS)}
        columns = {name: pa.concat_arrays(self._columns.pop(name)).take(pa.array(order)) for name in list(self._columns)}
        del order
        rows = pa.table(
            {
                "operation_id": number,
                "parent_id": _or_null(parent),
                "process": threads.process_numbers(process_of(thread)),
                "thread": threads.thread_numbers(thread),
                "start_ns": start,
                "end_ns": end,
                "name": self._names.column(codes["name"]),
                **{name: texts.column(codes[name]) for name, texts in self._texts.items()},
                **columns,
                "forward_id": _or_null(forward),
                "stack": self._stacks(base_ns, thread, start, processes),
                "launches": pa.array(launches.astype(np.int32)),
                "self_device_ns": own,
                "device_ns": _with_inner(own, parent),
                "range_id": _or_null(inside),
                "time_range_id": _or_null(of_step),
            }
        )
        return schema.OPERATIONS.bounded(rows)

    def _forward(self, base_ns: int, innermost: Innermost, count: int, processes: Sequence[int] | None) -> Int64s:
        """Operator of the forward pass of each operator of the backward pass."""
        forward = np.full(count, NONE)
        if not self._links["s"] or not self._links["f"]:
            return forward
        ends = [list(map(np.concatenate, zip(*self._links[phase], strict=True))) for phase in "sf"]
        if processes is not None:
            ends = [[column[np.isin(process_of(each[1]), processes)] for column in each] for each in ends]
        (begin_id, thread, time), (end_id, to_thread, to_time) = ends
        source, target = innermost.at(thread, time + base_ns), innermost.at(to_thread, to_time + base_ns)
        order = np.argsort(begin_id, kind="stable")
        place = np.minimum(np.searchsorted(begin_id[order], end_id), len(order) - 1)
        known = (begin_id[order][place] == end_id) & (target >= 0)
        forward[target[known]] = source[order][place[known]]
        return forward

    def _stacks(self, base_ns: int, thread: Int64s, start: Int64s, processes: Sequence[int] | None) -> pa.Array:
        """Functions of Python around each operator, the innermost first."""
        if not self._codes["function"]:
            return pa.DictionaryArray.from_arrays(pa.array(np.zeros(len(thread), np.int32)), pa.array([""], pa.string()))
        of_thread, begin, end = self._functions.all(base_ns)
        order = _ordered(of_thread, begin, end, processes)
        innermost = Innermost(of_thread[order], begin[order], end[order]).at(thread, start)
        names = np.concatenate(self._codes["function"])[order]
        ids, parents = (np.concatenate(self._frames[name])[order] for name in ("function_id", "parent_id"))
        place_of = dict(zip(ids.tolist(), range(len(ids)), strict=True))
        texts, codes = list(self._function_names.of), Texts()
        distinct, inverse = np.unique(innermost, return_inverse=True)
        found = []
        for place in distinct.tolist():
            frames: list[str] = []
            while place is not None and place >= 0 and len(frames) < _MOST_FRAMES:
                frames.append(texts[names[place]])
                place = place_of.get(int(parents[place]))
            found.append("\n".join(frames))
        return codes.column(codes.codes(found)[inverse])


def _ordered(thread: Int64s, start: Int64s, end: Int64s, processes: Sequence[int] | None) -> Int64s:
    """The places of the intervals of some processes, None for all, in the order of `nesting`."""
    if processes is None:
        return nesting.order(thread, start, end)
    own = np.flatnonzero(np.isin(process_of(thread), processes))
    return np.asarray(own[nesting.order(thread[own], start[own], end[own])])


def _json(values: Sequence[msgspec.Raw]) -> Sequence[str]:
    """Arguments as the trace has them. Bytes that are no UTF-8 are replaced."""
    return [bytes(value)[:_MOST_TEXT].decode("utf-8", "replace") for value in values]


def _sums(operation: Int64s, duration: Int64s, count: int) -> tuple[Int64s, Int64s]:
    """Time and number of what each operator launched."""
    has = operation >= 0
    launches = np.bincount(operation[has], minlength=count)
    time = np.zeros(count, np.int64)
    np.add.at(time, operation[has], duration[has])
    return np.minimum(time, FAR), launches


def _with_inner(own: Int64s, parent: Int64s) -> Int64s:
    """The sum over each operator and those inside it, from the deepest outwards."""
    total, depth = own.copy(), nesting.depths(parent)
    for level in range(int(depth.max(initial=0)), 0, -1):
        rows = np.flatnonzero(depth == level)
        np.add.at(total, parent[rows], total[rows])
    return total


def _or_null(place: npt.NDArray[Any]) -> pa.Array:
    return pa.array(place.astype(np.int64), mask=place < 0)
