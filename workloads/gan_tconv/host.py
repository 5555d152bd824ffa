"""The generator on the host: the reference in float64, and the three host variants."""

from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np

from warpladder.workloads.api import Array, Buffers, Case
from warpladder.workloads.gan_tconv.problem import COLOURS, EPSILON, KERNEL_SIZE, Layer, channels_of, layers, side_of
from warpladder.workloads.numba_loops import compiled, prange
from warpladder.workloads.threads import in_threads, slices

_IMAGES_AT_ONCE = 8  # fewer, and the matrix products are small


def scale_and_shift(bn: Array, bias: Array | float) -> tuple[Array, Array]:
    """Batch normalisation of x + bias as x * scale + shift, in the type of `bn`."""
    gamma, beta, mean, variance = bn
    scale = gamma / np.sqrt(variance + np.asarray(EPSILON, bn.dtype))
    return scale, beta + (bias - mean) * scale


def reference(case: Case, inputs: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
    """The images in float64, `images` x 64 x 64 x 3.

    A transposed convolution is out[y, x, k] = sum over i, j, c of in[i, j, c] * W[y + 1 - 2i, x + 1 - 2j, k, c], where both
    indices of W lie in 0 to 4: the report's formula (9). Here every input meets every tap in a matrix product, and each tap's
    part is added where it belongs. A few images at a time: beside the result it takes 50 MB a thread.
    """
    wide = {name: array.astype(np.float64) for name, array in inputs.items()}
    network, side = layers(case), side_of(case)
    images = np.empty((len(wide["z"]), 16 * side, 16 * side, COLOURS))

    def generate(rows: slice) -> None:
        # Channels, rows, columns, images: what stands side by side belongs to one channel, and runs are long in every layer.
        x = (wide["w0"] @ wide["z"][rows].T).reshape(side, side, channels_of(case), -1).transpose(2, 0, 1, 3)
        x = _normalised(np.ascontiguousarray(x), wide["bn0"], 0.0)
        for layer in network:
            x, bias = _transposed_convolution(x, wide[f"w{layer.number}"]), wide[f"b{layer.number}"]
            if layer.last:
                x += _by_channel(bias)
                np.tanh(x.transpose(3, 1, 2, 0), out=images[rows])
            else:
                x = _normalised(x, wide[f"bn{layer.number}"], bias)

    in_threads(generate, slices(len(images), _IMAGES_AT_ONCE))
    return {"images": images}


def _by_channel(values: Array) -> Array:
    return values[:, None, None, None]


def _normalised(x: np.ndarray, bn: Array, bias: Array | float) -> np.ndarray:
    scale, shift = scale_and_shift(bn, bias)
    x *= _by_channel(scale)
    x += _by_channel(shift)
    np.maximum(x, 0.0, out=x)
    return x


def _transposed_convolution(x: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Channels x side x side x images to output channels x 2 side x 2 side x images.

    Input i and tap r meet in row 2i + r - 1. With one more row in front that is row i + r // 2 of those whose parity is r's, so
    that the four kinds of pixels, even and odd in both directions, are kept apart until all is added: runs of a row, not of a pixel.
    """
    channels, side, _, images = x.shape
    out_channels = weights.shape[2]
    inputs = x.reshape(channels, -1)
    kinds = np.zeros((2, 2, out_channels, side + 2, side + 2, images))
    for r in range(KERNEL_SIZE):
        parts = (weights[r].reshape(-1, channels) @ inputs).reshape(KERNEL_SIZE, out_channels, side, side, images)
        for s in range(KERNEL_SIZE):
            i, j = r // 2, s // 2
            kinds[r % 2, s % 2][:, i : i + side, j : j + side] += parts[s]
    out = np.empty((out_channels, 2 * side, 2 * side, images))
    for y, column in product((0, 1), (0, 1)):
        out[:, y::2, column::2] = kinds[1 - y, 1 - column][:, y : y + side, column : column + side]
    return out


def numpy_scattered(case: Case, inputs: Buffers, outputs: Buffers) -> None:
    """One matrix product a layer, whose results are added up where they belong.

    Idea: Every input pixel times all 25 taps is one matrix product, without a gather and without a zero; each tap's part is
        then added to every second row and column of the output.
    Bottleneck: The parts: 25 of them for each input pixel, 6.25 times the output, written by the product and read by the sums.
    Next: Sums in registers: gather the taps of an output pixel instead.
    Source: Own work; col2im, as deep-learning libraries have it.
    """
    x = inputs["z"] @ inputs["w0"].T
    x = x.reshape(-1, side_of(case), side_of(case), channels_of(case))
    scale, shift = scale_and_shift(inputs["bn0"], np.float32(0.0))
    x = np.maximum(x * scale + shift, 0.0)
    for layer in layers(case):
        x = _scattered(x, inputs[f"w{layer.number}"], layer) + inputs[f"b{layer.number}"]
        if not layer.last:
            scale, shift = scale_and_shift(inputs[f"bn{layer.number}"], np.float32(0.0))
            x = np.maximum(x * scale + shift, 0.0)
    np.tanh(x, out=outputs["images"])


def _scattered(x: np.ndarray, weights: np.ndarray, layer: Layer) -> np.ndarray:
    """The transposed convolution in the type of x; input i and tap r go to row 2i + r - 1."""
    images, span = len(x), 2 * layer.side
    padded = np.zeros((images, span + 3, span + 3, layer.out_channels), x.dtype)
    parts = (x.reshape(-1, layer.channels) @ weights.reshape(-1, layer.channels).T).reshape(
        images, layer.side, layer.side, KERNEL_SIZE, KERNEL_SIZE, layer.out_channels
    )
    for r, s in np.ndindex(KERNEL_SIZE, KERNEL_SIZE):
        padded[:, r : r + span : 2, s : s + span : 2] += parts[:, :, :, r, s]
    return padded[:, 1 : 1 + span, 1 : 1 + span]


def _arguments(case: Case, inputs: Buffers, outputs: Buffers) -> tuple[Any, ...]:
    folded = [scale_and_shift(inputs["bn0"], np.float32(0.0))]
    folded += [scale_and_shift(inputs[f"bn{n}"], inputs[f"b{n}"]) for n in (1, 2, 3)]
    folded += [
        (np.ones_like(inputs["b4"]), inputs["b4"].copy())
    ]  # an input is read-only: to Numba another type than the others
    scales, shifts = zip(*folded, strict=True)
    weights = tuple(inputs[f"w{n}"] for n in (1, 2, 3, 4))
    return inputs["z"], inputs["w0"], weights, scales, shifts, outputs["images"]


@compiled(_arguments)
def numba_serial(z: Array, w0: Array, weights: Any, scales: Any, shifts: Any, images: Array) -> None:
    """The definition as loops, one image, pixel and channel after another, on one core.

    Idea: For each output pixel, the taps that meet an input pixel: every second one, from the parity of the output on.
    Bottleneck: One core, and one addition at a time: a sum of float32 may not be reordered into vectors.
    Next: All cores, and sums that may.
    Source: S. Yi, "SHPC 2021 Fall Term Project Report", Seoul National University, 2021, formula (9) and section 2.2.1.
    """
    channels = len(scales[0])
    first = images.shape[1] // 16
    for image in range(len(z)):
        x = np.empty((first, first, channels), np.float32)
        for i in range(first):
            for j in range(first):
                for k in range(channels):
                    total = np.float32(0.0)
                    for c in range(z.shape[1]):
                        total += z[image, c] * w0[(i * first + j) * channels + k, c]
                    x[i, j, k] = max(total * scales[0][k] + shifts[0][k], np.float32(0.0))
        for layer in range(4):
            w = weights[layer]
            side = x.shape[0]
            out = np.empty((2 * side, 2 * side, w.shape[2]), np.float32)
            for p in range(2 * side):
                for q in range(2 * side):
                    for k in range(w.shape[2]):
                        total = np.float32(0.0)
                        for i in range(max(0, (p - 2) // 2), min(side, (p + 1) // 2 + 1)):
                            for j in range(max(0, (q - 2) // 2), min(side, (q + 1) // 2 + 1)):
                                for c in range(x.shape[2]):
                                    total += x[i, j, c] * w[p + 1 - 2 * i, q + 1 - 2 * j, k, c]
                        value = total * scales[layer + 1][k] + shifts[layer + 1][k]
                        out[p, q, k] = np.tanh(value) if layer == 3 else max(value, np.float32(0.0))
            x = out
        images[image] = x


@compiled(_arguments, parallel=True, fastmath={"reassoc", "contract"})
def numba_parallel(z: Array, w0: Array, weights: Any, scales: Any, shifts: Any, images: Array) -> None:
    """Images shared out among the cores, and vector instructions along the channels.

    Idea: An image needs nothing of another. Within a sum the compiler may reorder, which makes vectors of neighbouring channels.
    Bottleneck: Loads: each product takes a weight and an input out of the caches, and neither is used twice while in a register.
    Next: Register tiles, which is what the BLAS under `numpy` has; then a GPU.
    Source: Own work.
    """
    channels = len(scales[0])
    first = images.shape[1] // 16
    for image in prange(len(z)):
        x = np.empty((first, first, channels), np.float32)
        for pixel in range(first * first):
            for k in range(channels):
                total = np.float32(0.0)
                for c in range(z.shape[1]):
                    total += z[image, c] * w0[pixel * channels + k, c]
                x[pixel // first, pixel % first, k] = max(total * scales[0][k] + shifts[0][k], np.float32(0.0))
        for layer in range(4):
            w = weights[layer]
            side = x.shape[0]
            out = np.empty((2 * side, 2 * side, w.shape[2]), np.float32)
            for p in range(2 * side):
                for q in range(2 * side):
                    for k in range(w.shape[2]):
                        total = np.float32(0.0)
                        for i in range(max(0, (p - 2) // 2), min(side, (p + 1) // 2 + 1)):
                            for j in range(max(0, (q - 2) // 2), min(side, (q + 1) // 2 + 1)):
                                for c in range(x.shape[2]):
                                    total += x[i, j, c] * w[p + 1 - 2 * i, q + 1 - 2 * j, k, c]
                        value = total * scales[layer + 1][k] + shifts[layer + 1][k]
                        out[p, q, k] = np.tanh(value) if layer == 3 else max(value, np.float32(0.0))
            x = out
        images[image] = x
