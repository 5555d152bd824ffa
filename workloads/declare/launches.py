"""The parts of an operation: kernel launches and their arguments, averages over ranks, and the copies of its inputs and outputs."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal, Protocol, TypeAlias

import numpy as np

from warpladder.workloads.declare.cases import Case, Params, Part

# -- averages over ranks ---------------------------------------------------------------------------------------------------------


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
        beside: it runs in its own stream, beside later launches that do not use its buffers. Launches that use them wait
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


# -- launches --------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TensorMap:
    """An argument by which a kernel copies boxes of a buffer to shared memory and back with Hopper's tensor memory accelerator (TMA).

    The kernel's parameter is `const __grid_constant__ TensorMap` of `workloads/hopper.cuh`, 128 bytes. Elements of a box that
    lie outside the buffer read as zeros. Source: CUDA driver API, cuTensorMapEncodeTiled.

    Attributes:
        buffer: name of an input, an output or scratch of `float32`, `bfloat16`, `float16` or a type of 8 bits. The bytes of its innermost rows are a multiple of 16.
        box: elements of a box along each axis, the innermost last; at most 256 along each.
        swizzle_bytes: 0, or 32, 64 or 128: the span within which 16-byte pieces are exchanged, so that columns of the box lie
            in different banks. The innermost row of a box is no longer than this.
        shape: extents of the axes, the innermost last, if they differ from the buffer's.
        tf32: the TMA rounds each element that it loads to TF32: to nearest, ties to even, 10 bits of fraction. Source: Triton, pull
            request 11751, on sm_120. Not yet measured on Hopper; tests/collectors/cuda/test_tensor_maps.py does so on a GPU.
    """

    buffer: str
    box: tuple[int, ...]
    swizzle_bytes: Literal[0, 32, 64, 128] = 0
    shape: tuple[int, ...] = ()
    tf32: bool = False


#: Ranks that a `PeerMemory` has room for.
MOST_RANKS: Final = 8


@dataclass(frozen=True)
class PeerMemory:
    """An argument through which a kernel writes into the memory of the other ranks that share the case. Their GPUs belong to one host.

    The kernel's parameter is `const __grid_constant__ PeerMemory` of `workloads/peer_memory.cuh`, 72 bytes: where each rank has its memory, the
    number of this rank, and the number of ranks; in a single process these are the scratch itself, 0 and 1. The memory of a rank is the scratch
    once for each rank, the sender, in their order.

    Attributes:
        buffer: name of scratch that is `zeroed`. What an operation leaves there is what the next one finds.
    """

    buffer: str


@dataclass(frozen=True)
class Launch:
    """One kernel launch.

    Attributes:
        kernel: name expression of the kernel, e.g. `transpose<2, 1, 0>`, as NVRTC takes it.
        grid: blocks along x, y, z.
        block: threads along x, y, z.
        args: inputs, outputs and scratch by name (`str`), as `RowsOf`, `TensorMap` or `PeerMemory`; scalars as NumPy scalars of
            the parameter's type.
        dynamic_shared_bytes: dynamic shared memory of a block.
        once: it writes the same for every `Part` of a case. In an overlapped operation only the first part launches it.
        early: it may start while the launch before it ends, once all blocks of that one have said `let_next_launch_start()` of
            `workloads/hopper_early.cuh`. Before it takes what others write, it calls `wait_for_launch_before()`.
    """

    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    args: tuple[Any, ...]
    dynamic_shared_bytes: int = 0
    once: bool = False
    early: bool = False

    @property
    def kind(self) -> tuple[Any, ...]:
        """Launches of one kind do the same work: they differ only in the arrays that they take."""
        return self.kernel, self.grid, self.block, self.dynamic_shared_bytes, scalars(self.args)


def scalars(arguments: Iterable[Any]) -> tuple[Any, ...]:
    """The scalars among the arguments of a launch, which may ask a kernel for more or less work."""
    return tuple(value for value in arguments if isinstance(value, np.generic | int | float))


#: One of the things that an operation does in order.
Step = Launch | AllReduce


def kernels_of(steps: Sequence[Step]) -> tuple[Launch, ...]:
    """The launches among the steps of an operation."""
    return tuple(step for step in steps if isinstance(step, Launch))


def ceil_div(a: int, b: int) -> int:
    """The least number of blocks of size b that cover a."""
    return -(-a // b)


# -- copies ----------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Pageable:
    """From and to ordinary host memory, before and after the kernels."""

    transfer: ClassVar = "pageable"


@dataclass(frozen=True)
class Pinned:
    """The same with page-locked host memory, which the device reads and writes directly."""

    transfer: ClassVar = "pinned"


@dataclass(frozen=True)
class Overlapped:
    """From and to page-locked memory, in streams beside the kernels. A kernel waits only for the inputs that it names.

    The outputs of a part leave as soon as its kernels are done.

    Attributes:
        parts: the parts of a case, in order; by default one part, which is the case. A part uses the beginning of the scratch of the
            whole case, in the shape that its own case asks for.
        streams: streams of kernels that the parts take in turn. With two, kernels of one part fill the multiprocessors that the last
            blocks of another part leave idle. Each stream has scratch of its own, except for scratch that launches with `once` take and
            that is not `zeroed`.
        gathered: inputs that are the same on all ranks that share the case. Each rank copies a piece of them from its host, and NCCL
            gathers the other pieces: links between GPUs are wider than those to the host.
        together_bytes: inputs of at most so many bytes are copied whole, in one copy before all others. A copy takes some µs,
            however small it is, and the first kernels often wait for several small inputs. 0 copies each input by itself.
    """

    parts: Callable[[Case, Params], Sequence[Part]] = lambda case, config: [Part(case, 0)]
    streams: int = 1
    gathered: tuple[str, ...] = ()
    together_bytes: int = 0
    transfer: ClassVar = "overlapped"


EndToEnd: TypeAlias = Pageable | Pinned | Overlapped


# -- Hopper's hardware, for launches of kernels on warpgroups; see `hopper.cuh` --------------------------------------------------

#: Multiprocessors of an H100 SXM and an H200. On other GPUs the kernels are correct, but slower.
MULTIPROCESSORS: Final = 132
#: Threads of a warpgroup.
WARPGROUP_THREADS: Final = 128
#: The 128-byte swizzle needs stages that begin at a multiple of this. A block asks for this much dynamic shared memory more, to
#: align them.
ALIGNMENT_BYTES: Final = 1024
