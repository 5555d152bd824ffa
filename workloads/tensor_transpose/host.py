"""The transposition on the host, and the pitfall that measures none."""

from typing import Any

import numpy as np

from workloads.api import Array, Buffers, Case
from workloads.numba_loops import compiled, prange
from workloads.tensor_transpose.problem import out_strides_of, perm_of


def numpy_copy(case: Case, inputs: Buffers, outputs: Buffers) -> None:
    """NumPy's strided copy out of a transposed view.

    Idea: `transpose` only renames the axes; `copyto` then moves every element.
    Bottleneck: One core, and one of the two sides is walked with a long stride: each cache line of it serves one element before it
        is evicted at large sizes.
    Next: Loops of one's own, to have something to change: `numba_serial`.
    Source: The report's reference, with the copy that np.transpose leaves out.
    """
    np.copyto(outputs["y"], inputs["x"].transpose(perm_of(case)))


def _arguments(case: Case, inputs: Buffers, outputs: Buffers) -> tuple[Any, ...]:
    """x, the flat y, and how far apart neighbours along each axis of x lie in y."""
    return (inputs["x"], outputs["y"].reshape(-1), *out_strides_of(case))


@compiled(_arguments)
def numba_serial(x: Array, y: Array, stride0: int, stride1: int, stride2: int) -> None:
    """The report's sequential code: three nested loops over the input, one element after another, on one core.

    Idea: Read in order, write where the permutation says: `stride0` to `stride2` are the output's, by axis of the input.
    Bottleneck: Writes a stride apart, each to a cache line of its own, and one core's memory bandwidth.
    Next: All cores, and tiles that use a cache line while it is there: `numba_parallel`.
    Source: E. Sgarbanti, Advanced Computer Architectures report, section 0.4.1.
    """
    dim0, dim1, dim2 = x.shape
    for i0 in range(dim0):
        for i1 in range(dim1):
            for i2 in range(dim2):
                y[i0 * stride0 + i1 * stride1 + i2 * stride2] = x[i0, i1, i2]


@compiled(_arguments, parallel=True)
def numba_parallel(x: Array, y: Array, stride0: int, stride1: int, stride2: int) -> None:
    """Tiles of 16x16x16, shared out among the cores.

    Idea: 16 floats are a cache line: a tile touches 256 lines on each side, which stay in the first-level cache until all
        their elements are used.
    Bottleneck: Memory bandwidth, with stores that first read the line that they replace.
    Next: A GPU.
    Source: Own work.
    """
    tile = 16
    dim0, dim1, dim2 = x.shape
    tiles0, tiles1 = (dim0 + tile - 1) // tile, (dim1 + tile - 1) // tile
    for t in prange(tiles0 * tiles1):
        begin0, begin1 = t // tiles1 * tile, t % tiles1 * tile
        for begin2 in range(0, dim2, tile):
            for i0 in range(begin0, min(begin0 + tile, dim0)):
                for i1 in range(begin1, min(begin1 + tile, dim1)):
                    for i2 in range(begin2, min(begin2 + tile, dim2)):
                        y[i0 * stride0 + i1 * stride1 + i2 * stride2] = x[i0, i1, i2]


def numpy_view(case: Case, inputs: Buffers, outputs: Buffers) -> Buffers:
    """A pitfall, kept as a specimen: what looks like a transposition in no time is a view, and nothing was moved.

    Idea: Time `np.transpose` by itself, as if it transposed.
    Bottleneck: None: it makes a new header for the same memory, in the same time at any size.
    Next: Copy out of the view, or the elements never move: `numpy`.
    Source: E. Sgarbanti, Advanced Computer Architectures report, section 0.3.4, where 100x100 and 10000x10000 take the same time.
    """
    return {"y": inputs["x"].transpose(perm_of(case))}
