"""The element-wise steps on the host: NumPy's functions, and loops."""

from typing import Any

import numpy as np

from warpladder.workloads.api import Array, Buffers, Case
from warpladder.workloads.mlp_elementwise.problem import OPERATIONS, operation_of
from warpladder.workloads.numba_loops import compiled, prange

_TRANSPOSE, _SUBTRACT, _MULTIPLY, _COLUMN_SUM, _SIGMOID, _SOFTMAX = range(len(OPERATIONS))


def numpy_whole_arrays(case: Case, inputs: Buffers, outputs: Buffers) -> None:
    """One function of NumPy after another, each over the whole matrix.

    Idea: What one writes in Python. NumPy's loops use the vector instructions of one core, for the exponential too.
    Bottleneck: Memory, and one core: the sigmoid is three passes over the matrix, the softmax five.
    Next: One pass, in compiled loops: `numba_serial`; on all cores: `numba_parallel`.
    Source: Own work; the report's host code calls Armadillo alike.
    """
    op, x, y = operation_of(case), inputs["x"], outputs["y"]
    if op == "transpose":
        np.copyto(y, x.T)
    elif op == "subtract":
        np.subtract(x, inputs["w"], out=y)
    elif op == "multiply":
        np.multiply(x, inputs["w"], out=y)
    elif op == "column_sum":
        np.sum(x, axis=1, out=y)
    elif op == "sigmoid":
        np.negative(x, out=y)
        np.exp(y, out=y)
        np.add(y, np.float32(1), out=y)
        np.reciprocal(y, out=y)
    else:
        np.subtract(x, x.max(axis=1, keepdims=True), out=y)
        np.exp(y, out=y)
        np.divide(y, y.sum(axis=1, keepdims=True), out=y)


def _arguments(case: Case, inputs: Buffers, outputs: Buffers) -> tuple[Any, ...]:
    """The operation's number, the matrices, and the output with two dimensions in any case."""
    y = outputs["y"]
    return OPERATIONS.index(operation_of(case)), inputs["x"], inputs.get("w", inputs["x"]), y.reshape(len(y), -1)


@compiled(_arguments)
def numba_serial(op: int, x: Array, w: Array, y: Array) -> None:
    """The report's sequential code: two nested loops, one element after another, on one core.

    Idea: Columns in the outer loop, elements of a column, which are neighbours in memory, in the inner one.
    Bottleneck: One core: exponentials, one at a time, for sigmoid and softmax; memory for the others, and for the
        transposition a cache line a store.
    Next: Columns shared out among the cores: `numba_parallel`.
    Source: M. L. Wong, "CME213 Final Project Report", table 1, written from its description.
    """
    columns, rows = x.shape
    for j in range(columns):
        if op == _TRANSPOSE:
            for i in range(rows):
                y[i, j] = x[j, i]
        elif op == _SUBTRACT:
            for i in range(rows):
                y[j, i] = x[j, i] - w[j, i]
        elif op == _MULTIPLY:
            for i in range(rows):
                y[j, i] = x[j, i] * w[j, i]
        elif op == _COLUMN_SUM:
            total = np.float32(0.0)
            for i in range(rows):
                total += x[j, i]
            y[j, 0] = total
        elif op == _SIGMOID:
            for i in range(rows):
                y[j, i] = np.float32(1.0) / (np.float32(1.0) + np.exp(-x[j, i]))
        else:
            largest = x[j, 0]
            for i in range(1, rows):
                largest = max(largest, x[j, i])
            total = np.float32(0.0)
            for i in range(rows):
                y[j, i] = np.exp(x[j, i] - largest)
                total += y[j, i]
            for i in range(rows):
                y[j, i] /= total


@compiled(_arguments, parallel=True)
def numba_parallel(op: int, x: Array, w: Array, y: Array) -> None:
    """Groups of 16 columns shared out among the cores.

    Idea: Columns are independent. 16 of them at a time, because the transposition then writes whole cache lines.
    Bottleneck: Memory bandwidth; for sigmoid and softmax, exponentials on few cores.
    Next: A GPU.
    Source: Own work.
    """
    columns, rows = x.shape
    group = 16
    for part in prange((columns + group - 1) // group):
        first = part * group
        last = min(first + group, columns)
        if op == _TRANSPOSE:
            for i in range(rows):
                for j in range(first, last):
                    y[i, j] = x[j, i]
            continue
        for j in range(first, last):
            if op == _SUBTRACT:
                y[j] = x[j] - w[j]
            elif op == _MULTIPLY:
                y[j] = x[j] * w[j]
            elif op == _COLUMN_SUM:
                total = np.float32(0.0)
                for i in range(rows):
                    total += x[j, i]
                y[j, 0] = total
            elif op == _SIGMOID:
                for i in range(rows):
                    y[j, i] = np.float32(1.0) / (np.float32(1.0) + np.exp(-x[j, i]))
            else:
                largest = x[j, 0]
                for i in range(1, rows):
                    largest = max(largest, x[j, i])
                total = np.float32(0.0)
                for i in range(rows):
                    y[j, i] = np.exp(x[j, i] - largest)
                    total += y[j, i]
                for i in range(rows):
                    y[j, i] /= total
