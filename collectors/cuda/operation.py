"""An operation on the GPU, and the passes that sample it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from warpladder.collectors.core.bench import Operation, Pass
from warpladder.workloads.api import Array

if TYPE_CHECKING:
    from warpladder.collectors.cuda.allreduce import BoundAllReduce

COLD: Final = Pass("device", "cold")
HOT: Final = Pass("device", "hot")
OPERATION: Final = Pass("operation", "hot")
END_TO_END: Final = Pass("end_to_end", "hot")


@dataclass
class CudaOperation(Operation):
    """An operation on the GPU.

    Attributes:
        once_ns: rough time of one execution; 0 before it has been timed.
        batch: executions of a hot sample; 0 before the first.
        replay: enqueues the batch.
        of_batch: gives what the last execution of the batch returned.
        on_host: it reads and writes host memory, and does its copies itself.
        enqueue: enqueues its kernels one by one, if `run` launches a graph of them; another graph cannot contain that graph.
        pinned: it copies from and to page-locked memory.
        overlapped: enqueues overlapped copies and kernels; None if they run one after another.
        allreduces: its all-reduces, if ranks share the case.
        no_graph: why a CUDA graph cannot hold it; empty if it can.
        has_constants: it copies inputs into constants of its kernels, or into a layout of its library. All executions of a sample
            then read one input set.
        own_inputs: its own copies of the inputs, which it changes; empty if it reads the inputs of the bench.
        before: enqueues what restores them. It is called before each execution, outside of the time.
    """

    once_ns: int = 0
    batch: int = 0
    replay: Callable[[], object] = field(default=lambda: None)
    of_batch: Callable[[], Any] = field(default=lambda: None)
    on_host: bool = False
    enqueue: Callable[[], object] | None = None
    pinned: bool = False
    overlapped: Callable[[], object] | None = None
    allreduces: "tuple[BoundAllReduce, ...]" = ()
    no_graph: str = ""
    has_constants: bool = False
    own_inputs: Mapping[str, Array] = field(default_factory=dict)
    before: Callable[[], object] = field(default=lambda: None)

    @property
    def waits(self) -> bool:
        """Whether it waits for the device inside. It then has no device time, and a graph cannot contain it."""
        return any(allreduce.waits for allreduce in self.allreduces)
