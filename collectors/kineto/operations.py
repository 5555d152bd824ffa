"""The operators of PyTorch in a trace, with the device time of what they launched."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from operator import attrgetter
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from warpladder.collectors.kineto.columns import Codes, Texts, int_columns, numbers, raw_texts
from warpladder.collectors.kineto.events import Event, FunctionArguments, OperatorArguments, arguments_of, times_ns
from warpladder.collectors.kineto.spool import Spool
from warpladder.collectors.kineto.threads import Threads
from warpladder.collectors.trace.attribution import ByTime, LaunchedWork
from warpladder.collectors.trace.model import process_of
from warpladder.data import nesting, schema
from warpladder.data.arrays import NONE, Int64s, free_unused, heads, lookup, numbered
from warpladder.data.columns import FAR
from warpladder.data.nesting import Innermost

#: Frames of Python that are kept of a stack.
_MOST_FRAMES: Final = 32
_TEXTS: Final = ("input_dims", "input_types", "input_strides", "concrete_inputs")
_NUMBERS: Final = ("sequence", "forward_thread")
_MOST_TEXT: Final = 2000
#: Operators that are written at once, or as many more as lie within one.
_BLOCK_ROWS: Final = 1 << 16


class _Block(NamedTuple):
    """Operators in the order of `nesting`, none of which is open at the start of a later block.

    Attributes:
        first: number of the first of them among all.
        rows: their rows among those that were gathered.
    """

    first: int
    rows: Int64s
    thread: Int64s
    start: Int64s
    end: Int64s


class Operations:
    """Gathers operators, the links of the backward pass, and the functions of Python around them. `names`: of operators."""

    def __init__(self) -> None:
        self._operators, self._functions = Spool(), Spool()
        self.names, self._function_names = Texts(), Texts()
        self._texts = {name: Texts() for name in _TEXTS}
        self._links: dict[str, list[tuple[Int64s, Int64s, Int64s]]] = {"s": [], "f": []}

    def __bool__(self) -> bool:
        return self._operators.rows > 0

    def gather(self, events: Sequence[Event], name: Codes, thread: Int64s, start: Int64s, end: Int64s) -> None:
        """Add operators, with the codes of their names in `names`, their global thread ids and times in ns."""
        arguments = arguments_of(events, OperatorArguments)
        values = ((name, texts, list(map(attrgetter(name), arguments))) for name, texts in self._texts.items())
        codes = {name: texts.codes(raw_texts(raw, _MOST_TEXT)) for name, texts, raw in values}
        integers = int_columns(arguments, "sequence", "forward_thread")
        self._operators.add({"thread": thread, "start": start, "end": end, "name": name, **codes, **integers})

    def add_functions(self, events: Sequence[Event], thread: Int64s, start: Int64s, end: Int64s) -> None:
        """Add functions of Python, from which the stacks of operators are made."""
        name = self._function_names.codes([event.name for event in events])
        integers = int_columns(arguments_of(events, FunctionArguments), "number", "parent")
        self._functions.add({"thread": thread, "start": start, "end": end, "name": name, **integers})

    def add_links(self, phase: str, events: Sequence[Event], thread: Int64s) -> None:
        """Add ends of arrows from the forward pass, `s`, to the backward pass, `f`."""
        time, _ = times_ns([event.ts for event in events])
        self._links[phase].append((numbers([event.id for event in events]), thread, time))

    def tables(
        self,
        base_ns: int,
        work: LaunchedWork,
        ranges: Innermost,
        by_time: ByTime,
        threads: Threads,
        processes: Sequence[int] | None = None,
    ) -> Iterator[pa.Table]:
        """Yield the rows of `operations`, in parts.

        Args:
            base_ns: what is added to every time.
            work: all device work of the trace.
            ranges, by_time: finders over the trace's ranges.
            threads: numbers of processes and threads.
            processes: codes of the processes whose operators are wanted; None for all.
        """
        blocks = _Blocks(self._operators, base_ns, processes)
        stacks = _Stacks(self._functions, list(self._function_names.of), base_ns, processes)
        target, source = self._forward(base_ns, blocks, processes)
        free_unused()
        launches = blocks.split(work.thread, work.launched)
        for block, launched in zip(blocks, launches, strict=True):
            parent = nesting.parents(block.thread, block.end)
            caller = Innermost(*block[2:]).at(work.thread[launched], work.launched[launched])
            own, count = _sums(caller, work.end[launched] - work.start[launched], len(parent))
            forward = np.full(len(parent), NONE)
            linked = slice(*np.searchsorted(target, (block.first, block.first + len(parent))).tolist())
            forward[target[linked] - block.first] = source[linked]
            inside = ranges.at(block.thread, block.start)
            kept = self._operators.take(block.rows, ("name", *_TEXTS, *_NUMBERS))
            texts = {"name": self.names, **self._texts}
            columns = {
                "operation_id": np.arange(len(parent)) + block.first,
                "parent_id": _or_null(np.where(parent >= 0, parent + block.first, NONE)),
                "process": threads.process_numbers(process_of(block.thread)),
                "thread": threads.thread_numbers(block.thread),
                "start_ns": block.start,
                "end_ns": block.end,
                **{name: each.column(kept[name].combine_chunks()) for name, each in texts.items()},
                **{name: kept[name] for name in _NUMBERS},
                "forward_id": _or_null(forward),
                "stack": stacks.at(block.thread, block.start),
                "launches": pa.array(count.astype(np.int32)),
                "self_device_ns": own,
                "device_ns": _with_inner(own, parent),
                "range_id": _or_null(inside),
                "time_range_id": _or_null(by_time.at(block.thread, block.start, inside >= 0)),
            }
            yield schema.OPERATIONS.bounded(pa.table(columns))

    def _forward(self, base_ns: int, blocks: "_Blocks", processes: Sequence[int] | None) -> tuple[Int64s, Int64s]:
        """The operators of the backward pass, in their order, and that of the forward pass of each."""
        if not self._links["s"] or not self._links["f"]:
            return (np.empty(0, np.int64),) * 2
        ends = [list(map(np.concatenate, zip(*self._links[phase], strict=True))) for phase in "sf"]
        if processes is not None:
            ends = [[column[np.isin(process_of(each[1]), processes)] for column in each] for each in ends]
        (begin_id, thread, time), (end_id, to_thread, to_time) = ends
        source, target = blocks.innermost(thread, time + base_ns), blocks.innermost(to_thread, to_time + base_ns)
        order = np.argsort(begin_id, kind="stable")
        place = np.minimum(np.searchsorted(begin_id[order], end_id), len(order) - 1)
        known = np.flatnonzero((begin_id[order][place] == end_id) & (target >= 0))
        known = known[np.argsort(target[known], kind="stable")]
        return target[known], source[order][place[known]]


class _Blocks:
    """Cuts operators into blocks, so that columns of all of them are not needed at once.

    Args:
        operators: thread, start and end of all.
        base_ns, processes: as of `Operations.tables`.
    """

    def __init__(self, operators: Spool, base_ns: int, processes: Sequence[int] | None) -> None:
        thread, start, end = _spans(operators, base_ns)
        order = _ordered(thread, start, end, processes)
        # Each column takes the place of the one that it is sorted from, and a thread is kept once.
        thread = thread[order]
        self._first_of_thread = heads(thread)
        self._threads = thread[self._first_of_thread]
        del thread
        self._start = start = start[order]
        self._end = end = end[order]
        self._rows = order.astype(np.int32)
        del order
        cuts = [*self._first_of_thread.tolist(), len(start)]
        for first, last in pairwise([*cuts]):
            possible = np.flatnonzero(np.maximum.accumulate(end[first:last])[:-1] < start[first + 1 : last]) + first + 1
            cuts += _next(possible, np.arange(first + _BLOCK_ROWS, last, _BLOCK_ROWS)).tolist()
        possible = np.unique(cuts)
        chosen = _next(possible, np.arange(_BLOCK_ROWS, len(start), _BLOCK_ROWS))
        self._firsts = np.unique((0, *chosen.tolist(), len(start)))

    def __iter__(self) -> Iterator[_Block]:
        for first, last in pairwise(self._firsts.tolist()):
            thread = self._thread_of(np.arange(first, last))
            yield _Block(first, self._rows[first:last].astype(np.int64), thread, self._start[first:last], self._end[first:last])

    def _thread_of(self, place: Int64s) -> Int64s:
        """The thread of each operator, by its place among all."""
        return np.asarray(self._threads[np.searchsorted(self._first_of_thread, place, side="right") - 1])

    def split(self, thread: Int64s, time: Int64s) -> list[Int64s]:
        """For each block the rows whose time is one of its threads' and not before it."""
        order = np.lexsort((time, thread))
        thread, time, bounds = thread[order], time[order], []
        firsts = self._firsts[:-1]
        for first_thread, first_start in zip(self._thread_of(firsts).tolist(), self._start[firsts].tolist(), strict=True):
            own = slice(*(int(np.searchsorted(thread, first_thread, side=side)) for side in ("left", "right")))
            bounds.append(own.start + int(np.searchsorted(time[own], first_start)))
        return [order[begin:end] for begin, end in pairwise([*bounds, len(order)])]

    def innermost(self, thread: Int64s, time: Int64s) -> Int64s:
        """The number of the innermost operator at each time of a thread; `NONE` if none is open."""
        found = np.full(len(thread), NONE)
        for block, rows in zip(self, self.split(thread, time), strict=True):
            place = Innermost(*block[2:]).at(thread[rows], time[rows])
            found[rows] = np.where(place >= 0, place + block.first, NONE)
        return found


