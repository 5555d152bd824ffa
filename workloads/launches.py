"""Kernel launches and their arguments."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from warpladder.workloads.communication import AllReduce


@dataclass(frozen=True)
class TensorMap:
    """An argument by which a kernel copies boxes of a buffer to shared memory and back with Hopper's tensor memory accelerator (TMA).

    The kernel's parameter is `const __grid_constant__ TensorMap` of `workloads/hopper.cuh`, 128 bytes. Elements of a box that
    lie outside the buffer read as zeros. Source: CUDA driver API, cuTensorMapEncodeTiled.

    Attributes:
        buffer: name of an input, an output or scratch of float32. The bytes of its innermost rows are a multiple of 16.
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


@dataclass(frozen=True)
class Launch:
    """One kernel launch.

    Attributes:
        kernel: name expression of the kernel, e.g. `transpose<2, 1, 0>`, as NVRTC takes it.
        grid: blocks along x, y, z.
        block: threads along x, y, z.
        args: inputs, outputs and scratch by name (`str`), as `RowsOf` or as `TensorMap`; scalars as NumPy scalars of the
            parameter's type.
        dynamic_shared_bytes: dynamic shared memory of a block.
        once: it writes the same for every `Part` of a case. In an overlapped operation only the first part launches it.
    """

    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    args: tuple[Any, ...]
    dynamic_shared_bytes: int = 0
    once: bool = False


#: One of the things that an operation does in order.
Step = Launch | AllReduce


def kernels_of(steps: Sequence[Step]) -> tuple[Launch, ...]:
    """The launches among the steps of an operation."""
    return tuple(step for step in steps if isinstance(step, Launch))


def ceil_div(a: int, b: int) -> int:
    """The least number of blocks of size b that cover a."""
    return -(-a // b)
