"""How ranks that share a case communicate: `AllReduce` among the launches of a kernel, or a `Communicator` for host and library
variants."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol


@dataclass(frozen=True)
class RowsOf:
    """Rows of a buffer along its first axis. A launch that takes them gets the address of the first row; an `AllReduce`
    averages them."""

    buffer: str
    first: int
    count: int


@dataclass(frozen=True)
class AllReduce:
    """A step among launches that replaces buffers of float32 by their average over all ranks. In a single process it does
    nothing.

    Attributes:
        buffers: names of inputs, outputs or scratch, or rows of them. They have the same shapes on every rank.
        by: `nccl`: between the GPUs. `mpi`: through page-locked host memory; the buffers are copied to the host, averaged by
            MPI_Allreduce and copied back.
        beside: it runs in a stream of its own, beside later launches that do not take its buffers. Launches that take them wait
            for it, and so does the end of the operation.
    """

    buffers: tuple[str | RowsOf, ...]
    by: Literal["nccl", "mpi"] = "nccl"
    beside: bool = False

    def __post_init__(self) -> None:
        if self.by == "mpi" and self.beside:
            raise ValueError("an allreduce by MPI waits for the device, so nothing runs beside it; take nccl, or beside=False")


class Communicator(Protocol):
    """Joins the ranks that share a case. Host and library variants with `communicates=True` are given one.

    Attributes:
        rank: number of this process among the ranks, from 0.
        size: number of ranks.
    """

    rank: int
    size: int

    def average(self, arrays: Sequence[Any]) -> None:
        """Replace each NumPy array by its average over all ranks. Every rank calls it, with arrays of the same shapes."""
        ...

    def broadcast(self, value: Any) -> Any:
        """The value that rank 0 passed. Every rank calls it."""
        ...


class Alone:
    """The communicator of a process that shares its case with no other."""

    rank, size = 0, 1

    def average(self, arrays: Sequence[Any]) -> None:
        """Does nothing: the average over one rank is the array itself."""

    def broadcast(self, value: Any) -> Any:
        return value


ALONE = Alone()