class _Stacks:
    """Functions of Python around operators. `names`: of functions, by their numbers."""

    def __init__(self, functions: Spool, names: Sequence[str], base_ns: int, processes: Sequence[int] | None) -> None:
        self._names = [*names, ""]
        if functions.rows:
            thread, begin, end = _spans(functions, base_ns)
            order = _ordered(thread, begin, end, processes)
            self._innermost = Innermost(thread[order], begin[order], end[order])
            name, number, parent = (column[order] for column in functions.arrays(("name", "number", "parent")))
            self._name = np.append(name, len(names))
            # Of functions with the same number, the last.
            above = lookup(number[::-1], parent)
            self._parent = np.append(np.where(above >= 0, len(order) - 1 - above, NONE), NONE)
        self._has_any = bool(functions.rows)

    def at(self, thread: Int64s, start: Int64s) -> pa.DictionaryArray:
        """The functions around each operator, the innermost first."""
        if not self._has_any:
            return pa.DictionaryArray.from_arrays(pa.array(np.zeros(len(thread), np.int32)), pa.array([""], pa.string()))
        innermost, inverse = np.unique(self._innermost.at(thread, start), return_inverse=True)
        place, frames = innermost, list[Int64s]()
        while len(frames) < _MOST_FRAMES and (place >= 0).any():
            frames.append(self._name[place])
            place = self._parent[place]
        number, first = numbered(*(frames or [innermost]))
        found = zip(*(frame[first].tolist() for frame in frames), strict=True)
        texts = ["\n".join(self._names[code] for code in codes if code < len(self._names) - 1) for codes in found] or [""]
        return pa.DictionaryArray.from_arrays(pa.array(number[inverse]), pa.array(texts, pa.string()))


def _next(possible: Int64s, wanted: Int64s) -> Int64s:
    """The first of some ascending places from each wanted one on, without those behind which there is none."""
    found = np.searchsorted(possible, wanted)
    return possible[found[found < len(possible)]]


def _spans(spool: Spool, base_ns: int) -> list[Int64s]:
    """Thread, start and end of each row."""
    thread, start, end = spool.arrays(("thread", "start", "end"))
    start += base_ns
    end += base_ns
    free_unused()
    return [thread, start, end]


def _ordered(thread: Int64s, start: Int64s, end: Int64s, processes: Sequence[int] | None) -> Int64s:
    """The places of the intervals of some processes, None for all, in the order of `nesting`."""
    if processes is None:
        return nesting.order(thread, start, end)
    own = np.flatnonzero(np.isin(process_of(thread), processes))
    return np.asarray(own[nesting.order(thread[own], start[own], end[own])])


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
