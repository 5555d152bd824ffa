"""A bench for a case shared among ranks. Rank 0 sends each call of a method; each rank executes it on its own bench."""

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import methodcaller
from typing import Any, Final, Literal, Protocol

import numpy as np

from warpladder.collectors.core.bench import (
    ONE_PROCESS,
    Bench,
    BenchCommunicator,
    Failed,
    MakeBench,
    Operation,
    Pass,
    Reading,
    Unavailable,
    check_declared,
    classify,
    is_sticky,
    of_all,
)
from warpladder.collectors.core.plan import BufferRows, WorkloadRef, rows_of
from warpladder.collectors.core.verify import ErrorsOnDevice
from warpladder.workloads.api import Array, Buffers, Case, Params, Part, Variant, Workload


@dataclass(frozen=True)
class Prepared:
    """The facts about a rank's prepared operation that rank 0 needs."""

    resources: Mapping[str, int] | None
    passes: tuple[Pass, ...] | None
    note: str
    from_end_to_end: bool


#: Where a rank's outputs come from: `Bench.run`, this attribute of `Operation`, or what the last sample left.
Way = Literal["run", "from_end_to_end", "from_batch", "last_outputs"]


class Local:
    """One rank. Rank 0 calls its methods on all ranks at the same time. `makes`: makes its bench, by kind of variant."""

    def __init__(self, makes: Mapping[str, MakeBench], communicator: BenchCommunicator) -> None:
        self._makes, self._communicator = makes, communicator
        self._workload: Workload | None = None
        self._share: Case | None = None
        self._bench: Bench | None = None
        self._operations: dict[int, Operation] = {}
        self._loaded: dict[WorkloadRef, Workload] = {}

    def _there(self) -> tuple[Workload, Case, Bench]:
        """Return workload, case and bench of the current share."""
        assert self._workload and self._share and self._bench
        return self._workload, self._share, self._bench

    def open(self, ref: WorkloadRef, case: str, rank: int, ranks: int, kind: str, inputs: Buffers) -> tuple[Pass, ...]:
        """Make the bench of a share, and close the previous one. Returns the passes that it can sample."""
        self.close()
        if ref not in self._loaded:
            self._loaded[ref] = ref.load()
        workload = self._workload = self._loaded[ref]
        assert workload.shares
        self._share = workload.shares(workload.case(case), ranks)[rank].case
        self._bench = self._makes[kind](workload, self._share, inputs)
        self._bench.join(self._communicator)
        return self._bench.passes

    def prepare(self, number: int, name: str, config: Params) -> Prepared:
        """Make a variant ready on the share, under a number."""
        workload, share, bench = self._there()
        variant = workload.variant(name)
        why_not = variant.skip(share, config)
        if why_not:
            raise Unavailable(why_not)
        operation = self._operations[number] = bench.prepare(variant, config)
        return Prepared(operation.resources, operation.passes, operation.note, operation.from_end_to_end is not None)

    def execute(self, number: int, way: Way) -> Buffers:
        """Run an operation once, or take what it left. Returns its outputs in host memory."""
        workload, share, bench = self._there()
        operation = self._operations[number]
        self._communicator.wait()
        match way:
            case "run":
                outputs = bench.run(operation)
            case "last_outputs":
                outputs = bench.last_outputs()
            case _:
                outputs = getattr(operation, way)()
        declared = workload.buffers(share)[1]
        fault = check_declared(outputs, declared)
        for name, buffer in declared.items() if not fault else ():
            if tuple(outputs[name].shape) != buffer.shape:
                fault = fault or f"output {name} has shape {tuple(outputs[name].shape)}, not {buffer.shape}"
        if fault:
            raise Failed("wrong_result", fault)
        found = {name: outputs[name] for name in declared}
        return {name: each if isinstance(each, np.ndarray) else each.get() for name, each in found.items()}

    def refresh(self, number: int) -> None:
        """Recompute the data that an operation derives from its inputs."""
        self._operations[number].refresh()

    def draw(self, number: int, seed: int | None) -> None:
        """Fill the share's input buffers for an operation's next execution."""
        self._there()[2].draw(self._operations[number], seed)

    def sample(self, number: int, how: Pass, seed: int | None) -> tuple[Reading, bool]:
        """Take a sample, and tell whether the operation now has its own batch. The bench starts all ranks at one barrier."""
        operation = self._operations[number]
        return self._there()[2].sample(operation, how, seed), operation.from_batch is not None

    def on_bench(self, method: str, *arguments: Any) -> Any:
        """Call a method of the share's bench."""
        return getattr(self._there()[2], method)(*arguments)

    def time_all_reduce(self, nbytes: int) -> tuple[list[int], float]:
        """Time NCCL's average of `nbytes` bytes. Returns this rank's times in ns, and the overhead of the events around them."""
        from warpladder.collectors.cuda.allreduce import allreduce_ns
        from warpladder.collectors.cuda.device import current_device

        device = current_device()
        return allreduce_ns(device, self._communicator, nbytes), device.event_overhead_ns

    def close(self) -> None:
        """Free the share's memory."""
        if self._bench:
            self._bench.close()
        self._bench = None
        self._operations.clear()


