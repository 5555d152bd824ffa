"""The calls of PyTorch's operators in a trace, the device work that they launched, and which operator that work belongs to.

**The operator of a piece of device work.** The work was launched inside nested operators, such as `linear` > `addmm`. It belongs to the
outermost of them that is one thing to replace: an operator that launches work itself, or one whose work is all launched inside a
single operator within it that is such a thing. So `linear` stands for its `addmm`, and `convolution_backward` for all of its kernels.
A `linear` that converts its weights before does not: its conversions and its product are several things.

An operator stands for one within it only if it takes no tensors of other types, since autocast converts in between. Where one of the
nested operators can be called again from what the trace has, an operator that cannot does not stand for it.
"""

import re
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from warpladder.dashboard.core.operations import aten, recorded_calls
from warpladder.dashboard.core.operations.recorded_calls import NotRebuilt, Recorded
from warpladder.data.arrays import NONE, Bools, Int64s, Launches, coded, integers, lookup, numbered
from warpladder.data.nesting import Innermost, depths
from warpladder.data.schema import CUDA_GRAPH
from warpladder.data.store import Run

_TEXTS: Final = ("input_dims", "input_types", "input_strides", "concrete_inputs")
_COLUMNS: Final = ("operation_id", "parent_id", "process", "thread", "start_ns", "end_ns", "name", "range_id", *_TEXTS)
_TEXT: Final = pa.dictionary(pa.int32(), pa.string())
_OPERATORS: Final = pa.schema([(name, _TEXT if name in (*_TEXTS, "name") else pa.int64()) for name in _COLUMNS])
#: In the names of calls that launch a CUDA graph.
_LAUNCHES_GRAPH: Final = "GraphLaunch"
#: The node of autograd that adds a gradient to a parameter's own.
_ADDS_GRADIENT: Final = "torch::autograd::AccumulateGrad"
_BETWEEN_HOST: Final = ("h2d", "d2h", "h2h", "unified_h2d", "unified_d2h")


class Kernel(NamedTuple):
    """A kernel of a call: its short and its whole name, and its blocks along each axis. Copies and sets have no blocks."""

    name: str
    full_name: str
    grid: tuple[int, ...]


#: The range that `torch.autograd.profiler.emit_nvtx` opens around an operator.
_OF_OPERATOR: Final = re.compile(
    r"(?P<name>[^,]{1,200}?)(?:, op_id = \d+)?(?:, seq = \d+)?(?:, sizes = (?P<sizes>\[.*?\]))?(?:, input_op_ids = .*)?"
)


def _those(codes: Int64s, texts: Sequence[str], test: Callable[[str], object]) -> Bools:
    """Which of the rows, given by their codes, have a text that passes a test."""
    passes: Bools = np.array([bool(test(text)) for text in texts] or [False])
    return passes[codes]


def has_operators(run: Run) -> bool:
    """Whether a run has operators of PyTorch, as a table or as ranges of `emit_nvtx`."""
    return bool(run.rows("operations")) or bool(len(_from_ranges(run)))


def has_graphs(run: Run) -> bool:
    """Whether a run has launches of CUDA graphs."""
    calls = run.arrow("api_calls", ["name"])["name"].unique().to_pylist()
    in_graph = integers(run.arrow("kernels", ["graph_id"])["graph_id"]) > 0
    return any(_LAUNCHES_GRAPH in name for name in calls) or bool(in_graph.any())


def _from_ranges(run: Run) -> pa.Table:
    """Operators in the form of the table `operations`, from ranges such as `aten::mm, seq = 5, sizes = [[64, 1000], [1000, 512]]`."""
    ranges = run.arrow("ranges", ["range_id", "parent_id", "process", "thread", "start_ns", "end_ns", "text"])
    ranges = ranges.filter(ranges["end_ns"].is_valid())
    codes, texts = coded(ranges["text"])
    matches = [_OF_OPERATOR.fullmatch(each) if each.startswith("aten::") else None for each in texts]
    names, sizes = ([(match and match[group]) or "" for match in matches] for group in ("name", "sizes"))
    dictionaries = {"name": names, "input_dims": sizes, **dict.fromkeys(_TEXTS[1:], [""] * len(texts))}
    columns: dict[str, Any] = {
        "operation_id": ranges["range_id"],
        **{name: ranges[name] for name in ("parent_id", "process", "thread", "start_ns", "end_ns", "range_id")},
        **{name: pa.array(values, pa.string()).take(pa.array(codes)) for name, values in dictionaries.items()},
    }
    return pa.table({name: columns[name] for name in _COLUMNS}).filter(pa.array(_those(codes, names, len)))


