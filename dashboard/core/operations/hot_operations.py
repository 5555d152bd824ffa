"""The operations of a trace by their device time, each with its forms, and chains of operations. `operator_calls` tells which operator a
piece of device work belongs to."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import isnan
from typing import Any, Final, NamedTuple

import numpy as np

from warpladder.dashboard.core.operations import aten, recorded_calls
from warpladder.dashboard.core.operations.aten import Tensor, Work
from warpladder.dashboard.core.operations.graphs import Graphs
from warpladder.dashboard.core.operations.operator_calls import Calls, Kernel, OperatorWork
from warpladder.data.arrays import Bools, Int64s, numbered
from warpladder.data.iterations import steps_of
from warpladder.data.limits import COMPUTE, arithmetic_of_call_ns, device_memory, empty_kernel_ns
from warpladder.data.names import found_by_size
from warpladder.data.schema import CUDA_GRAPH
from warpladder.data.store import RECORDED, Run

_GRAPH: Final = (
    "kernels of a CUDA graph: their operators ran when it was captured; profile the program without the graph too, for --eager"
)
_WHOLE_GRAPH: Final = (
    "CUDA graphs that were traced as a whole, without their kernels: record them with nsys profile --cuda-graph-trace=node"
)
_NO_WORK: Final = Work(0, 0, 0)
NO_TYPES: Final = "neither the trace nor the names of its kernels tell the type of its lists of tensors: give them in the file"
_NO_TEXT: Final = "the trace lacks its argument approximate, which is a text, and the names of its kernels do not tell it"
#: Kernels of a form whose names are read.
_MOST_LOOKED_AT: Final = 100
_NO_OPERATOR: Final = "launched outside of any operator of PyTorch"
_NO_LAUNCH: Final = "the trace lacks the launch, so that the operator is not known: profile from before the launch"
_COPIES: Final = "a copy between host and device; the page Time, section Transfers, shows it"


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
        floor_ns: the least time that memory and arithmetic of this device take for that; NaN where it is not known.
        lacks: what is not known of the floor, such as `bf16 ceiling`; empty where nothing is lacking, or no ceiling at all is known.
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
    lacks: str = ""
    number: int = -1

    @property
    def worth_ns(self) -> float:
        """Device time above the floor in all steps; NaN where the floor is not known."""
        return np.nan if isnan(self.floor_ns) else self.device_ns - min(self.calls * self.floor_ns, self.device_ns)


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
    def lacks(self) -> tuple[str, ...]:
        """The reasons why floors of its forms are not known."""
        return tuple(dict.fromkeys(form.lacks for form in self.forms if form.lacks))

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
        step_of: the step that launched each piece of device work, in the order of the tables `kernels` and `memory_ops`; -1 for none.
        form_of: its form, in the same order; -1 for none.
        work: the device work.
    """

    steps: int
    has_steps: bool
    device_ns: int
    operations: tuple[Operation, ...]
    on_host: bool = False
    step_of: Int64s = field(default_factory=lambda: np.empty(0, np.int64), compare=False, repr=False)
    form_of: Int64s = field(default_factory=lambda: np.empty(0, np.int64), compare=False, repr=False)
    work: OperatorWork | None = field(default=None, compare=False, repr=False)

    @property
    def time(self) -> str:
        """The counted work, in words."""
        return "time of operators on the host" if self.on_host else "device time"

    def share(self, operation: Operation) -> float:
        """Of the device time, from 0 to 1."""
        return operation.device_ns / max(self.device_ns, 1)


#: Operators of a chain that are named. Of more, the first ones and the last one are.
_NAMED: Final = 3


