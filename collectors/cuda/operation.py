"""An operation on the GPU, and the ways to sample it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Protocol

from warpladder.collectors.core.bench import Operation, Pass

COLD: Final = Pass("device", "cold")
HOT: Final = Pass("device", "hot")
OPERATION: Final = Pass("operation", "hot")
END_TO_END: Final = Pass("end_to_end", "hot")


class Averaging(Protocol):
    """An allreduce among the launches of an operation; see `warpladder.collectors.cuda.allreduce.BoundAllReduce`."""

    waits: bool
    timed: bool

    def elapsed_ns(self) -> int:
        """How long the last one that was timed took."""
        ...


@dataclass
class CudaOperation(Operation):
    """An operation on the GPU.

    Attributes:
        once_ns: about how long it takes; 0 before it has been timed.
        batch: executions of a hot sample; 0 before the first.
        replay: enqueues the batch.
        on_host: it reads and writes host memory, and does its copies itself.
        enqueue: enqueues its kernels one by one, where `run` launches a graph of them, which no other graph can hold.
        pinned: its copies are from and to page-locked memory.
        overlapped: enqueues copies and kernels, overlapped; None where they follow one another.
        allreduces: those among its launches, where ranks share the case.
    """

    once_ns: int = 0
    batch: int = 0
    replay: Callable[[], object] = field(default=lambda: None)
    on_host: bool = False
    enqueue: Callable[[], object] | None = None
    pinned: bool = False
    overlapped: Callable[[], object] | None = None
    allreduces: tuple[Averaging, ...] = ()

    @property
    def waits(self) -> bool:
        """Whether it waits for the device inside, so that it has no device time of its own and no graph can hold it."""
        return any(allreduce.waits for allreduce in self.allreduces)