class Calls:
    """Calls of operators, in the order of `nesting`, which is that of the tables."""

    def __init__(self, table: pa.Table, runs: Sequence[Run], of_run: Int64s) -> None:
        """Take a table of operators, and the runs that they are of, with the number of the run of each call."""
        self._table, self._runs, self._of_run = table, tuple(runs), of_run
        self.start, self.end, self.range = (integers(table[each], -1) for each in ("start_ns", "end_ns", "range_id"))
        self._process, self._thread = integers(table["process"]), integers(table["thread"])
        self.parent = lookup(integers(table["operation_id"]), integers(table["parent_id"], -1))
        self.name, self.names = coded(table["name"])
        texts = {text: coded(table[text]) for text in _TEXTS}
        self._types, types = texts["input_types"]
        self._masks = np.array([_real_types(text) for text in types] or [0], np.int64)
        #: Equal numbers are calls of one form.
        self.form, first = numbered(self.name, *(codes for codes, _ in texts.values()))
        self._first = first
        self._texts = texts
        self.depth = depths(self.parent)

    @classmethod
    def of(cls, run: Run) -> "Calls":
        """The calls of a trace."""
        table = run.arrow("operations", _COLUMNS) if run.rows("operations") else _from_ranges(run)
        return cls(table, (run,), np.zeros(len(table), np.int64))

    def with_copies(self, other: "Calls", rows: Int64s, copy: Int64s) -> "Calls":
        """These calls, and after them copies of calls of another trace.

        Args:
            other: the calls of the other trace.
            rows: places of calls in it, ascending in each copy. A call comes with the calls around it.
            copy: the number of the copy that each is for. Every copy is a process of its own.
        """
        number = np.arange(len(rows))
        own, taken = (table.cast(_OPERATORS) for table in (self._table, other._table.take(pa.array(rows))))
        processes, ids = (int(integers(own[name]).max(initial=-1)) + 1 for name in ("process", "operation_id"))
        key = copy * (len(other) + 1)
        parent = lookup(key + rows, np.where(other.parent[rows] >= 0, key + other.parent[rows], -1))
        columns = {
            "operation_id": ids + number,
            "parent_id": np.where(parent >= 0, ids + parent, -1),
            "process": processes + copy,
        }
        for name, values in columns.items():
            taken = taken.set_column(taken.schema.get_field_index(name), name, pa.array(values))
        table = pa.concat_tables([own, taken]).unify_dictionaries()
        runs, of_run = (*self._runs, *other._runs), other._of_run[rows] + len(self._runs)
        return Calls(table, runs, np.append(self._of_run, of_run))

    def __len__(self) -> int:
        return len(self.start)

    @cached_property
    def arguments(self) -> list[tuple[Any, ...] | str]:
        """The arguments of each form, or why it cannot be called again."""
        found: list[tuple[Any, ...] | str] = []
        for place in self._first.tolist():
            name = self.names[self.name[place]]
            recorded = self._recorded(place)
            try:
                if aten.plain(name) in aten.OPTIMIZERS and (gradients := self._gradients(place)):
                    recorded = recorded_calls.with_gradients(name, recorded, gradients)
                found.append(recorded_calls.arguments(name, recorded))
            except NotRebuilt as error:
                found.append(str(error))
        return found

    def _recorded(self, place: int) -> Recorded:
        return Recorded(*(texts[codes[place]] for codes, texts in self._texts.values()))

    def _gradients(self, first: int) -> list[aten.Tensor]:
        """The gradients that a fused optimiser takes, from the calls before it that add them; none where it shares them with others.

        Traces lack the shapes of long lists. Of several backward passes before a step of the optimiser, each adds the same gradients.

        Args:
            first: place of the first call of the optimiser's form; its last one is looked at, since a trace may begin within a step.
        """
        place = int(np.flatnonzero(self.form == self.form[first])[-1])
        own = self._process == self._process[place]
        is_step = _those(self.name, self.names, lambda name: aten.plain(name) in aten.OPTIMIZERS)
        steps = np.sort(self.start[own & is_step])
        before = steps[steps < self.start[place]]
        added = np.flatnonzero(own & _those(self.name, self.names, lambda name: name == _ADDS_GRADIENT))
        since = int(before[-1]) if len(before) else -1
        window = added[(self.start[added] > since) & (self.start[added] < self.start[place])]
        after = steps[steps > self.start[place]]
        shared = len(after) and not ((self.start[added] > self.start[place]) & (self.start[added] < after[0])).any()
        found = [recorded_calls.gradient(self._recorded(each)) for each in window[np.argsort(self.start[window])].tolist()]
        if shared or not found or None in found:
            return []
        count = len(found)
        period = next(n for n in range(1, count + 1) if count % n == 0 and found == found[:n] * (count // n))
        return [each for each in found[:period] if each is not None]

    def name_of(self, form: int) -> str:
        return str(self.names[self.name[self._first[form]]])

    def same_thread(self, first: Int64s, second: Int64s) -> Bools:
        """Whether calls are on the same thread, pair by pair."""
        alike: Bools = (self._process[first] == self._process[second]) & (self._thread[first] == self._thread[second])
        return alike

    def innermost(self, process: Int64s, thread: Int64s, time: Int64s) -> Int64s:
        """The call that is open on each thread at each time, the innermost; -1 for none."""
        number, _ = numbered(np.append(self._process, process), np.append(self._thread, thread))
        return Innermost(number[: len(self)], self.start, self.end).at(number[len(self) :], time)

    def owners(self, work: "OperatorWork", operator: str, within: str) -> Int64s:
        """The call that each piece of device work belongs to; -1 where there is none.

        Args:
            work: all device work.
            operator: the name of the operator that all work inside it belongs to; empty for the rule of this module.
            within: text of the ranges whose calls are wanted; empty for all.
        """
        own = np.bincount(work.call[work.call >= 0], minlength=len(self))
        if operator:
            above = self._outermost(_those(self.name, self.names, lambda name: name == operator))
        else:
            stands = self._one_thing(own, _those(self.name, self.names, lambda name: name.startswith("aten::")))
            again = np.array([not isinstance(each, str) for each in self.arguments] or [False])
            callable_ = self._outermost(stands & again[self.form])
            above = np.where(callable_ >= 0, callable_, self._outermost(stands))
        if within:
            above = np.where(self.within(within) >= 0, above, -1)
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
        found = np.full(len(self), -1)
        for number, run in enumerate(self._runs if text else ()):
            rows = np.flatnonzero(self._of_run == number)
            found[rows] = _around(run, self.range[rows], text)
        return found


def _around(run: Run, innermost: Int64s, text: str) -> Int64s:
    """The outermost range whose text contains a text, among ranges and those around them; -1 for none.

    Args:
        innermost: ids of ranges; -1 for none.
    """
    ranges = run.arrow("ranges", ["range_id", "parent_id", "text"])
    codes, texts = coded(ranges["text"])
    named = np.append(_those(codes, texts, lambda each: text in each), False)
    ids = integers(ranges["range_id"])
    parent = np.append(lookup(ids, integers(ranges["parent_id"], -1)), -1)
    at = lookup(ids, innermost)
    found = np.full(len(at), -1)
    while (at >= 0).any():
        found = np.where(named[at], at, found)
        at = parent[at]
    return found


def _real_types(text: str) -> int:
    """Which types of real numbers stand in a list of types, as bits."""
    return sum(
        1 << place for place, name in enumerate(aten.TYPES) if aten.TYPES[name] not in aten.WHOLE and f'"{name}"' in text
    )


class OperatorWork:
    """Kernels, copies and sets.

    Attributes:
        called: when each was launched; its own start where the trace lacks the call, which is not `has_launch`.
        call: the operator's call that launched it; -1 for none.
        in_graph: whether a CUDA graph launched it, so that its operator is not known.
    """

    def __init__(self, run: Run) -> None:
        own = ("process", "correlation", "start_ns", "end_ns")
        kernels = run.arrow("kernels", [*own, "name", "full_name", "graph_id", "grid_x", "grid_y", "grid_z", "collective"])
        copies = run.arrow("memory_ops", [*own, "kind"])
        self.kernels = len(kernels)
        self._run, self._kernels = run, kernels
        self.process, self.correlation, self.start, end = (
            np.concatenate((integers(kernels[name]), integers(copies[name]))) for name in own
        )
        self.duration = end - self.start
        self.full, self.full_names = coded(kernels["full_name"])
        self.short, self.short_names = coded(kernels["name"])
        self.kind, self.kinds = coded(copies["kind"])
        self.in_graph = np.append(integers(kernels["graph_id"]) > 0, np.zeros(len(copies), bool))
        self.called, self.call, self.has_launch = self.start, np.full(len(self.start), -1), np.zeros(len(self.start), bool)

    def launched_by(self, calls: Calls, run: Run) -> None:
        api = run.arrow("api_calls", ["process", "correlation", "thread", "start_ns", "name"])
        at = Launches(integers(api["process"]), integers(api["correlation"])).of(self.process, self.correlation)
        known = np.flatnonzero(at != NONE)
        thread, start, process = (integers(api[name])[at[known]] for name in ("thread", "start_ns", "process"))
        code, names = coded(api["name"])
        self.in_graph[known] |= _those(code[at[known]], names, lambda name: _LAUNCHES_GRAPH in name)
        if self.in_graph.any():  # a report has no graph for copies and sets
            of_launch, _ = numbered(self.process, self.correlation)
            self.in_graph |= np.isin(of_launch, of_launch[self.in_graph & (self.correlation > 0)])
        self.called, self.has_launch = self.start.copy(), np.zeros(len(at), bool)
        self.called[known], self.has_launch[known] = start, True
        self.call[known] = calls.innermost(process, thread, start)
        self.call[self.in_graph] = -1

    def steps(self, begin: Int64s, end: Int64s) -> Int64s:
        """Which of the steps, which follow one another, launched each piece of work; -1 for none. Without steps all is one.

        Work whose launch the trace lacks was launched before the trace began, unless it lacks all launches.
        """
        if not len(begin):
            return np.zeros(len(self.called), np.int64)
        place = np.searchsorted(begin, self.called, side="right") - 1
        within = (place >= 0) & (self.called < end[np.maximum(place, 0)])
        return np.where(within & (self.has_launch | (not self.has_launch.any())), place, -1)

    @cached_property
    def sizes(self) -> tuple[Int64s, ...]:
        """Blocks and threads of kernels along each axis, and bytes of copies and sets; 0 elsewhere."""
        blocks = self._run.arrow("kernels", [f"block_{axis}" for axis in "xyz"])
        copies = self._run.arrow("memory_ops", ["bytes"])
        none = np.zeros(len(copies), np.int64)
        sizes = [
            integers(table[f"{what}_{axis}"]) for table, what in ((self._kernels, "grid"), (blocks, "block")) for axis in "xyz"
        ]
        return *(np.append(each, none) for each in sizes), np.append(
            np.zeros(self.kernels, np.int64), integers(copies["bytes"])
        )

    @cached_property
    def stream(self) -> Int64s:
        """A number for the stream of each."""
        names = ("process", "device", "stream")
        tables = [self._run.arrow(name, names) for name in ("kernels", "memory_ops")]
        return numbered(*(np.concatenate([integers(table[name], -1) + 1 for table in tables]) for name in names))[0]

    def take_host_time(self, calls: Calls) -> None:
        """Take the own time of each call on the host in place of device work, for a trace without any."""
        self.duration = calls.own_time()
        count = len(self.duration)
        self.start = self.called = calls.start
        self.call, self.has_launch = np.arange(count), np.ones(count, bool)
        self.in_graph, self.kind, self.kinds = np.zeros(count, bool), np.zeros(count, np.int64), [""]

    @cached_property
    def between_host(self) -> Bools:
        """Whether each is a copy from or to the host."""
        return np.append(np.zeros(self.kernels, bool), _those(self.kind, self.kinds, lambda kind: kind in _BETWEEN_HOST))

    @cached_property
    def is_whole_graph(self) -> Bools:
        """Whether each is a CUDA graph that was traced as a whole."""
        return self._of_kernels(_those(self.short, self.short_names, lambda name: name == CUDA_GRAPH))

    def _of_kernels(self, marks: Bools) -> Bools:
        """Marks of kernels as those of all work: copies and sets have none."""
        return np.append(marks, np.zeros(len(self.kind), bool))

    def kernel(self, place: int) -> Kernel:
        """One of them as it is compared with a recording."""
        if place >= self.kernels:
            kind = self.kinds[self.kind[place - self.kernels]]
            return Kernel(kind, kind, ())
        grid = tuple(self._kernels.column(f"grid_{axis}")[place].as_py() or 0 for axis in "xyz")
        return Kernel(self.short_names[self.short[place]], self.full_names[self.full[place]], grid)

    @cached_property
    def communicates(self) -> Bools:
        """Which are kernels that communicate with other GPUs."""
        return self._of_kernels(self._kernels["collective"].is_valid().to_numpy())

    def matching(self, pattern: re.Pattern[str]) -> Bools:
        """Whether the name of each kernel contains a match; copies and sets do not."""
        return self._of_kernels(_those(self.full, self.full_names, pattern.search))
