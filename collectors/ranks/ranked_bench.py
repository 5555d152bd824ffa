"""A bench for a case shared among ranks. Rank 0 sends each call as a command; each rank executes it on its own bench."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
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
    Resources,
    Unavailable,
    check_declared,
    classify,
    is_sticky,
    of_all,
)
from warpladder.collectors.core.plan import BufferRows, WorkloadRef, rows_of
from warpladder.workloads.api import Array, Buffers, Case, Params, Part, Variant, Workload


@dataclass
class Local:
    """The state of one rank.

    Attributes:
        makes: makes its bench, by kind of variant.
        communicator: communicator of all ranks.
        workload, share: workload and share of the current case.
        bench: bench of the share; None before the first case.
        operations: operations prepared on the bench, by number.
    """

    makes: Mapping[str, MakeBench]
    communicator: BenchCommunicator
    workload: Workload | None = None
    share: Case | None = None
    bench: Bench | None = None
    operations: dict[int, Operation] = field(default_factory=dict)
    _loaded: dict[WorkloadRef, Workload] = field(default_factory=dict)

    def load(self, ref: WorkloadRef) -> Workload:
        """Return the workload; load it at the first call."""
        if ref not in self._loaded:
            self._loaded[ref] = ref.load()
        return self._loaded[ref]

    def there(self) -> tuple[Workload, Case, Bench]:
        """Return workload, case and bench of the current share."""
        assert self.workload and self.share and self.bench
        return self.workload, self.share, self.bench


class Command(Protocol):
    """A command that all ranks execute at the same time, each on its own state."""

    def do(self, local: Local) -> Any:
        """Execute the command on this rank. Its result or exception goes to rank 0."""
        ...


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
        return command.do(local)
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


# -- commands ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Open:
    """Make the bench of a share, and close the previous one. Returns the passes that it can sample."""

    workload: WorkloadRef
    case: str
    rank: int
    ranks: int
    kind: str
    inputs: Buffers

    def do(self, local: Local) -> Any:
        Close().do(local)
        local.workload = local.load(self.workload)
        assert local.workload.shares
        local.share = local.workload.shares(local.workload.case(self.case), self.ranks)[self.rank].case
        local.bench = local.makes[self.kind](local.workload, local.share, self.inputs)
        local.bench.join(local.communicator)
        return local.bench.passes


@dataclass(frozen=True)
class Prepared:
    """The facts about a rank's prepared operation that rank 0 needs."""

    resources: Resources | None
    passes: tuple[Pass, ...] | None
    note: str
    from_end_to_end: bool


@dataclass(frozen=True)
class Prepare:
    """Make a variant ready on the share, under a number."""

    number: int
    variant: str
    config: Params

    def do(self, local: Local) -> Prepared:
        workload, share, bench = local.there()
        variant = workload.variant(self.variant)
        why_not = variant.skip(share, self.config)
        if why_not:
            raise Unavailable(why_not)
        operation = local.operations[self.number] = bench.prepare(variant, self.config)
        return Prepared(operation.resources, operation.passes, operation.note, operation.from_end_to_end is not None)


#: Where a rank's outputs come from: `Bench.run`, this attribute of `Operation`, or what the last sample left.
Way = Literal["run", "from_end_to_end", "from_batch", "last_outputs"]


@dataclass(frozen=True)
class Execute:
    """Run an operation once, or take what it left. Returns its outputs in host memory."""

    number: int
    way: Way = "run"

    def do(self, local: Local) -> Buffers:
        workload, share, bench = local.there()
        operation = local.operations[self.number]
        local.communicator.wait()
        match self.way:
            case "run":
                outputs = bench.run(operation)
            case "last_outputs":
                outputs = bench.last_outputs()
            case way:
                outputs = getattr(operation, way)()
        declared = workload.buffers(share)[1]
        fault = check_declared(outputs, declared) or _wrong_shape(outputs, share_of=declared)
        if fault:
            raise Failed("wrong_result", fault)
        return {name: _on_host(outputs[name]) for name in declared}


def _wrong_shape(outputs: Buffers, share_of: Mapping[str, Any]) -> str:
    for name, buffer in share_of.items():
        if tuple(outputs[name].shape) != buffer.shape:
            return f"output {name} has shape {tuple(outputs[name].shape)}, not {buffer.shape}"
    return ""


def _on_host(array: Array) -> np.ndarray:
    return array if isinstance(array, np.ndarray) else array.get()


@dataclass(frozen=True)
class Refresh:
    """Recompute the data that an operation derives from its inputs."""

    number: int

    def do(self, local: Local) -> None:
        local.operations[self.number].refresh()


@dataclass(frozen=True)
class Poison:
    """Poison all output buffers."""

    again: bool

    def do(self, local: Local) -> None:
        *_, bench = local.there()
        bench.poison(self.again)


@dataclass(frozen=True)
class Changed:
    """Return the names of the inputs that have changed, and restore them."""

    def do(self, local: Local) -> tuple[str, ...]:
        *_, bench = local.there()
        return bench.changed()


@dataclass(frozen=True)
class Keep:
    """Keep the share's input sets."""

    sets: tuple[Buffers, ...]

    def do(self, local: Local) -> None:
        *_, bench = local.there()
        bench.keep(self.sets)


@dataclass(frozen=True)
class Use:
    """Fill the share's input buffers from one of its sets."""

    number: int

    def do(self, local: Local) -> None:
        *_, bench = local.there()
        bench.use(self.number)


