"""The transposition on the host, and the pitfall that measures none."""

from typing import Any

import numpy as np

from warpladder.workloads.api import Array, Buffers, Case
from warpladder.workloads.numba_loops import compiled, prange
from warpladder.workloads.tensor_transpose.problem import out_strides_of, perm_of


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


def _planes(case: Case, inputs: Buffers, outputs: Buffers) -> tuple[Any, ...]:
    """As `_arguments`, with the axis that becomes the innermost one put second, unless that is the innermost already."""
    stride0, stride1, stride2 = out_strides_of(case)
    x, y = inputs["x"], outputs["y"].reshape(-1)
    return (x.swapaxes(0, 1), y, stride1, stride0, stride2) if stride0 == 1 else (x, y, stride0, stride1, stride2)


@compiled(_planes, parallel=True)
def numba_parallel(planes: Array, y: Array, plane_stride: int, row_stride: int, column_stride: int) -> None:
    """Tiles of 16x16 through a buffer, shared out among the cores.

    Idea: 16 floats are a cache line. A tile is read in whole lines into a buffer that stays in the first-level cache, and
        written from there in whole lines, so that no line waits in a cache for its other elements.
    Bottleneck: Memory bandwidth, with stores that first read the line that they replace; at sizes that are powers of two, lines
        that fall into the same few sets of the caches. Where planes or rows stay nearly in order, (0,2,1) and (1,0,2), it gains nothing.
    Next: A GPU.
    Source: Own work, after the shared-memory tiles of the CUDA rungs.
    """
    tile = 16
    depth, height, width = planes.shape
    strips = (height + tile - 1) // tile
    for t in prange(depth * strips):
        plane, top = t // strips, t % strips * tile
        rows = min(tile, height - top)
        start = plane * plane_stride + top * row_stride
        buffer = np.empty((tile, tile), np.float32)
        for left in range(0, width, tile):
            columns = min(tile, width - left)
            if column_stride == 1:
                for row in range(rows):
                    for column in range(left, left + columns):
                        y[start + row * row_stride + column] = planes[plane, top + row, column]
            else:
                for row in range(rows):
                    for column in range(columns):
                        buffer[column, row] = planes[plane, top + row, left + column]
                for column in range(columns):
                    for row in range(rows):
                        y[start + (left + column) * column_stride + row] = buffer[column, row]


def numpy_view(case: Case, inputs: Buffers, outputs: Buffers) -> Buffers:
    """A pitfall, kept as a specimen: what looks like a transposition in no time is a view, and nothing was moved.

    Idea: Time `np.transpose` by itself, as if it transposed.
    Bottleneck: None: it makes a new header for the same memory, in the same time at any size.
    Next: Copy out of the view, or the elements never move: `numpy`.
    Source: E. Sgarbanti, Advanced Computer Architectures report, section 0.3.4, where 100x100 and 10000x10000 take the same time.
    """
    return {"y": inputs["x"].transpose(perm_of(case))}
