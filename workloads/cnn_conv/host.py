"""The layer on the host: the reference in float64, and the three host variants."""

from collections.abc import Mapping

import numpy as np

from warpladder.workloads.api import Array, Buffers, Case
from warpladder.workloads.cnn_conv.problem import SIZE, shape_of
from warpladder.workloads.numba_loops import compiled, prange
from warpladder.workloads.threads import in_threads, slices

_BLOCK_BYTES = 1 << 24  # of unrolled images at a time, which stay in the last cache
_SHIFTED_BYTES = 1 << 20  # of shifted ones, which stay in a core's L2


def reference(case: Case, inputs: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
    """The definition in float64, by one matrix product for each row of the filters.

    The images are copied seven times, shifted by 0 to 6 columns. Row p of the filters then meets rows p and on of these
    copies: y[b] += k[:, :, p, :] as a matrix of maps x 7 channels, times 7 channels x pixels. A few images at a time, so that
    it needs little more memory than its output.

    Args:
        case: not used; the shapes are those of the inputs.
        inputs: `x`, images of batch x channels x height x width, and `k`, filters of maps x channels x 7 x 7.

    Returns:
        `y`, float64, of batch x maps x (height - 6) x (width - 6).
    """
    x, k = inputs["x"], inputs["k"].astype(np.float64)
    batch, channels, height, width = x.shape
    maps, out_height, out_width = len(k), height - SIZE + 1, width - SIZE + 1
    y = np.zeros((batch, maps, out_height, out_width))
    at_once = max(1, _SHIFTED_BYTES // (8 * channels * SIZE * height * out_width))

    def convolve(few: slice) -> None:
        images = x[few]
        shifted = np.empty((len(images), channels, SIZE, height, out_width))
        for q in range(SIZE):
            shifted[:, :, q] = images[..., q : q + out_width]
        sums = y[few].reshape(len(images), maps, -1)
        pixels = shifted.reshape(len(images), channels * SIZE, -1)
        for p in range(SIZE):
            weights = k[:, :, p, :].reshape(maps, channels * SIZE)
            sums += weights @ pixels[..., p * out_width : (p + out_height) * out_width]

    in_threads(convolve, slices(batch, at_once))
    return {"y": y}


def numpy_unrolled(case: Case, inputs: Buffers, outputs: Buffers) -> None:
    """Every window of an image becomes a column, and the layer a matrix product.

    Idea: Copy the 49 shifted images of each channel under one another: the filters, a matrix of maps x taps, times these
        gives the maps, and BLAS does the work. For each of the taps one copy, a few images at a time.
    Bottleneck: The copies: every pixel is written 49 times. And a product whose left side has 4 or 16 rows reuses
        little of what it reads.
    Next: No copies: the loops themselves, compiled: `numba_serial`.
    Source: K. Chellapilla, S. Puri, P. Simard, "High Performance Convolutional Neural Networks for Document Processing", 2006.
    """
    x, y = inputs["x"], outputs["y"]
    shape = shape_of(case)
    filters = inputs["k"].reshape(shape.maps, shape.taps)
    at_once = max(1, _BLOCK_BYTES // (4 * shape.taps * shape.out_height * shape.out_width))
    for first in range(0, shape.batch, at_once):
        images = x[first : first + at_once]
        columns = np.empty((len(images), shape.channels, SIZE, SIZE, shape.out_height, shape.out_width), np.float32)
        for p, q in np.ndindex(SIZE, SIZE):
            columns[:, :, p, q] = images[:, :, p : p + shape.out_height, q : q + shape.out_width]
        sums = y[first : first + at_once].reshape(len(images), shape.maps, -1)
        np.matmul(filters, columns.reshape(len(images), shape.taps, -1), out=sums)


def _arguments(case: Case, inputs: Buffers, outputs: Buffers) -> tuple[Array, Array, Array]:
    return inputs["x"], inputs["k"], outputs["y"]


@compiled(_arguments)
def numba_serial(x: Array, k: Array, y: Array) -> None:
    """The report's sequential code: seven nested loops on one core.

    Idea: One output after another: images, maps, rows, columns, and for each the window in all channels.
    Bottleneck: One core and one chain of additions: each waits for the one before it.
    Next: Neighbouring outputs side by side in vector registers, images and maps on all cores.
    Source: J. Danner, K. Torng, Y. Deng, "ECE 408 Final Project Report", University of Illinois Urbana-Champaign: milestone 2,
        written from its description.
    """
    batch, maps, out_height, out_width = y.shape
    for b in range(batch):
        for m in range(maps):
            for h in range(out_height):
                for w in range(out_width):
                    total = np.float32(0.0)
                    for c in range(x.shape[1]):
                        for p in range(SIZE):
                            for q in range(SIZE):
                                total += x[b, c, h + p, w + q] * k[m, c, p, q]
                    y[b, m, h, w] = total


@compiled(_arguments, parallel=True)
def numba_parallel(x: Array, k: Array, y: Array) -> None:
    """Planes of the output shared out among the cores, and vector instructions along each row.

    Idea: The loop over columns innermost: a weight times a row of the image is added to a row of the output, with neighbours
        in memory that the compiler makes vectors of. The row of sums stays in L1.
    Bottleneck: Loads and stores of the sums: two vectors read and one written for each multiply-add.
    Next: A GPU.
    Source: Own work.
    """
    batch, maps, out_height, out_width = y.shape
    for plane in prange(batch * maps):
        b, m = plane // maps, plane % maps
        for h in range(out_height):
            row = y[b, m, h]
            row[:] = 0.0
            for c in range(x.shape[1]):
                for p in range(SIZE):
                    for q in range(SIZE):
                        weight = k[m, c, p, q]
                        for w in range(out_width):
                            row[w] += weight * x[b, c, h + p, w + q]