@dataclass(frozen=True)
class Load:
    """Fill the share's input buffers from inputs that do not belong to its sets."""

    inputs: Buffers

    def do(self, local: Local) -> None:
        *_, bench = local.there()
        bench.load(self.inputs)


@dataclass(frozen=True)
class Release:
    """Overwrite and free what the last execution allocated for its outputs."""

    def do(self, local: Local) -> None:
        *_, bench = local.there()
        bench.release()


@dataclass(frozen=True)
class Draw:
    """Fill the share's input buffers for an operation's next execution."""

    number: int
    seed: int | None

    def do(self, local: Local) -> None:
        *_, bench = local.there()
        bench.draw(local.operations[self.number], self.seed)


@dataclass(frozen=True)
class Sampled:
    """A sample of a rank, and whether the operation now has its own batch."""

    reading: Reading
    has_batch: bool


@dataclass(frozen=True)
class Sample:
    """Take a sample. The bench starts all ranks at one barrier."""

    number: int
    how: Pass
    seed: int | None

    def do(self, local: Local) -> Sampled:
        *_, bench = local.there()
        operation = local.operations[self.number]
        return Sampled(bench.sample(operation, self.how, self.seed), operation.from_batch is not None)


@dataclass(frozen=True)
class Close:
    """Free the share's memory."""

    def do(self, local: Local) -> None:
        if local.bench:
            local.bench.close()
        local.bench = None
        local.operations.clear()


# -- rank 0's view -------------------------------------------------------------------------------------------------------


@dataclass
class RankedOperation(Operation):
    """An operation that all ranks have prepared under this number."""

    number: int = -1


class RankedBench:
    """The shares of a case on the benches of all ranks.

    Args:
        ranks: all ranks.
        ref: identifies the workload to each rank.
        kind: kind of the variants that the bench runs.
        workload, case, inputs: the whole case, as for every bench.
    """

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
        self.outputs: Mapping[str, Array] = {name: np.empty(b.shape, b.dtype) for name, b in declared.items()}
        opened = self._all_do(
            [Open(ref, case.name, rank, ranks.size, kind, share) for rank, share in enumerate(self._shares(inputs))]
        )
        self.passes: tuple[Pass, ...] = opened[0]
        self._last: RankedOperation | None = None

    def _shares(self, inputs: Mapping[str, np.ndarray]) -> list[Buffers]:
        """Split the inputs into each rank's rows."""
        return [{name: rows[name].of(array) for name, array in inputs.items()} for rows in self._rows]

    def _all_do(self, commands: Sequence[Command]) -> list[Any]:
        return answers_of(self._ranks, commands)

    def _each(self, command: Command) -> list[Any]:
        return self._all_do([command] * self.gpus)

    def join(self, communicator: BenchCommunicator) -> None:
        raise AssertionError("its ranks have joined one another")

    def prepare(self, variant: Variant, config: Params) -> Operation:
        number = next(self._numbers)
        first: Prepared = self._each(Prepare(number, variant.name, config))[0]
        return RankedOperation(
            run=lambda: self._gathered(Execute(number)),
            resources=first.resources,
            refresh=lambda: self._each(Refresh(number)),
            from_end_to_end=partial(self._gathered, Execute(number, "from_end_to_end")) if first.from_end_to_end else None,
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
        return self._gathered(Execute(self._last.number, "last_outputs"))

    def release(self) -> None:
        self._each(Release())

    def _gathered(self, command: Execute) -> Buffers:
        """Assemble the outputs from the rows of all ranks. An output that all ranks have whole must be equal on all."""
        shares: list[Buffers] = self._each(command)
        for name, output in self.outputs.items():
            first: BufferRows = self._rows[0][name]
            for rank, (rows, share) in enumerate(zip(self._rows, shares, strict=True)):
                if rank and rows[name] == first and not np.array_equal(share[name], output, equal_nan=True):
                    raise Failed("wrong_result", f"{name_ranks([rank])}: output {name} is not that of rank 0")
                rows[name].of(output)[...] = share[name]
        return self.outputs

    def place(self, references: Mapping[str, Array]) -> Mapping[str, Array]:
        return references

    def poison(self, again: bool) -> None:
        self._each(Poison(again))

    def changed(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for names in self._each(Changed()) for name in names))

    def keep(self, sets: Sequence[Mapping[str, np.ndarray]]) -> None:
        self._all_do([Keep(shares) for shares in zip(*map(self._shares, sets), strict=True)])

    def use(self, number: int) -> None:
        self._each(Use(number))

    def load(self, inputs: Mapping[str, np.ndarray]) -> None:
        self._all_do([Load(share) for share in self._shares(inputs)])

    def draw(self, operation: Operation, seed: int | None) -> None:
        assert isinstance(operation, RankedOperation)
        self._each(Draw(operation.number, seed))

    def alter(self, operation: Operation, part: float) -> bool:
        return False

    def sample(self, operation: Operation, how: Pass, seed: int | None) -> Reading:
        assert isinstance(operation, RankedOperation)
        self._last = operation
        sampled: list[Sampled] = self._each(Sample(operation.number, how, seed))
        if all(each.has_batch for each in sampled):
            operation.from_batch = partial(self._gathered, Execute(operation.number, "from_batch"))
        return of_all([each.reading for each in sampled])

    def close(self) -> None:
        self._each(Close())
        self.outputs = {}


def name_ranks(ranks: Sequence[int]) -> str:
    """Such as `rank 1` or `ranks 0, 2`."""
    return f"rank{'s' if len(ranks) > 1 else ''} {', '.join(map(str, ranks))}"