def short_name(name: str) -> str:
    """The name of an operation in a table: of a chain `silu, mul`, or `mul, mul … silu_backward (5)`."""
    parts = name.split(", ")
    if len(parts) == 1:
        return name
    short = [aten.plain(each) for each in parts]
    return ", ".join(short) if len(short) <= _NAMED else f"{', '.join(short[: _NAMED - 1])} … {short[-1]} ({len(short)})"


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
        together: only operators that follow one another as chains: point-wise ones, or all inside a range.
        apart: operators one by one. Without any choice, point-wise operators that follow one another are a chain.
    """

    operator: str = ""
    kernel: str = ""
    within: str = ""
    together: bool = False
    apart: bool = False

    @property
    def leaves_out(self) -> bool:
        return bool(self.operator or self.kernel or self.within or self.together)

    @property
    def chains(self) -> bool:
        """Whether there are chains beside operators."""
        return not self.leaves_out and not self.apart


def hot_operations(run: Run, ceilings: Mapping[str, float], choice: Choice, eager: Sequence[Run] = ()) -> HotOperations:
    """The operations of a run that was imported from a trace of PyTorch's profiler.

    Args:
        run: with table `operations`.
        ceilings: of the same device, by name; empty where none are known.
        choice: which operations are wanted.
        eager: profiles of the same program without CUDA graphs, which have the operators of its graphs.
    """
    calls, work, steps = Calls.of(run), OperatorWork(run), steps_of(run)
    on_host = not len(work.start)
    if on_host:
        work.take_host_time(calls)
    else:
        work.launched_by(calls, run)
    step_of = work.steps(steps.start, steps.end)
    inside = step_of >= 0
    graphs = Graphs(work, step_of)
    for each in eager:
        calls = graphs.take_operators(calls, each)
    owner = calls.owners(work, choice.operator, choice.within)
    _complete(calls, work, owner)
    wanted = inside & (owner >= 0)
    operations, form_of = _operations(calls, work, owner, np.where(wanted, step_of, -1), ceilings, choice)
    if not (choice.leaves_out or on_host):
        operations += _without_operator(calls, work, graphs, owner, inside)

    def rank(operation: Operation) -> tuple[bool, float, float]:
        worth = operation.device_ns if isnan(operation.worth_ns) else operation.worth_ns
        return bool(operation.reason), -worth, -operation.device_ns

    total = int(work.duration[inside].sum())
    ranked = tuple(sorted(operations, key=rank))
    return HotOperations(max(len(steps), 1), bool(len(steps)), total, ranked, on_host, step_of, form_of, work)


@dataclass(frozen=True)
class Ceilings:
    """The ceilings of a model of GPUs.

    Attributes:
        device: its name.
        values: by name.
        runs: those that they are of, as text.
    """

    device: str = ""
    values: Mapping[str, float] = field(default_factory=dict)
    runs: tuple[str, ...] = ()

    @classmethod
    def of(cls, device: str, every: Iterable[Run]) -> "Ceilings":
        """Each ceiling from the first run on such a GPU that has it; none without a name of a GPU."""
        values: dict[str, float] = {}
        runs = []
        for run in every if device else ():
            if run.info["device_name"] == device and run.rows("ceilings"):
                rows = sorted(run.records("ceilings"), key=lambda row: str(row["device"]), reverse=True)
                found = {str(row["name"]): float(row["value"]) for row in rows if found_by_size(str(row["name"])) is None}
                if found.keys() - values.keys():
                    runs.append(f"{run.run_id} (shipped)" if run.path.parent == RECORDED else run.run_id)
                    values = {**found, **values}
        return cls(device, values, tuple(runs))


# -- operations ----------------------------------------------------------------------------------------------------------------------


class _Described(NamedTuple):
    """A form: the name of its operator, its arguments, why it cannot be called again or an empty text, the least that it must do, and the
    type of its products."""

    name: str
    arguments: tuple[Any, ...]
    reason: str
    least: Work
    dtype: str = ""


def _operations(
    calls: Calls, work: OperatorWork, owner: Int64s, step_of: Int64s, ceilings: Mapping[str, float], choice: Choice
) -> tuple[list[Operation], Int64s]:
    """The operators that own the work of steps, or chains of them, and the number of the form of each piece of work."""
    wanted = step_of >= 0
    form_of = np.full(len(owner), -1)
    if not wanted.any():
        return [], form_of
    callable_ = np.setdiff1d(calls.form[owner[wanted]], calls.form[owner[wanted & work.between_host]])
    form, described = calls.form, [_described(calls, number) for number in range(len(calls.arguments))]
    if choice.together or choice.chains:
        owners, first = np.unique(owner[wanted], return_index=True)
        where = numbered(step_of[wanted][first], work.stream[wanted][first])[0] if work.kernels else step_of[wanted][first]
        head, of_chain, chains = _chains(calls, owners, where, choice.within)
        form = np.where(head == np.arange(len(calls)), len(described) + of_chain, form)
        described += chains
        owner = np.where(owner >= 0, np.where((head < 0) & choice.chains, np.arange(len(calls)), head)[owner], -1)
        wanted = wanted & (owner >= 0)
    rows = np.flatnonzero(wanted)
    if not len(rows):
        return [], form_of
    form_of[rows] = form[owner[rows]]
    rows = rows[np.lexsort((work.start[rows], work.called[rows], owner[rows]))]
    owners, first = np.unique(owner[rows], return_index=True)
    time = np.add.reduceat(work.duration[rows], first)
    host = np.logical_or.reduceat(work.between_host[rows], first)
    matches = np.logical_or.reduceat(work.matching(re.compile(choice.kernel))[rows], first) if choice.kernel else None
    last = np.append(first[1:], len(rows))
    groups: dict[tuple[str, str, str], list[Form]] = {}
    namer = _Namer()
    names = {number: namer.names(*described[number][:2]) for number in callable_.tolist() if not described[number].reason}
    order = np.argsort(form[owners], kind="stable")
    numbers, begin = np.unique(form[owners][order], return_index=True)
    for number, places in zip(numbers.tolist(), np.split(order, begin[1:]), strict=True):
        name, arguments, reason, least, dtype = described[number]
        if not reason and host[places].any():
            arguments, reason, least = (), _COPIES, _NO_WORK
        workload, case = ("", "") if reason else names.get(number) or namer.names(name, arguments)
        if matches is not None and not matches[places].any():
            continue
        launched = rows[first[places[0]] : last[places[0]]].tolist() if work.kernels else []
        kernels = tuple(map(work.kernel, launched))
        precision = aten.precision(dtype, [kernel.full_name for kernel in kernels])
        floor, lacks = (np.nan, "") if reason else floor_ns(least, precision, ceilings)
        whole, median = int(time[places].sum()), float(np.median(time[places]))
        groups.setdefault((name, workload, reason), []).append(
            Form(case, arguments, len(places), whole, median, kernels, least, floor, lacks, number)
        )
    operations = [Operation(*names, tuple(sorted(forms, key=lambda form: -form.device_ns))) for names, forms in groups.items()]
    return operations, form_of


def _complete(calls: Calls, work: OperatorWork, owner: Int64s) -> None:
    """Complete the arguments of forms by what the names of their kernels tell: a text, and the types of lists of tensors."""
    form = np.where(owner >= 0, np.append(calls.form, -1)[owner], -1)
    for number, found in enumerate(calls.arguments):
        name = calls.name_of(number)
        by_text = aten.plain(name) in aten.BY_KERNEL
        if not isinstance(found, tuple) or not (by_text or any(aten.lists(found))):
            continue
        rows = np.flatnonzero(form == number)[:_MOST_LOOKED_AT].tolist() if work.kernels else []
        kernels = [work.kernel(row).full_name for row in rows]
        if by_text:
            text = aten.approximation(kernels)
            calls.arguments[number] = (*found[:-1], text) if text else _NO_TEXT
        else:
            calls.arguments[number] = aten.with_types(name, found, kernels) or NO_TYPES


def _described(calls: Calls, number: int) -> _Described:
    name, found = calls.name_of(number), calls.arguments[number]
    if isinstance(found, str):
        return _Described(name, (), found, _NO_WORK)
    return _Described(name, found, "", aten.work(name, found), aten.arithmetic_type(found))


# -- chains ---------------------------------------------------------------------------------------------------------------------------

#: Operators of a chain. Longer ones are several chains.
_LONGEST: Final = 16


def _chains(calls: Calls, owners: Int64s, where: Int64s, within: str) -> tuple[Int64s, Int64s, list[_Described]]:
    """Operators that follow one another on a thread, each of which takes a tensor that is as the output of the one before.

    A trace does not tell which tensor is which: a tensor of the same shape, type and strides is taken for the output of the operator
    before. Of several, it is the first.

    Args:
        calls: all calls.
        owners: places of the calls that own device work.
        where: a number for the step and the stream of each of these. A chain is in one step and on one stream.
        within: text of ranges. A chain ends with its range, and operators that are not point-wise can be in it. Empty for chains of
            point-wise operators, wherever they are.

    Returns:
        For each call the first call of its chain, -1 outside of any; for each call the number of the chain that it begins; and what these
        numbers mean.
    """
    forms = calls.form[owners]
    takes = np.full(len(owners), -1)
    if len(owners) > 1:
        pairs, of = np.unique(np.stack((forms[:-1], forms[1:])), axis=1, return_inverse=True)
        linked = np.array([_takes(calls, before, after, bool(within)) for before, after in pairs.T.tolist()])
        around = calls.within(within)[owners]
        joined = calls.same_thread(owners[:-1], owners[1:]) & (around[:-1] == around[1:]) & (where[:-1] == where[1:])
        takes[1:] = np.where(joined, linked[of.ravel()], -1)
    begins = np.flatnonzero(takes < 0)
    place = np.arange(len(owners)) - begins[np.cumsum(takes < 0) - 1] if len(owners) else takes
    takes[place % _LONGEST == 0] = -1
    begins = np.flatnonzero(takes < 0)
    lengths = np.diff(np.append(begins, len(owners)))
    code = np.zeros(len(begins), np.int64)
    for position in range(int(lengths.max(initial=0))):
        at = np.where(lengths > position, np.append(forms, -1)[np.minimum(begins + position, len(forms))], -1)
        code = np.unique(code * (int(forms.max()) + 2) + at + 1, return_inverse=True)[1]
    head, form = np.full(len(calls), -1), np.zeros(len(calls), np.int64)
    chains = np.flatnonzero(lengths > 1)
    members = np.repeat(lengths > 1, lengths)
    head[owners[members]] = np.repeat(owners[begins], lengths)[members]
    numbers, first, inverse = np.unique(code[chains], return_index=True, return_inverse=True)
    form[owners[begins[chains]]] = inverse
    described = []
    for chain in chains[first].tolist()[: len(numbers)]:
        span = range(begins[chain], begins[chain] + lengths[chain])
        parts = [(int(forms[each]), None if takes[each] < 0 else int(takes[each])) for each in span]
        described.append(_of_chain(calls, parts))
    return head, form, described


def _takes(calls: Calls, before: int, after: int, everything: bool) -> int:
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
    given = aten.inputs(second)
    return given.index(output) if output is not None and output in given else -1


def _of_chain(calls: Calls, parts: Sequence[tuple[int, int | None]]) -> _Described:
    found, types = [], set()
    read = 0
    flops: int | None = 0
    for number, takes in parts:
        name, arguments = calls.name_of(number), calls.arguments[number]
        assert not isinstance(arguments, str)
        found.append(Part(name, arguments, takes))
        least = aten.work(name, arguments)
        read += sum(aten.bytes_of(each) for place, each in enumerate(aten.inputs(arguments)) if place != takes)
        flops = None if flops is None or least.flops is None else flops + least.flops
        types |= {aten.arithmetic_type(arguments)} if least.flops else set()
    work = Work(read, least.written, flops)
    return _Described(", ".join(part.name for part in found), tuple(found), "", work, types.pop() if len(types) == 1 else "")


def _without_operator(calls: Calls, work: OperatorWork, graphs: Graphs, owner: Int64s, inside: Bools) -> list[Operation]:
    """Device work that belongs to no operator of PyTorch, by what launched it."""
    rows = np.flatnonzero(inside & (owner < 0))
    if not len(rows):
        return []
    talks = work.communicates
    called = work.call[rows]
    name = np.where(called >= 0, np.append(calls.name, 0)[called], len(calls.names))
    is_kernel = np.arange(len(talks)) < work.kernels
    marks = (talks, work.in_graph, work.is_whole_graph, work.between_host, work.has_launch, is_kernel, graphs.reason_of + 1)
    kind, first = numbered(name, *(mark[rows].astype(np.int64) for mark in marks))
    times: dict[tuple[str, str], list[Int64s]] = {}
    for number, row in enumerate(rows[first].tolist()):
        times.setdefault(_launched(calls, work, graphs, talks, row), []).append(work.duration[rows[kind == number]])
    found = []
    for (text, reason), parts in times.items():
        each = np.concatenate(parts)
        form = Form("", (), len(each), int(each.sum()), float(np.median(each)), (), _NO_WORK, np.nan)
        found.append(Operation(text, "", reason, (form,)))
    return found


def _launched(calls: Calls, work: OperatorWork, graphs: Graphs, talks: Bools, row: int) -> tuple[str, str]:
    """The launcher of a piece of work, and why you cannot call it again."""
    call = int(work.call[row])
    if call >= 0:
        name = calls.names[calls.name[call]]
        reason = recorded_calls.refusal_of_name("nccl:" if talks[row] else name)
        return name, reason or "several operators launch its work"
    if talks[row]:
        return "[collectives]", recorded_calls.refusal_of_name("nccl:")
    if work.is_whole_graph[row]:
        return CUDA_GRAPH, _WHOLE_GRAPH
    if work.in_graph[row]:
        return CUDA_GRAPH, graphs.reasons[graphs.reason_of[row]] if graphs.reason_of[row] >= 0 else _GRAPH
    if work.between_host[row]:
        return "[copies]", _COPIES
    what = "[kernels]" if row < work.kernels else "[copies and sets on the device]"
    return what, _NO_OPERATOR if work.has_launch[row] else _NO_LAUNCH


def floor_ns(least: Work, precision: str, ceilings: Mapping[str, float]) -> tuple[float, str]:
    """The least time of a call by memory, by arithmetic and of an empty kernel, NaN where one of the first two is not known, and what that
    lacks.
    """
    memory = float(device_memory(ceilings).time_ns(least.read, least.written))
    if np.isnan(memory):
        return np.nan, ""
    if least.flops is None:
        return np.nan, "count of operations"
    if least.flops and precision not in COMPUTE:
        return np.nan, "ceiling of its type"
    arithmetic = arithmetic_of_call_ns(least.flops, precision, ceilings)
    lacks = f"{precision} ceiling" if np.isnan(arithmetic) else ""
    return float(np.maximum(max(memory, empty_kernel_ns(ceilings)), arithmetic)), lacks


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


def _tensors(arguments: tuple[Any, ...]) -> Iterator[Tensor]:
    """The tensors of a call, or the inputs of a chain."""
    for part in arguments:
        if isinstance(part, Part):
            yield from aten.flat([each for place, each in enumerate(aten.inputs(part.arguments)) if place != part.takes])
        else:
            yield from aten.tensors_of([part])


def _kinds(arguments: tuple[Any, ...]) -> Iterator[str]:
    """The type of each argument that is a tensor, or nothing; of a chain also the results that it takes."""
    for part in arguments:
        if isinstance(part, Part):
            yield f"takes {part.takes}"
            yield from _kinds(part.arguments)
        else:
            yield part.dtype if isinstance(part, Tensor) else part[0].dtype if part in [*aten.lists((part,))] else ""


class _Namer:
    """Names benchmarks and cases. The same trace gives the same names, whatever is chosen of it."""

    def __init__(self) -> None:
        self._workloads: dict[tuple[str, tuple[str, ...]], str] = {}
        self._cases: dict[str, dict[str, int]] = {}

    def names(self, name: str, arguments: tuple[Any, ...]) -> tuple[str, str]:
        """The names of the benchmark and of the case."""
        tensors = list(_tensors(arguments))
        kinds = tuple(_kinds(arguments))
        workload = self._workloads.get((name, kinds)) or self._new(name, tensors)
        self._workloads[name, kinds] = workload
        shapes = ["x".join(map(str, each.shape)) or "1" for each in tensors if 0 not in each.shape]
        more = f" +{len(shapes) - _MOST_SHAPES}" if len(shapes) > _MOST_SHAPES else ""
        case = " ".join(shapes[:_MOST_SHAPES]) + more
        taken = self._cases.setdefault(workload, {})
        taken[case] = number = taken.get(case, 0) + 1
        return workload, case if number == 1 else f"{case} #{number}"

    def _new(self, name: str, tensors: Sequence[Tensor]) -> str:
        real = next((each.dtype for each in tensors if each.dtype not in aten.WHOLE), tensors[0].dtype)
        parts = []
        for short in map(aten.plain, name.split(", ")):
            in_place = short.endswith("_") and not short.endswith("__")
            parts.append(f"{short.strip('_')}_in_place" if in_place else short.strip("_"))
        if len(parts) > _MOST_NAMES:
            parts = [f"{parts[0]}_to_{parts[-1]}_{len(parts)}"]
        base = "_".join(filter(None, ("aten", *parts, _SUFFIXES.get(real, real))))
        number = sum(
            each == base or re.fullmatch(rf"{re.escape(base)}_\d+", each) is not None for each in self._workloads.values()
        )
        return f"{base}_{number + 1}" if number else base