#: A call of a method of `Local`, such as `methodcaller("close")`, which all ranks execute at the same time. Its result or exception goes
#: to rank 0.
Command = Callable[[Local], Any]


@dataclass(frozen=True)
class Failure:
    """The answer of a rank whose command raised an exception."""

    status: str
    detail: str
    lasting: bool = False
    unavailable: bool = False


class Ranks(Protocol):
    """All ranks, seen from rank 0."""

    size: int

    def all_do(self, commands: Sequence[Command]) -> list[Any]:
        """Execute one command on each rank. Returns each rank's answer, which is a Failure if the command raised."""
        ...


def attempt(command: Command, local: Local) -> Any:
    """Execute a command on this rank. Returns its result, or a Failure."""
    try:
        return command(local)
    except Unavailable as reason:
        return Failure("skipped", str(reason), unavailable=True)
    except Exception as error:
        status, detail = classify(error)
        return Failure(status, detail, is_sticky(error))


def answers_of(ranks: Ranks, commands: Sequence[Command]) -> list[Any]:
    """Return each rank's answer. Raises Unavailable or Failed, naming the ranks, if a command failed on any rank."""
    answers = ranks.all_do(commands)
    failures = {rank: answer for rank, answer in enumerate(answers) if isinstance(answer, Failure)}
    if not failures:
        return answers
    # A failure counts more than Unavailable, and most if the rank cannot go on.
    _, worst = max(failures.items(), key=lambda item: (item[1].lasting, not item[1].unavailable, -item[0]))
    detail = f"{name_ranks([rank for rank, failure in failures.items() if failure == worst])}: {worst.detail}"
    if worst.unavailable:
        raise Unavailable(detail)
    raise Failed(worst.status, detail, any(failure.lasting for failure in failures.values()))


@dataclass
class RankedOperation(Operation):
    """An operation that all ranks have prepared under this number."""

    number: int = -1


