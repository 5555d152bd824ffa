"""Kernel launches and their arguments."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from warpladder.workloads.communication import AllReduce


@dataclass(frozen=True)
class TensorMap:
    """An argument by which a kernel copies boxes of a buffer to shared memory and back with Hopper's tensor memory accelerator (TMA).

    The kernel's parameter is `const __grid_constant__ TensorMap` of `workloads/hopper.cuh`, 128 bytes. What a box reaches
    beyond the buffer reads as zeros. Source: CUDA driver API, cuTensorMapEncodeTiled.

    Attributes:
        buffer: name of an input, an output or scratch of float32; its innermost rows take a multiple of 16 bytes.
        box: elements of a box along each axis, the innermost last; at most 256 along each.
        swizzle_bytes: 0, or 32, 64 or 128: the span within which 16-byte pieces are exchanged so that columns of the box meet
            different banks; the innermost row of a box is no longer than it.
        shape: axes, the innermost last, where they are not those of the buffer.
    """

    buffer: str
    box: tuple[int, ...]
    swizzle_bytes: Literal[0, 32, 64, 128] = 0
    shape: tuple[int, ...] = ()


@dataclass(frozen=True)
class Launch:
    """One kernel launch.

    Attributes:
        kernel: name expression of the kernel, e.g. `transpose<2, 1, 0>`, as NVRTC takes it.
        grid: blocks along x, y, z.
        block: threads along x, y, z.
        args: names of inputs, outputs and scratch as `str`, `RowsOf` them, `TensorMap`s of them, and scalars as NumPy scalars of
            the parameter's type.
        dynamic_shared_bytes: dynamic shared memory a block.
        once: what it writes is the same for every `Part` of a case, so that of an overlapped operation only the first part launches it.
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
    """Blocks of b that cover a."""
    return -(-a // b)
