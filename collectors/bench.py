"""What every collector's bench offers the shared core: prepare an operation of a case, run it, and take samples of it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from collectors.rounds import Pass, Reading
from workloads.api import Array, Buffer, Buffers, Params, Variant
from workloads.communication import Alone, Communicator


class Unavailable(Exception):
    """A cell that cannot run here, though nothing is wrong with it. The message is the reason."""


class Failed(Exception):
    """What a cell's verdict is, found in another process.

    Attributes:
        status, detail: of its row in `results`.
        lasting: that process cannot go on.
    """

    def __init__(self, status: str, detail: str, lasting: bool = False) -> None:
        super().__init__(detail)
        self.status, self.detail, self.lasting = status, detail, lasting


@dataclass(frozen=True)
class Resources:
    """What the kernels of an operation take, the most of any: registers a thread, shared bytes a block, spill bytes a thread."""

    registers: int
    shared_bytes: int
    spill_bytes: int


@dataclass
class Operation:
    """A variant ready to run on a bench's buffers.

    Attributes:
        run: enqueues (or, on the host, does) one operation; gives the outputs when it allocates them itself.
        resources: of its kernels; None where there are none of ours.
        refresh: brings what is derived from the inputs up to date, such as constants; part of the end-to-end scope.
        synchronizes: whether host timing waits for the device.
        from_end_to_end: runs it once with copies of its own, that the scope `end_to_end` then times, and gives the outputs as they
            came back to the host; None where its copies are those of every variant.
        passes: those of the bench's that mean something to it; None for all.
        note: what a reader of its samples should know; empty where nothing.
    """

    run: Callable[[], Buffers | None]
    resources: Resources | None = None
    refresh: Callable[[], None] = lambda: None
    synchronizes: bool = True
    from_end_to_end: Callable[[], Buffers] | None = None
    passes: tuple[Pass, ...] | None = None
    note: str = ""

    def takes(self, how: Pass) -> bool:
        """Whether it is sampled so."""
        return self.passes is None or how in self.passes


class BenchCommunicator(Communicator, Protocol):
    """What joins the ranks that share a case. Every rank calls the same methods in the same order."""

    def wait(self) -> None:
        """Return once every rank has called it."""
        ...

    def largest(self, value: int) -> int:
        """The largest of all ranks' numbers: what they must agree on, though each measured its own."""
        ...

    def broadcast(self, value: Any) -> Any:
        """What rank 0 gave."""
        ...


class OneProcess(Alone):
    """The communicator of a process alone."""

    def wait(self) -> None:
        """Nothing: nobody else is waited for."""

    def largest(self, value: int) -> int:
        return value

    def broadcast(self, value: Any) -> Any:
        return value


ONE_PROCESS = OneProcess()


class Bench(Protocol):
    """One case's buffers on one device.

    Attributes:
        gpus: GPUs that a sample uses, 0 on the host; ranks where several share it.
        passes: scopes and cache states that it can sample.
        outputs: the buffers that variants write.
        communicator: of the ranks that share the case, which meet there before the clock of a sample starts.
    """

    gpus: int
    passes: tuple[Pass, ...]
    outputs: Mapping[str, Array]
    communicator: BenchCommunicator

    def join(self, communicator: BenchCommunicator) -> None:
        """Share the case with other ranks. Comes before anything is prepared."""
        ...

    def prepare(self, variant: Variant, config: Params) -> Operation:
        """Make a variant ready. Raises Unavailable where this machine lacks what it needs."""
        ...

    def run(self, operation: Operation) -> Buffers:
        """Run once, wait until it is done, and give the outputs."""
        ...

    def place(self, references: Mapping[str, Array]) -> Mapping[str, Array]:
        """References brought to where the outputs are."""
        ...

    def sample(self, operation: Operation, how: Pass) -> Reading:
        """Take one sample."""
        ...

    def close(self) -> None:
        """Give the buffers' memory back."""
        ...


def check_declared(outputs: Buffers, declared: Mapping[str, Buffer]) -> str:
    """Why outputs that a variant returned are not those that the workload declares; empty where they are."""
    for name, buffer in declared.items():
        if name not in outputs:
            return f"output {name} is missing"
        if str(outputs[name].dtype) != buffer.dtype:
            return f"output {name} has type {outputs[name].dtype}, not {buffer.dtype}"
    return ""
