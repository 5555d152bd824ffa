"""The operations of a trace by their device time, each as the operator that is worth replacing.

**The operator of a piece of device work.** The work was launched inside nested operators, such as `linear` > `addmm`. It belongs to the
outermost of them that is one thing to replace: an operator that launches work itself, or one whose work is all launched inside a
single operator within it that is such a thing. So `linear` stands for its `addmm`, and `convolution_backward` for all of its kernels.
A `linear` that converts its weights before does not: its conversions and its product are several things.

An operator stands for one within it only if it takes no tensors of other types, since autocast converts in between. Where one of the
nested operators can be called again from what the trace has, an operator that cannot does not stand for it.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from warpladder.dashboard.core import aten, recorded_calls
from warpladder.dashboard.core.aten import Tensor, Work
from warpladder.dashboard.core.recorded_calls import NotRebuilt, Recorded
from warpladder.data.limits import arithmetic_of_products_ns, device_memory
from warpladder.data.store import Run

Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
_TEXTS: Final = ("input_dims", "input_types", "input_strides", "concrete_inputs")
_COLUMNS: Final = ("operation_id", "parent_id", "process", "thread", "start_ns", "end_ns", "name", "range_id", *_TEXTS)
_COMMUNICATION: Final = re.compile(r"^nccl|(?:nccl|rccl)(?:Dev)?Kernel")
_BETWEEN_HOST: Final = ("h2d", "d2h", "h2h", "unified_h2d", "unified_d2h")
_GRAPH: Final = "kernels of a CUDA graph: their operators ran when it was captured; profile a step without the graph"
_NO_WORK: Final = Work(0, 0, 0)
_NO_TEXT: Final = "the trace lacks its argument approximate, which is a text, and the names of its kernels do not tell it"
#: Kernels of a form whose names are read.
_MOST_LOOKED_AT: Final = 100
_NO_OPERATOR: Final = "launched outside of any operator of PyTorch"
_NO_LAUNCH: Final = "the trace lacks the launch, so that the operator is not known: profile from before the launch"
_COPIES: Final = "a copy between host and device; the page Transfers shows it"


class Kernel(NamedTuple):
    """A kernel of a call: its short and its whole name, and its blocks along each axis. Copies and sets have no blocks."""

    name: str
    full_name: str
    grid: tuple[int, ...]


@dataclass(frozen=True)
class Form:
    """Calls of an operator with equal shapes, types, strides and numbers.

    Attributes:
        name: of the case, which tells the form from the operator's others; empty for a form that cannot be called again.
        arguments: see `recorded_calls.arguments`, or the `Part`s of a chain; empty likewise.
        calls: in all steps.
        device_ns: their device time in all steps.
        median_ns: the median of a call.
        kernels: of the first call, in their order.
        work: the least that it must do.
        floor_ns: the least time that memory and arithmetic of this device take for that; NaN where it was not measured.
        number: of the form, in `HotOperations.form_of`; -1 for what belongs to no operator.
    """

    name: str
    arguments: tuple[Any, ...]
    calls: int
    device_ns: int
    median_ns: float
    kernels: tuple[Kernel, ...]
    work: Work
    floor_ns: float
    number: int = -1

    @property
    def worth_ns(self) -> float:
        """Device time above the floor in all steps; NaN where the floor is not known."""
        return self.device_ns - min(self.calls * self.floor_ns, self.device_ns) if self.floor_ns == self.floor_ns else np.nan


@dataclass(frozen=True)
class Operation:
    """An operator with tensors of certain types, and its calls by form.

    Attributes:
        name: of the operator, e.g. `aten::mm`.
        workload: name of its benchmark; empty where it cannot be called again.
        reason: why it cannot; empty otherwise.
        forms: by falling device time.
    """

    name: str
    workload: str
    reason: str
    forms: tuple[Form, ...]

    @property
    def calls(self) -> int:
        return sum(form.calls for form in self.forms)

    @property
    def device_ns(self) -> int:
        """Device time in all steps."""
        return sum(form.device_ns for form in self.forms)

    @property
    def floor_ns(self) -> float:
        """The floors of all calls; NaN where one is not known."""
        return float(sum(form.calls * form.floor_ns for form in self.forms))

    @property
    def worth_ns(self) -> float:
        """Device time above the floor in all steps; NaN where the floor is not known."""
        return float(sum(form.worth_ns for form in self.forms))


@dataclass(frozen=True)
class HotOperations:
    """The operations of a trace.

    Attributes:
        steps: number of steps; 1 where the trace has none, so that it counts as one.
        has_steps: whether the trace has steps.
        device_ns: time of all device work in them.
        operations: what can be called again before what cannot, each by falling worth, or device time where no floor is known.
        on_host: the trace has no device work, and the times are those of the operators on the host.
        form_of: the form of each piece of device work, in the order of the tables `kernels` and `memory_ops`; -1 for none.
    """

    steps: int
    has_steps: bool
    device_ns: int
    operations: tuple[Operation, ...]
    on_host: bool = False
    form_of: Int64s = field(default_factory=lambda: np.empty(0, np.int64), compare=False, repr=False)

    @property
    def time(self) -> str:
        """What is counted, in words."""
        return "time of operators on the host" if self.on_host else "device time"

    def share(self, operation: Operation) -> float:
        """Of the device time, from 0 to 1."""
        return operation.device_ns / max(self.device_ns, 1)


class Part(NamedTuple):
    """An operator of a chain: its name and arguments, and which of its tensors is the output of the one before; None for the first."""

    name: str
    arguments: tuple[Any, ...]
    takes: int | None


class Choice(NamedTuple):
    """Which operations are wanted. Empty texts choose all.

    Attributes:
        operator: name of an operator, which then stands for all of its work.
        kernel: a regular expression that a kernel's whole name must contain.
        within: text of a range: the calls inside.
        together: operators that follow one another as chains: point-wise ones, or all inside a range.
    """

    operator: str = ""
    kernel: str = ""
    within: str = ""
    together: bool = False


def hot_operations(run: Run, steps: tuple[Int64s, Int64s], ceilings: Mapping[str, float], choice: Choice) -> HotOperations:
    """The operations of a run that was imported from a trace of PyTorch's profiler.

    Args:
        run: with table `operations`.
        steps: starts and ends of the steps on the host, ns; empty for a trace without steps.
        ceilings: of the same device, by name; empty where none are known.
        choice: which operations are wanted.
    """
    calls, work = _Calls(run), _DeviceWork(run)
    on_host = not len(work.start)
    if on_host:
        work.take_host_time(calls)
    else:
        work.launched_by(calls, run)
    inside = _inside(work.called, *steps)
    owner = calls.owners(work, choice)
    _take_texts(calls, work, owner)
    wanted = inside & (owner >= 0)
    operations, form_of = _operations(calls, work, owner, wanted, ceilings, choice)
    found = [
        *operations,
        *([] if any(choice) or on_host else _without_operator(calls, work, owner, inside)),
    ]
    total = int(work.duration[inside].sum())
    return HotOperations(max(len(steps[0]), 1), bool(len(steps[0])), total, tuple(_ranked(found)), on_host, form_of)


def _ranked(found: list[Operation]) -> list[Operation]:
    def key(operation: Operation) -> tuple[bool, float, float]:
        worth = operation.worth_ns if operation.worth_ns == operation.worth_ns else float(operation.device_ns)
        return bool(operation.reason), -worth, -operation.device_ns

    return sorted(found, key=key)


def _inside(time: Int64s, begin: Int64s, end: Int64s) -> Bools:
    """Whether each time is inside of one of the intervals, which follow one another; all are where there is none."""
    if not len(begin):
        return np.ones(len(time), bool)
    place = np.searchsorted(begin, time, side="right") - 1
    return np.asarray((place >= 0) & (time < end[np.maximum(place, 0)]))


# -- tables ------------------------------------------------------------------------------------------------------------------------


def _integers(table: pa.Table, name: str, otherwise: int = 0) -> Int64s:
    return np.asarray(table.column(name).fill_null(otherwise).to_numpy(), np.int64)


def _coded(table: pa.Table, name: str) -> tuple[Int64s, list[str]]:
    """Codes of a text column, and its texts."""
    column = table.column(name).combine_chunks()
    column = column.chunk(0) if isinstance(column, pa.ChunkedArray) and column.num_chunks else column
    if isinstance(column, pa.ChunkedArray):
        return np.empty(0, np.int64), []
    column = column if isinstance(column, pa.DictionaryArray) else column.dictionary_encode()
    return np.asarray(column.indices.fill_null(0), np.int64), [each or "" for each in column.dictionary.to_pylist()]


#: The range that `torch.autograd.profiler.emit_nvtx` opens around an operator.
_OF_OPERATOR: Final = re.compile(
    r"(?P<name>[^,]{1,200}?)(?:, op_id = \d+)?(?:, seq = \d+)?(?:, sizes = (?P<sizes>\[.*?\]))?(?:, input_op_ids = .*)?"
)


def has_operators(run: Run) -> bool:
    """Whether a run has operators of PyTorch, as a table or as ranges of `emit_nvtx`."""
    return bool(run.rows("operations")) or bool(len(_from_ranges(run)))


def _from_ranges(run: Run) -> pa.Table:
    """Operators in the form of the table `operations`, from ranges such as `aten::mm, seq = 5, sizes = [[64, 1000], [1000, 512]]`."""
    ranges = run.arrow("ranges", ["range_id", "parent_id", "process", "thread", "start_ns", "end_ns", "text"])
    ranges = ranges.filter(ranges["end_ns"].is_valid())
    codes, texts = _coded(ranges, "text")
    matches = [_OF_OPERATOR.fullmatch(each) if each.startswith("aten::") else None for each in texts]
    chosen = np.array([match is not None for match in matches] or [False])[codes] if len(codes) else np.empty(0, bool)
    names, sizes = ([(match and match[group]) or "" for match in matches] for group in ("name", "sizes"))
    dictionaries = {"name": names, "input_dims": sizes, **dict.fromkeys(_TEXTS[1:], [""] * len(texts))}
    columns: dict[str, Any] = {
        "operation_id": ranges["range_id"],
        **{name: ranges[name] for name in ("parent_id", "process", "thread", "start_ns", "end_ns", "range_id")},
        **{name: pa.array(values, pa.string()).take(pa.array(codes)) for name, values in dictionaries.items()},
    }
    return pa.table({name: columns[name] for name in _COLUMNS}).filter(pa.array(chosen))


class _Calls:
    """Calls of operators, in the order of thread and start, so that a call comes before those inside it."""

    def __init__(self, run: Run) -> None:
        table = run.arrow("operations", _COLUMNS) if run.rows("operations") else _from_ranges(run)
        self._run = run
        self.start, self.end, self.range = (_integers(table, each, -1) for each in ("start_ns", "end_ns", "range_id"))
        self._process, self._thread = _integers(table, "process"), _integers(table, "thread")
        self._order = np.lexsort((-self.end, self.start, self._thread, self._process))
        self.parent = _places(_integers(table, "parent_id", -1), _integers(table, "operation_id"))
        self.name, self.names = _coded(table, "name")
        coded = {text: _coded(table, text) for text in _TEXTS}
        self._types, types = coded["input_types"]
        self._masks = np.array([_real_types(text) for text in types] or [0], np.int64)
        #: Equal numbers are calls of one form.
        self.form, first = _combined([self.name, *(codes for codes, _ in coded.values())])
        self._first = first
        self._texts = coded
        self.depth = _depths(self.parent)

    def __len__(self) -> int:
        return len(self.start)

    @cached_property
    def arguments(self) -> list[tuple[Any, ...] | str]:
        """The arguments of each form, or why it cannot be called again."""
        found: list[tuple[Any, ...] | str] = []
        for place in self._first.tolist():
            recorded = Recorded(*(texts[codes[place]] for codes, texts in self._texts.values()))
            try:
                found.append(recorded_calls.arguments(self.names[self.name[place]], recorded))
            except NotRebuilt as error:
                found.append(str(error))
        return found

    def name_of(self, form: int) -> str:
        return str(self.names[self.name[self._first[form]]])

    @cached_property
    def place_in_thread(self) -> Int64s:
        """The place of each call in the order of threads and starts."""
        place = np.empty(len(self), np.int64)
        place[self._order] = np.arange(len(self))
        return place

    def same_thread(self, first: Int64s, second: Int64s) -> Bools:
        """Whether calls are on the same thread, pair by pair."""
        alike: Bools = (self._process[first] == self._process[second]) & (self._thread[first] == self._thread[second])
        return alike

    def innermost(self, process: Int64s, thread: Int64s, time: Int64s) -> Int64s:
        """The call that is open on each thread at each time, the innermost; -1 for none."""
        if not len(self):
            return np.full(len(time), -1)
        ids, inverse = _threads(self._process, self._thread, process, thread)
        of_call, wanted = inverse[: len(self)][self._order], inverse[len(self) :]
        starts = self.start[self._order]
        begin, finish = np.searchsorted(of_call, np.arange(ids)), np.searchsorted(of_call, np.arange(ids), side="right")
        place = np.full(len(time), -1)
        for number in range(ids):
            rows = np.flatnonzero(wanted == number)
            among = starts[begin[number] : finish[number]]
            before = np.searchsorted(among, time[rows], side="right") - 1
            place[rows] = np.where(before >= 0, self._order[np.maximum(begin[number] + before, 0)], -1) if len(among) else -1
        while len(late := np.flatnonzero((place >= 0) & (self.end[np.maximum(place, 0)] <= time))):
            place[late] = self.parent[place[late]]
        return place

    def owners(self, work: "_DeviceWork", choice: Choice) -> Int64s:
        """The call that each piece of device work belongs to; -1 where there is none."""
        own = np.bincount(work.call[work.call >= 0], minlength=len(self))
        of_pytorch = np.array([name.startswith("aten::") for name in self.names] or [False])
        is_operator = of_pytorch[self.name] if len(self) else np.empty(0, bool)
        if choice.operator:
            named = np.array([name == choice.operator for name in self.names] or [False])
            stands = named[self.name] if len(self) else np.empty(0, bool)
            above = self._outermost(stands)
        else:
            stands = self._one_thing(own, is_operator)
            again = np.array([not isinstance(each, str) for each in self.arguments] or [False])
            callable_ = self._outermost(stands & again[self.form]) if len(self) else np.empty(0, np.int64)
            above = np.where(callable_ >= 0, callable_, self._outermost(stands))
        if choice.within:
            above = np.where(self.within(choice.within) >= 0, above, -1)
        return np.where(work.call >= 0, np.append(above, -1)[work.call], -1)

    def own_time(self) -> Int64s:
        """The duration of each call without those inside it, ns."""
        own = self.end - self.start
        inner = np.flatnonzero(self.parent >= 0)
        np.subtract.at(own, self.parent[inner], (self.end - self.start)[inner])
        return np.asarray(np.maximum(own, 0))

    def _one_thing(self, own: Int64s, is_operator: Bools) -> Bools:
        """Whether each call is one thing to replace."""
        total, busy, single = own.copy(), np.zeros(len(self), np.int64), np.full(len(self), -1)
        stands = is_operator & (own > 0)
        for level in range(int(self.depth.max(initial=0)), -1, -1):
            rows = np.flatnonzero((self.depth == level) & (total > 0))
            within = single[rows]
            masks = self._masks[self._types[rows]] & ~self._masks[self._types[np.maximum(within, 0)]]
            alone = (own[rows] == 0) & (busy[rows] == 1) & stands[np.maximum(within, 0)] & (masks == 0)
            stands[rows] |= is_operator[rows] & alone
            up = rows[self.parent[rows] >= 0]
            np.add.at(total, self.parent[up], total[up])
            np.add.at(busy, self.parent[up], 1)
            single[self.parent[up]] = up
        return stands

    def _outermost(self, stands: Bools) -> Int64s:
        """For each call the outermost one, itself or around it, that stands for its work; -1 for none."""
        above = np.full(len(self), -1)
        for level in range(int(self.depth.max(initial=0)) + 1):
            rows = np.flatnonzero(self.depth == level)
            outer = np.where(self.parent[rows] >= 0, above[np.maximum(self.parent[rows], 0)], -1)
            above[rows] = np.where(outer >= 0, outer, np.where(stands[rows], rows, -1))
        return above

    def within(self, text: str) -> Int64s:
        """For each call the outermost range around it whose text contains this text; -1 for none. An empty text has no ranges."""
        if not text:
            return np.full(len(self), -1)
        ranges = self._run.arrow("ranges", ["range_id", "parent_id", "text"])
        codes, texts = _coded(ranges, "text")
        named = np.append(
            np.array([text in each for each in texts] or [False])[codes] if len(codes) else np.empty(0, bool), False
        )
        ids = _integers(ranges, "range_id")
        parent = np.append(_places(_integers(ranges, "parent_id", -1), ids), -1)
        at = _places(self.range, ids)
        found = np.full(len(self), -1)
        while (at >= 0).any():
            found = np.where(named[at], at, found)
            at = parent[at]
        return found


def _places(wanted: Int64s, ids: Int64s) -> Int64s:
    """The place of each id; -1 for those that are not there."""
    if not len(ids):
        return np.full(len(wanted), -1)
    order = np.argsort(ids, kind="stable")
    place = np.minimum(np.searchsorted(ids[order], wanted), len(ids) - 1)
    return np.where(ids[order][place] == wanted, order[place], -1)


def _depths(parent: Int64s) -> Int64s:
    depth, at = np.zeros(len(parent), np.int64), parent.copy()
    while (at >= 0).any():
        depth += at >= 0
        at = np.where(at >= 0, np.append(parent, -1)[at], -1)
    return depth


def _combined(codes: Sequence[Int64s]) -> tuple[Int64s, Int64s]:
    """One number for each combination of codes, and the first place of each number. Numbers are in the order of first places."""
    joined = codes[0]
    for further in codes[1:]:
        _, joined = np.unique(joined * (int(further.max(initial=0)) + 1) + further, return_inverse=True)
    _, first, inverse = np.unique(joined, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return rank[inverse], first[order]


def _threads(process: Int64s, thread: Int64s, *wanted: Int64s) -> tuple[int, Int64s]:
    """Numbers for the threads of two tables, and how many there are."""
    of_process = np.unique(np.concatenate((process, wanted[0])), return_inverse=True)[1]
    of_thread = np.unique(np.concatenate((thread, wanted[1])), return_inverse=True)[1]
    ids, inverse = np.unique(of_process * (int(of_thread.max(initial=0)) + 1) + of_thread, return_inverse=True)
    return len(ids), inverse


def _real_types(text: str) -> int:
    """Which types of real numbers stand in a list of types, as bits."""
    return sum(
        1 << place for place, name in enumerate(aten.TYPES) if aten.TYPES[name] not in aten.WHOLE and f'"{name}"' in text
    )


class _DeviceWork:
    """Kernels, copies and sets.

    Attributes:
        called: when each was launched; its own start where the trace lacks the call, which is not `has_launch`.
        call: the operator's call that launched it; -1 for none.
    """

    def __init__(self, run: Run) -> None:
        kernels = run.arrow(
            "kernels",
            ["process", "correlation", "start_ns", "end_ns", "name", "full_name", "graph_id", "grid_x", "grid_y", "grid_z"],
        )
        copies = run.arrow("memory_ops", ["process", "correlation", "start_ns", "end_ns", "kind"])
        self.kernels = len(kernels)
        self._kernels = kernels
        self.start, end, self.process, self.correlation = (
            np.concatenate((_integers(kernels, name), _integers(copies, name)))
            for name in ("start_ns", "end_ns", "process", "correlation")
        )
        self.duration = end - self.start
        self.full, self.full_names = _coded(kernels, "full_name")
        self.short, self.short_names = _coded(kernels, "name")
        self.kind, self.kinds = _coded(copies, "kind")
        self.in_graph = np.append(kernels["graph_id"].is_valid().to_numpy(), np.zeros(len(copies), bool)).astype(bool)
        self.called, self.call, self.has_launch = self.start, np.full(len(self.start), -1), np.zeros(len(self.start), bool)

    def launched_by(self, calls: _Calls, run: Run) -> None:
        """Find the launches."""
        api = run.arrow("api_calls", ["process", "correlation", "thread", "start_ns", "name"])
        _, key = _threads(_integers(api, "process"), _integers(api, "correlation"), self.process, self.correlation)
        at = _places(key[len(api) :], key[: len(api)])
        known = np.flatnonzero((at >= 0) & (self.correlation > 0))
        thread, start, process = (_integers(api, name)[at[known]] for name in ("thread", "start_ns", "process"))
        code, names = _coded(api, "name")
        self.in_graph[known] |= np.array(["GraphLaunch" in name for name in names] or [False])[code[at[known]]]
        self.called, self.has_launch = self.start.copy(), np.zeros(len(at), bool)
        self.called[known], self.has_launch[known] = start, True
        self.call[known] = calls.innermost(process, thread, start)

    def take_host_time(self, calls: _Calls) -> None:
        """Take the own time of each call on the host in place of device work, for a trace without any."""
        self.duration = calls.own_time()
        count = len(self.duration)
        self.start = self.called = calls.start
        self.call, self.has_launch = np.arange(count), np.ones(count, bool)
        self.in_graph, self.kind, self.kinds = np.zeros(count, bool), np.zeros(count, np.int64), [""]

    @cached_property
    def between_host(self) -> Bools:
        """Whether each is a copy from or to the host."""
        host = np.array([kind in _BETWEEN_HOST for kind in self.kinds] or [False])
        return np.append(np.zeros(self.kernels, bool), host[self.kind] if len(self.kind) else np.empty(0, bool)).astype(bool)

    def kernel(self, place: int) -> Kernel:
        """One of them as it is compared with a recording."""
        if place >= self.kernels:
            kind = self.kinds[self.kind[place - self.kernels]]
            return Kernel(kind, kind, ())
        grid = tuple(self._kernels.column(f"grid_{axis}")[place].as_py() or 0 for axis in "xyz")
        return Kernel(self.short_names[self.short[place]], self.full_names[self.full[place]], grid)

    def matching(self, pattern: re.Pattern[str]) -> Bools:
        """Whether the name of each kernel contains a match; copies and sets do not."""
        named = np.array([bool(pattern.search(name)) for name in self.full_names] or [False])
        return np.append(named[self.full] if len(self.full) else np.empty(0, bool), np.zeros(len(self.kind), bool)).astype(bool)


# -- operations ----------------------------------------------------------------------------------------------------------------------


class _Described(NamedTuple):
    """A form: the name of its operator, its arguments, why it cannot be called again or an empty text, and the least that it must do."""

    name: str
    arguments: tuple[Any, ...]
    reason: str
    least: Work


def _operations(
    calls: _Calls, work: _DeviceWork, owner: Int64s, wanted: Bools, ceilings: Mapping[str, float], choice: Choice
) -> tuple[list[Operation], Int64s]:
    """The operators that own the wanted work, or chains of them, and the number of the form of each piece of work."""
    form_of = np.full(len(owner), -1)
    if choice.together:
        head, form, described = _chains(calls, np.unique(owner[wanted]), choice.within)
        owner = np.where(owner >= 0, head[owner], -1)
        wanted = wanted & (owner >= 0)
    else:
        form, described = calls.form, [_described(calls, number) for number in range(len(calls.arguments))]
    rows = np.flatnonzero(wanted)
    if not len(rows):
        return [], form_of
    form_of[rows] = form[owner[rows]]
    rows = rows[np.lexsort((work.called[rows], owner[rows]))]
    owners, first = np.unique(owner[rows], return_index=True)
    time = np.add.reduceat(work.duration[rows], first)
    host = np.logical_or.reduceat(work.between_host[rows], first)
    matches = np.logical_or.reduceat(work.matching(re.compile(choice.kernel))[rows], first) if choice.kernel else None
    last = np.append(first[1:], len(rows))
    groups: dict[tuple[str, str, str], list[Form]] = {}
    namer = _Namer()
    order = np.argsort(form[owners], kind="stable")
    numbers, begin = np.unique(form[owners][order], return_index=True)
    for number, places in zip(numbers.tolist(), np.split(order, begin[1:]), strict=True):
        name, arguments, reason, least = described[number]
        if not reason and host[places].any():
            arguments, reason, least = (), _COPIES, _NO_WORK
        workload, case = ("", "") if reason else namer.names(name, arguments)
        if matches is not None and not matches[places].any():
            continue
        kernels = tuple(map(work.kernel, rows[first[places[0]] : last[places[0]]].tolist())) if work.kernels else ()
        groups.setdefault((name, workload, reason), []).append(
            Form(
                case,
                arguments,
                len(places),
                int(time[places].sum()),
                float(np.median(time[places])),
                kernels,
                least,
                np.nan if reason else floor_ns(least, arguments, ceilings),
                number,
            )
        )
    operations = [
        Operation(name, workload, reason, tuple(sorted(forms, key=lambda form: -form.device_ns)))
        for (name, workload, reason), forms in groups.items()
    ]
    return operations, form_of


def _take_texts(calls: _Calls, work: _DeviceWork, owner: Int64s) -> None:
    """Complete the arguments of forms whose last one is a text that the names of their kernels tell."""
    form = np.where(owner >= 0, np.append(calls.form, -1)[owner], -1)
    for number, found in enumerate(calls.arguments):
        if isinstance(found, tuple) and aten.plain(calls.name_of(number)) in aten.BY_KERNEL:
            rows = np.flatnonzero(form == number)[:_MOST_LOOKED_AT]
            text = aten.approximation(work.kernel(row).full_name for row in rows.tolist())
            calls.arguments[number] = (*found[:-1], text) if text else _NO_TEXT


def _described(calls: _Calls, number: int) -> _Described:
    name, found = calls.name_of(number), calls.arguments[number]
    if isinstance(found, str):
        return _Described(name, (), found, _NO_WORK)
    return _Described(name, found, "", aten.work(name, found))


# -- chains ---------------------------------------------------------------------------------------------------------------------------

#: Operators of a chain. Longer ones are several chains.
_LONGEST: Final = 16


def _chains(calls: _Calls, owners: Int64s, within: str) -> tuple[Int64s, Int64s, list[_Described]]:
    """Operators that follow one another on a thread, each of which takes a tensor that is as the output of the one before.

    A trace does not tell which tensor is which: a tensor of the same shape, type and strides is taken for the output of the operator
    before. Of several, it is the first.

    Args:
        calls: all calls.
        owners: places of the calls that own device work.
        within: text of ranges. A chain ends with its range, and operators that are not point-wise can be in it. Empty for chains of
            point-wise operators, wherever they are.

    Returns:
        For each call the first call of its chain, -1 outside of any; for each call the number of the chain that it begins; and what these
        numbers mean.
    """
    sequence = owners[np.argsort(calls.place_in_thread[owners], kind="stable")]
    forms = calls.form[sequence]
    takes = np.full(len(sequence), -1)
    if len(sequence) > 1:
        pairs, of = np.unique(np.stack((forms[:-1], forms[1:])), axis=1, return_inverse=True)
        linked = np.array([_takes(calls, before, after, bool(within)) for before, after in pairs.T.tolist()])
        around = calls.within(within)[sequence]
        joined = calls.same_thread(sequence[:-1], sequence[1:]) & (around[:-1] == around[1:])
        takes[1:] = np.where(joined, linked[of.ravel()], -1)
    begins = np.flatnonzero(takes < 0)
    place = np.arange(len(sequence)) - begins[np.cumsum(takes < 0) - 1] if len(sequence) else takes
    takes[place % _LONGEST == 0] = -1
    begins = np.flatnonzero(takes < 0)
    lengths = np.diff(np.append(begins, len(sequence)))
    code = np.zeros(len(begins), np.int64)
    for position in range(int(lengths.max(initial=0))):
        at = np.where(lengths > position, np.append(forms, -1)[np.minimum(begins + position, len(forms))], -1)
        code = np.unique(code * (int(forms.max()) + 2) + at + 1, return_inverse=True)[1]
    head, form = np.full(len(calls), -1), np.zeros(len(calls), np.int64)
    chains = np.flatnonzero(lengths > 1)
    members = np.repeat(lengths > 1, lengths)
    head[sequence[members]] = np.repeat(sequence[begins], lengths)[members]
    numbers, first, inverse = np.unique(code[chains], return_index=True, return_inverse=True)
    form[sequence[begins[chains]]] = inverse
    described = []
    for chain in chains[first].tolist()[: len(numbers)]:
        span = range(begins[chain], begins[chain] + lengths[chain])
        parts = [(int(forms[each]), None if takes[each] < 0 else int(takes[each])) for each in span]
        described.append(_of_chain(calls, parts))
    return head, form, described


def _takes(calls: _Calls, before: int, after: int, everything: bool) -> int:
    """Which tensor of a call is as the output of the call before; -1 for none, and where one of them is in no chain.

    Args:
        before, after: forms.
        everything: whether operators that are not point-wise can be in a chain.
    """
    first, second = calls.arguments[before], calls.arguments[after]
    if isinstance(first, str) or isinstance(second, str):
        return -1
    names = calls.name_of(before), calls.name_of(after)
    if not everything and not all(aten.plain(name).rstrip("_") in aten.POINTWISE for name in names):
        return -1
    if aten.plain(names[0]) in ("zero_", "fill_"):  # for memory that another operator writes to
        return -1
    output = aten.output(names[0], first)
    tensors = [each for each in second if isinstance(each, Tensor) and 0 not in each.shape]
    return tensors.index(output) if output in tensors else -1


def _of_chain(calls: _Calls, parts: Sequence[tuple[int, int | None]]) -> _Described:
    found = []
    read = flops = 0
    for number, takes in parts:
        name, arguments = calls.name_of(number), calls.arguments[number]
        assert not isinstance(arguments, str)
        found.append(Part(name, arguments, takes))
        least = aten.work(name, arguments)
        tensors = [each for each in arguments if isinstance(each, Tensor) and 0 not in each.shape]
        read += sum(each.bytes for place, each in enumerate(tensors) if place != takes)
        flops += least.flops
    written = least.written
    return _Described(", ".join(part.name for part in found), tuple(found), "", Work(read, written, flops))


def _without_operator(calls: _Calls, work: _DeviceWork, owner: Int64s, inside: Bools) -> list[Operation]:
    """Device work that belongs to no operator of PyTorch, by what launched it."""
    rows = np.flatnonzero(inside & (owner < 0))
    if not len(rows):
        return []
    talks = work.matching(_COMMUNICATION)
    called = work.call[rows]
    name = np.where(called >= 0, np.append(calls.name, 0)[called], len(calls.names))
    marks = (talks, work.in_graph, work.between_host, work.has_launch, np.arange(len(talks)) < work.kernels)
    kind, first = _combined([name, *(mark[rows].astype(np.int64) for mark in marks)])
    times: dict[tuple[str, str], list[Int64s]] = {}
    for number, row in enumerate(rows[first].tolist()):
        times.setdefault(_launched(calls, work, talks, row), []).append(work.duration[rows[kind == number]])
    found = []
    for (text, reason), parts in times.items():
        each = np.concatenate(parts)
        form = Form("", (), len(each), int(each.sum()), float(np.median(each)), (), _NO_WORK, np.nan)
        found.append(Operation(text, "", reason, (form,)))
    return found


def _launched(calls: _Calls, work: _DeviceWork, talks: Bools, row: int) -> tuple[str, str]:
    """What launched a piece of work, and why that cannot be called again."""
    call = int(work.call[row])
    if call >= 0:
        name = calls.names[calls.name[call]]
        reason = recorded_calls.refusal_of_name("nccl:" if talks[row] else name)
        return name, reason or "several operators launch its work"
    if talks[row]:
        return "[collectives]", recorded_calls.refusal_of_name("nccl:")
    if work.in_graph[row]:
        return "[CUDA graph]", _GRAPH
    if work.between_host[row]:
        return "[copies]", _COPIES
    what = "[kernels]" if row < work.kernels else "[copies and sets on the device]"
    return what, _NO_OPERATOR if work.has_launch[row] else _NO_LAUNCH


def floor_ns(least: Work, arguments: tuple[Any, ...], ceilings: Mapping[str, float]) -> float:
    """The least time of a call by memory and, for products in float32, by tensor cores; NaN where it was not measured."""
    memory = float(device_memory(ceilings).time_ns(least.read, least.written))
    types = {each.dtype for each in _tensors(arguments)}
    arithmetic = arithmetic_of_products_ns(least.flops, ceilings) if types == {"float32"} else np.nan
    return float(np.fmax(memory, arithmetic))


# -- names ---------------------------------------------------------------------------------------------------------------------------

_SUFFIXES: Final = {
    "float32": "",
    "bfloat16": "bf16",
    "float16": "fp16",
    "float64": "fp64",
    "float8_e4m3fn": "fp8",
    "float8_e5m2": "fp8",
}
_MOST_SHAPES: Final = 3
_MOST_NAMES: Final = 4


def _short(name: str) -> str:
    """The name of an operator as a part of a name of Python."""
    short = aten.plain(name)
    return f"{short.strip('_')}_in_place" if short.endswith("_") and not short.endswith("__") else short.strip("_")


def _tensors(arguments: tuple[Any, ...]) -> Iterator[Tensor]:
    """The tensors of a call, or the inputs of a chain."""
    for part in arguments:
        if isinstance(part, Part):
            tensors = [each for each in part.arguments if isinstance(each, Tensor) and 0 not in each.shape]
            yield from (each for place, each in enumerate(tensors) if place != part.takes)
        elif isinstance(part, Tensor):
            yield part


def _kinds(arguments: tuple[Any, ...]) -> Iterator[str]:
    """What each argument is: the type of a tensor, or nothing; of a chain also what it takes."""
    for part in arguments:
        if isinstance(part, Part):
            yield f"takes {part.takes}"
            yield from _kinds(part.arguments)
        else:
            yield part.dtype if isinstance(part, Tensor) else ""


class _Namer:
    """Names benchmarks and cases. The same trace gives the same names, whatever is chosen of it."""

    def __init__(self) -> None:
        self._workloads: dict[tuple[str, tuple[str, ...]], str] = {}
        self._cases: dict[str, dict[str, int]] = {}

    def names(self, name: str, arguments: tuple[Any, ...]) -> tuple[str, str]:
        """The names of the benchmark and of the case."""
        tensors = list(_tensors(arguments))
        kinds = tuple(_kinds(arguments))
        workload = self._workloads.get((name, kinds)) or self._new(name, kinds, tensors)
        self._workloads[name, kinds] = workload
        shapes = ["x".join(map(str, each.shape)) or "1" for each in tensors if 0 not in each.shape]
        more = f" +{len(shapes) - _MOST_SHAPES}" if len(shapes) > _MOST_SHAPES else ""
        case = " ".join(shapes[:_MOST_SHAPES]) + more
        taken = self._cases.setdefault(workload, {})
        taken[case] = number = taken.get(case, 0) + 1
        return workload, case if number == 1 else f"{case} #{number}"

    def _new(self, name: str, kinds: tuple[str, ...], tensors: Sequence[Tensor]) -> str:
        real = next((each.dtype for each in tensors if each.dtype not in aten.WHOLE), tensors[0].dtype)
        parts = list(map(_short, name.split(", ")))
        if len(parts) > _MOST_NAMES:
            parts = [f"{parts[0]}_to_{parts[-1]}_{len(parts)}"]
        base = "_".join(filter(None, ("aten", *parts, _SUFFIXES.get(real, real))))
        number = sum(
            each == base or re.fullmatch(rf"{re.escape(base)}_\d+", each) is not None for each in self._workloads.values()
        )
        return f"{base}_{number + 1}" if number else base
