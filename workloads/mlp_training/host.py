"""The training step on the host: BLAS through NumPy, and loops."""

from typing import Any, Final

import numpy as np

from warpladder.workloads.api import Array, Buffers, Case
from warpladder.workloads.mlp_training.problem import INPUTS, OUTPUTS, REGULARIZATION, rate_of
from warpladder.workloads.numba_loops import compiled, prange

#: Samples whose gradients are added up before they meet the weights: added one after another, in float32, 8192 lose what is asked for.
SAMPLES_ADDED: Final = 256


def forward(x: Array, w1: Array, b1: Array, w2: Array, b2: Array) -> tuple[Array, Array]:
    """The hidden layer's activations and the probabilities of the classes, in the type of the operands."""
    a1 = x @ w1
    a1 += b1
    sigmoid(a1)
    p = a1 @ w2
    p += b2
    softmax(p)
    return a1, p


def sigmoid(a: Array) -> None:
    """In place."""
    np.negative(a, out=a)
    np.exp(a, out=a)
    a += 1
    np.reciprocal(a, out=a)


def softmax(p: Array) -> None:
    """In place, a sample a row."""
    p -= p.max(axis=1, keepdims=True)
    np.exp(p, out=p)
    p /= p.sum(axis=1, keepdims=True)


def numpy_blas(case: Case, inputs: Buffers, outputs: Buffers) -> None:
    """The five products by the host's BLAS, everything between them by NumPy.

    Idea: The formulas as they stand. BLAS uses all cores and tiles for the caches.
    Bottleneck: The multiply-add units of the cores, for the two products of 784 x 1000 a sample.
    Next: A GPU: first for the products alone, `v01_products_only`.
    Source: The report's sequential code calls Armadillo, which calls BLAS alike.
    """
    x, y, w1, b1, w2, b2 = (inputs[name] for name in ("x", "y", *INPUTS))
    a1, dz2 = forward(x, w1, b1, w2, b2)
    dz2 -= y
    dz2 /= np.float32(len(x))
    dz1 = dz2 @ w2.T
    dz1 *= a1
    dz1 -= dz1 * a1
    rate = np.float32(rate_of(case))
    keep = np.float32(1.0 - rate_of(case) * REGULARIZATION)
    new_w1, new_b1, new_w2, new_b2 = (outputs[name] for name in OUTPUTS)
    for new, old, gradient in ((new_w1, w1, x.T @ dz1), (new_w2, w2, a1.T @ dz2)):
        np.multiply(old, keep, out=new)
        gradient *= rate
        new -= gradient
    np.subtract(b1, rate * dz1.sum(axis=0), out=new_b1)
    np.subtract(b2, rate * dz2.sum(axis=0), out=new_b2)


def _arguments(case: Case, inputs: Buffers, outputs: Buffers) -> tuple[Any, ...]:
    """Samples, labels, weights, new weights, rate and regularisation."""
    read = (inputs[name] for name in ("x", "y", *INPUTS))
    return (*read, *(outputs[name] for name in OUTPUTS), np.float32(rate_of(case)), np.float32(REGULARIZATION))


@compiled(_arguments)
def numba_serial(
    x: Array, y: Array, w1: Array, b1: Array, w2: Array, b2: Array, new_w1: Array, new_b1: Array, new_w2: Array, new_b2: Array,
    rate: np.float32, regularization: np.float32,
) -> None:  # fmt: skip
    """Loops on one core, a sample after another.

    Idea: One sample goes forward and back while its 1000 activations are in L1; innermost loops run along the hidden units, which
        are neighbours in memory, so that they become vectors.
    Bottleneck: One core, and its L2: all of w1 and all of its gradient pass through it for every sample.
    Next: All cores, and several samples for each pass through w1: `numba_parallel`.
    Source: M. L. Wong, "CME213 Final Project Report": the sequential network, written from its description.
    """
    batch, pixels = x.shape
    hidden, classes = w2.shape
    keep = np.float32(1.0) - rate * regularization
    new_w1[:] = keep * w1
    new_w2[:] = keep * w2
    new_b1[:] = b1
    new_b2[:] = b2
    a1, dz1, dz2 = np.empty(hidden, np.float32), np.empty(hidden, np.float32), np.empty(classes, np.float32)
    step = rate / np.float32(batch)
    for n in range(batch):
        a1[:] = b1
        for d in range(pixels):
            value = x[n, d]
            for h in range(hidden):
                a1[h] += value * w1[d, h]
        dz2[:] = b2
        for h in range(hidden):
            a1[h] = np.float32(1.0) / (np.float32(1.0) + np.exp(-a1[h]))
            for c in range(classes):
                dz2[c] += a1[h] * w2[h, c]
        largest, total = dz2.max(), np.float32(0.0)
        for c in range(classes):
            dz2[c] = np.exp(dz2[c] - largest)
            total += dz2[c]
        for c in range(classes):
            dz2[c] = step * (dz2[c] / total - y[n, c])
            new_b2[c] -= dz2[c]
        for h in range(hidden):
            total = np.float32(0.0)
            for c in range(classes):
                total += dz2[c] * w2[h, c]
                new_w2[h, c] -= a1[h] * dz2[c]
            dz1[h] = total * a1[h] * (np.float32(1.0) - a1[h])
            new_b1[h] -= dz1[h]
        for d in range(pixels):
            value = x[n, d]
            for h in range(hidden):
                new_w1[d, h] -= value * dz1[h]