class RankedBench:
    """The shares of a case on the benches of all ranks.

    Args:
        ref: identifies the workload to each rank.
        kind: kind of the variants that the bench runs.
        workload, case, inputs: the whole case, as for every bench.
    """

    on_device: ErrorsOnDevice | None = None

    def __init__(
        self, ranks: Ranks, ref: WorkloadRef, kind: str, workload: Workload, case: Case, inputs: Mapping[str, np.ndarray]
    ) -> None:
        self._ranks, self.gpus = ranks, ranks.size
        self.communicator: BenchCommunicator = ONE_PROCESS  # the ranks meet in their own benches
        self._numbers: Final = itertools.count()
        declared_inputs, declared = workload.buffers(case)
        assert workload.shares
        parts: Sequence[Part] = workload.shares(case, ranks.size)
        self._rows = [rows_of(workload, part, {**declared_inputs, **declared}) for part in parts]
        self.inputs: Mapping[str, Array] = {}  # each rank holds its share
        self.outputs: Mapping[str, Array] = {name: np.empty(b.shape, b.storage) for name, b in declared.items()}
        opened = [
            methodcaller("open", ref, case.name, rank, ranks.size, kind, share)
            for rank, share in enumerate(self._shares(inputs))
        ]
        self.passes: tuple[Pass, ...] = answers_of(ranks, opened)[0]
        self._last: RankedOperation | None = None

    def _shares(self, inputs: Mapping[str, np.ndarray]) -> list[Buffers]:
        """Split the inputs into each rank's rows."""
        return [{name: rows[name].of(array) for name, array in inputs.items()} for rows in self._rows]

    def _each(self, method: str, *arguments: Any) -> list[Any]:
        """Call a method of all ranks."""
        return answers_of(self._ranks, [methodcaller(method, *arguments)] * self.gpus)

    def _each_its_own(self, method: str, arguments: Iterable[Any]) -> None:
        """Call a method of the benches of all ranks, with an argument for each."""
        answers_of(self._ranks, [methodcaller("on_bench", method, argument) for argument in arguments])

    def join(self, communicator: BenchCommunicator) -> None:
        raise AssertionError("its ranks have joined one another")

    def prepare(self, variant: Variant, config: Params) -> Operation:
        number = next(self._numbers)
        first: Prepared = self._each("prepare", number, variant.name, config)[0]
        return RankedOperation(
            run=partial(self._gathered, number, "run"),
            resources=first.resources,
            refresh=partial(self._each, "refresh", number),
            from_end_to_end=partial(self._gathered, number, "from_end_to_end") if first.from_end_to_end else None,
            passes=first.passes,
            note=first.note,
            number=number,
        )

    def run(self, operation: Operation) -> Buffers:
        assert isinstance(operation, RankedOperation)
        self._last = operation
        return operation.run() or {}

    def last_outputs(self) -> Buffers:
        assert self._last
        return self._gathered(self._last.number, "last_outputs")

    def release(self) -> None:
        self._each("on_bench", "release")

    def _gathered(self, number: int, way: Way) -> Buffers:
        """Assemble the outputs from the rows of all ranks. An output that all ranks have whole must be equal on all."""
        shares: list[Buffers] = self._each("execute", number, way)
        for name, output in self.outputs.items():
            first: BufferRows = self._rows[0][name]
            for rank, (rows, share) in enumerate(zip(self._rows, shares, strict=True)):
                if rank and rows[name] == first and not np.array_equal(share[name], output, equal_nan=True):
                    raise Failed("wrong_result", f"{name_ranks([rank])}: output {name} is not that of rank 0")
                rows[name].of(output)[...] = share[name]
        return self.outputs

    def place(self, references: Mapping[str, Array]) -> Mapping[str, Array]:
        return references

    def has_room(self, size_bytes: int) -> bool:
        return True  # they are there anyway

    def poison(self, again: bool) -> None:
        self._each("on_bench", "poison", again)

    def changed(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for names in self._each("on_bench", "changed") for name in names))

    def keep(self, sets: Sequence[Mapping[str, np.ndarray]]) -> None:
        self._each_its_own("keep", zip(*map(self._shares, sets), strict=True))

    def use(self, number: int) -> None:
        self._each("on_bench", "use", number)

    def load(self, inputs: Mapping[str, np.ndarray]) -> None:
        self._each_its_own("load", self._shares(inputs))

    def draw(self, operation: Operation, seed: int | None) -> None:
        assert isinstance(operation, RankedOperation)
        self._each("draw", operation.number, seed)

    def alter(self, operation: Operation, part: float) -> bool:
        return False

    def sample(self, operation: Operation, how: Pass, seed: int | None) -> Reading:
        assert isinstance(operation, RankedOperation)
        self._last = operation
        sampled: list[tuple[Reading, bool]] = self._each("sample", operation.number, how, seed)
        if all(has_batch for _, has_batch in sampled):
            operation.from_batch = partial(self._gathered, operation.number, "from_batch")
        return of_all([reading for reading, _ in sampled])

    def close(self) -> None:
        self._each("close")
        self.outputs = {}


def name_ranks(ranks: Sequence[int]) -> str:
    """Such as `rank 1` or `ranks 0, 2`."""
    return f"rank{'s' if len(ranks) > 1 else ''} {', '.join(map(str, ranks))}"
