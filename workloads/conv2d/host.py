"""The convolution on the host: the reference in float64, and the three host variants."""

from collections.abc import Mapping

import numpy as np

from warpladder.workloads.api import Array, Buffers, Case
from warpladder.workloads.numba_loops import compiled, prange
from warpladder.workloads.threads import in_threads, slices

SIZE = 5
RADIUS = SIZE // 2
_BLOCK_ELEMENTS = 1 << 16  # of float64: half a megabyte, which stays in a core's L2


def reference(case: Case, inputs: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
    """C(i, j) = sum over m, n of A[m, n] * B[i + m - 2, j + n - 2] in float64, B being zero outside.

    Works a block of rows at a time, so that it needs little more memory than its output.

    Args:
        case: not used; the shapes are those of the inputs.
        inputs: `a`, the 5 x 5 filter, and `b`, the image of any height and width.

    Returns:
        `c`, float64, of the shape of `b`.
    """
    a, b = inputs["a"].astype(np.float64), inputs["b"]
    height, width = b.shape
    c = np.zeros(b.shape)

    def convolve(block: slice) -> None:
        top, rows = block.start, c[block]
        padded = np.zeros((len(rows) + 2 * RADIUS, width + 2 * RADIUS))
        first, last = max(0, top - RADIUS), min(height, top + len(rows) + RADIUS)
        padded[first - top + RADIUS : last - top + RADIUS, RADIUS:-RADIUS] = b[first:last]
        for m, n in np.ndindex(SIZE, SIZE):
            rows += a[m, n] * padded[m : m + len(rows), n : n + width]

    in_threads(convolve, slices(height, _BLOCK_ELEMENTS // width))
    return {"c": c}


def numpy_shifted(case: Case, inputs: Buffers, outputs: Buffers) -> None:
    """25 shifted copies of the zero-padded image, each scaled by its weight and added up.

    Idea: No loop over pixels in Python: for each of the 25 weights, one multiplication and one addition of whole images.
    Bottleneck: Memory. Each of the 25 passes reads and writes images larger than any cache, for one multiply-add a pixel.
    Next: All 25 terms of a pixel while it is in a register, in compiled loops: `numba_serial`.
    Source: Own work.
    """
    a, b, c = inputs["a"], inputs["b"], outputs["c"]
    height, width = b.shape
    padded = np.pad(b, RADIUS)
    term = np.empty_like(c)
    c[...] = 0.0
    for m, n in np.ndindex(SIZE, SIZE):
        np.multiply(padded[m : m + height, n : n + width], a[m, n], out=term)
        c += term


def _arguments(case: Case, inputs: Buffers, outputs: Buffers) -> tuple[Array, Array, Array]:
    return inputs["a"], inputs["b"], outputs["c"]


@compiled(_arguments)
def numba_serial(a: Array, b: Array, c: Array) -> None:
    """The report's sequential code: four nested loops, one pixel after another, on one core.

    Idea: For each pixel, the part of the filter that lies inside the image, summed in double.
    Bottleneck: One core, one multiply-add at a time: inner loops of at most five steps with bounds that change at the edges.
    Next: All cores, and inner loops along a row, which the compiler can turn into vector instructions.
    Source: G. Matthews, M. Klobukov, "CUDA Assignment 3: 2D Convolution", Drexel University ECEC-622, 2017: the loops of
        ConvolutionKernel over the whole image.
    """
    height, width = b.shape
    for i in range(height):
        m_begin, m_end = max(0, RADIUS - i), min(SIZE, height + RADIUS - i)
        for j in range(width):
            n_begin, n_end = max(0, RADIUS - j), min(SIZE, width + RADIUS - j)
            total = 0.0
            for m in range(m_begin, m_end):
                for n in range(n_begin, n_end):
                    total += a[m, n] * b[i + m - RADIUS, j + n - RADIUS]
            c[i, j] = total


@compiled(_arguments, parallel=True)
def numba_parallel(a: Array, b: Array, c: Array) -> None:
    """Rows shared out among the cores, and vector instructions along each row.

    Idea: Copy the five input rows of an output row between zeros, which takes the edges out of the loops: what remains has
        fixed trip counts and no branch, sums in float, and the compiler turns neighbouring pixels into vectors.
    Bottleneck: Loads: 25 vectors from cache for each vector of outputs, since a window slides by less than a vector.
    Next: A GPU.
    Source: Own work.
    """
    height, width = b.shape
    for i in prange(height):
        rows = np.zeros((SIZE, width + 2 * RADIUS), np.float32)
        for m in range(max(0, RADIUS - i), min(SIZE, height + RADIUS - i)):
            rows[m, RADIUS : RADIUS + width] = b[i + m - RADIUS]
        for j in range(width):
            total = np.float32(0.0)
            for m in range(SIZE):
                for n in range(SIZE):
                    total += a[m, n] * rows[m, j + n]
            c[i, j] = total