@compiled(_arguments, parallel=True)
def numba_parallel(
    x: Array, y: Array, w1: Array, b1: Array, w2: Array, b2: Array, new_w1: Array, new_b1: Array, new_w2: Array, new_b2: Array,
    rate: np.float32, regularization: np.float32,
) -> None:  # fmt: skip
    """Samples shared out among the cores on the way forward, rows of w1 on the way back.

    Idea: Two passes. Forward, a core takes 8 samples, so that a row of w1 serves all of them while it is in L1. Back, a core
        takes 8 rows of w1, so that a sample's gradient serves all of them; no two cores write the same weights. Gradients are
        added up 256 samples at a time, so that few are added to a large sum.
    Bottleneck: Loads and stores: two and one for each vector of multiply-adds, where BLAS keeps its sums in registers.
    Next: `numpy`, or a GPU.
    Source: Own work.
    """
    batch, pixels = x.shape
    hidden, classes = w2.shape
    keep, step, group = np.float32(1.0) - rate * regularization, rate / np.float32(batch), 8
    a1, dz1, dz2 = (
        np.empty((batch, hidden), np.float32),
        np.empty((batch, hidden), np.float32),
        np.empty((batch, classes), np.float32),
    )
    for part in prange((batch + group - 1) // group):
        first, last = part * group, min(part * group + group, batch)
        for n in range(first, last):
            a1[n] = b1
        for d in range(pixels):
            row = w1[d]
            for n in range(first, last):
                value, sums = x[n, d], a1[n]
                for h in range(hidden):
                    sums[h] += value * row[h]
        for n in range(first, last):
            z2 = b2.copy()
            for h in range(hidden):
                a1[n, h] = np.float32(1.0) / (np.float32(1.0) + np.exp(-a1[n, h]))
                for c in range(classes):
                    z2[c] += a1[n, h] * w2[h, c]
            largest, total = z2.max(), np.float32(0.0)
            for c in range(classes):
                z2[c] = np.exp(z2[c] - largest)
                total += z2[c]
            for c in range(classes):
                dz2[n, c] = step * (z2[c] / total - y[n, c])
            for h in range(hidden):
                total = np.float32(0.0)
                for c in range(classes):
                    total += dz2[n, c] * w2[h, c]
                dz1[n, h] = total * a1[n, h] * (np.float32(1.0) - a1[n, h])
    for part in prange((pixels + group - 1) // group):
        first, last = part * group, min(part * group + group, pixels)
        for d in range(first, last):
            for h in range(hidden):
                new_w1[d, h] = keep * w1[d, h]
        gradient = np.empty((group, hidden), np.float32)
        for start in range(0, batch, SAMPLES_ADDED):
            gradient[:] = np.float32(0.0)
            for n in range(start, min(start + SAMPLES_ADDED, batch)):
                row = dz1[n]
                for d in range(first, last):
                    value, sums = x[n, d], gradient[d - first]
                    for h in range(hidden):
                        sums[h] += value * row[h]
            for d in range(first, last):
                for h in range(hidden):
                    new_w1[d, h] -= gradient[d - first, h]
    for h in prange(hidden):
        new_b1[h] = b1[h]
        new_w2[h] = keep * w2[h]
        sums = np.empty(classes, np.float32)
        for start in range(0, batch, SAMPLES_ADDED):
            total = np.float32(0.0)
            sums[:] = np.float32(0.0)
            for n in range(start, min(start + SAMPLES_ADDED, batch)):
                total += dz1[n, h]
                for c in range(classes):
                    sums[c] += a1[n, h] * dz2[n, c]
            new_b1[h] -= total
            new_w2[h] -= sums
    new_b2[:] = b2
    for start in range(0, batch, SAMPLES_ADDED):
        for c in range(classes):
            new_b2[c] -= dz2[start : start + SAMPLES_ADDED, c].sum()
