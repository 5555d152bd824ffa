"""How ranks that share a case communicate: as a step among the launches of a kernel variant, or by what a host variant is given."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol


@dataclass(frozen=True)
class RowsOf:
    """Rows of a buffer along its first axis, as an argument of a launch, which gets the address of the first, or in an `AllReduce`."""

    buffer: str
    first: int
    count: int


@dataclass(frozen=True)
class AllReduce:
    """A step among launches: buffers of float32 become, in place, their average over all ranks. One process alone does nothing.

    Attributes:
        buffers: names of inputs, outputs or scratch, or rows of them; on every rank of the same shapes.
        by: `nccl`, between the GPUs; or `mpi`, staged through page-locked host memory: copied out, averaged by MPI_Allreduce, copied back.
        beside: it runs in a stream of its own, beside later launches that take nothing of its buffers. What takes them waits for it, and
            so does the end of the operation.
    """

    buffers: tuple[str | RowsOf, ...]
    by: Literal["nccl", "mpi"] = "nccl"
    beside: bool = False

    def __post_init__(self) -> None:
        if self.by == "mpi" and self.beside:
            raise ValueError("an allreduce by MPI waits for the device, so nothing runs beside it; take nccl, or beside=False")


class Communicator(Protocol):
    """What joins the ranks that share a case, as a host or library variant that communicates is given it.

    Attributes:
        rank: which of them this process is, from 0 on.
        size: how many they are.
    """

    rank: int
    size: int

    def average(self, arrays: Sequence[Any]) -> None:
        """Replace each NumPy array by its average over all ranks. Every rank calls it, with arrays of the same shapes."""
        ...

    def broadcast(self, value: Any) -> Any:
        """What rank 0 gave. Every rank calls it."""
        ...


class Alone:
    """The communicator of a process that shares its case with no other."""

    rank, size = 0, 1

    def average(self, arrays: Sequence[Any]) -> None:
        """Nothing: an array is its own average."""

    def broadcast(self, value: Any) -> Any:
        return value


ALONE = Alone()
