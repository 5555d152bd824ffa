"""The element-wise steps of a perceptron's training, on column-major matrices: their cases, buffers, inputs and reference.

NumPy's arrays are row-major, so a matrix of r rows and c columns is an array of shape (c, r), one column of the matrix after
another: array[j, i] is element (i, j).
"""

from collections.abc import Mapping
from typing import Final

import numpy as np

from warpladder.workloads.api import TOLERANCE, Axis, Buffer, Case, CaseSet, Params
from warpladder.workloads.ladder import counted, extents_of
from warpladder.workloads.threads import in_threads, slices

#: Operation -> arithmetic operations of an element by its definition. An exponential counts as one, and so does a division.
#: softmax: comparison with the largest, subtraction, exponential, addition, division.
FLOPS: Final[Mapping[str, int]] = {
    "transpose": 0,
    "subtract": 1,
    "multiply": 1,
    "column_sum": 1,
    "sigmoid": 4,
    "softmax": 5,
}
OPERATIONS: Final = tuple(FLOPS)
_ELEMENTS_AT_ONCE: Final = 1 << 18  # of the reference: 2 MB of float64, which stay in a core's L2
#: The operations on two matrices; the others take one.
BINARY: Final = ("subtract", "multiply")

REPORT_SIZE: Final = 1000
ODD_SHAPE: Final = "1003x517"  # rows x columns: columns that are not aligned to 16 bytes, no multiple of any tile

AXES: Final = (
    Axis("op", words=OPERATIONS),
    Axis("n", 1, 32768),
    Axis("shape", 1, 1 << 20, extents=2, instead_of="n"),
)

#: Relative L2 error that passes. The worst is a column sum of 8192 terms of random signs, one after another in float32: off by
#: about 0.42 * 2^-24 * sqrt(8192 / 2) = 1.6e-6; every other order of adding has less, and the other operations a few 2^-24.
#: One of the 518,551 elements of the odd case missing is 1e-3.
TOLERANCES: Final = {**TOLERANCE, "fp32": 2e-6}


def rows_and_columns(case: Case) -> tuple[int, int]:
    """Extents of the matrices that are read."""
    rows, columns = extents_of(case, 2)
    return rows, columns


def operation_of(case: Case) -> str:
    """One of `OPERATIONS`."""
    return str(case.params["op"])


def make_case(params: Params, sets: tuple[CaseSet, ...] = (), size_rank: int | None = None) -> Case:
    """A case `{"op": "sigmoid", "n": 1000}`, or one such as `{"op": "sigmoid", "shape": "1003x517"}`."""
    case = Case(params, 0, 0, sets, size_rank)
    rows, columns = rows_and_columns(case)
    return counted(case, FLOPS[params["op"]] * rows * columns, buffers(case))


def cases() -> tuple[Case, ...]:
    """The student report's size and a large one of every operation, and an odd shape that is verified but not charted.

    `quick` has only the softmax, which has a reduction and element-wise steps, at two sizes.
    """
    charted = [make_case({"op": "softmax", "n": 256}, ("quick",), 0)]
    for size_rank, n in enumerate((REPORT_SIZE, 8192), start=1):
        charted += [make_case({"op": op, "n": n}, _sets(op, n), size_rank) for op in OPERATIONS]
    return (*charted, *(make_case({"op": op, "shape": ODD_SHAPE}, ("report", "full")) for op in OPERATIONS))


def _sets(op: str, n: int) -> tuple[CaseSet, ...]:
    if n != REPORT_SIZE:
        return ("full",)
    return ("quick", "report", "full") if op == "softmax" else ("report", "full")


def emulation_cases() -> tuple[Case, ...]:
    """Matrices small enough for the CPU emulator: one row or column, less than a tile, edges anywhere, columns aligned to 16 bytes,
    columns that begin at each place of a vector, lines that begin with a sector or anywhere within, and columns that take more than
    one warp."""
    shapes = ("1x1", "1x9", "9x131", "5x3", "68x36", "67x33", "65x72", "1028x3", "1030x2", "1031x5")
    return tuple(make_case({"op": op, "shape": shape}) for op in OPERATIONS for shape in shapes)


def buffers(case: Case) -> tuple[Mapping[str, Buffer], Mapping[str, Buffer]]:
    """Matrix `x`, and `w` where there are two, in; `y` out, each an array of columns, or one value a column."""
    op, (rows, columns) = operation_of(case), rows_and_columns(case)
    matrix = Buffer((columns, rows))
    written = {"transpose": Buffer((rows, columns)), "column_sum": Buffer((columns,))}
    return {"x": matrix, **({"w": matrix} if op in BINARY else {})}, {"y": written.get(op, matrix)}


def make_inputs(case: Case, rng: np.random.Generator) -> Mapping[str, np.ndarray]:
    """Uniform in [-4, 4). This reaches both ends of the sigmoid, and makes every element of a softmax large enough to be
    checked."""
    inputs, _ = buffers(case)
    return {name: rng.random(buffer.shape, np.float32) * np.float32(8) - np.float32(4) for name, buffer in inputs.items()}


def reference(case: Case, inputs: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
    """The definition in float64.

    Args:
        case: which operation.
        inputs: `x`, and `w` for those of two matrices, arrays of shape (columns, rows).

    Returns:
        `y`, float64: of the shape of `x`, of (rows, columns) for transpose, of (columns,) for column_sum.
    """
    op, every = operation_of(case), inputs["x"]
    _, outputs = buffers(case)
    y = np.empty(outputs["y"].shape)

    def compute(columns: slice) -> None:
        x = every[columns].astype(np.float64)
        if op == "transpose":
            y[:, columns] = x.T
        elif op == "subtract":
            np.subtract(x, inputs["w"][columns], out=y[columns])
        elif op == "multiply":
            np.multiply(x, inputs["w"][columns], out=y[columns])
        elif op == "column_sum":
            x.sum(axis=1, out=y[columns])
        elif op == "sigmoid":
            y[columns] = 1.0 / (1.0 + np.exp(-x))
        else:
            x -= x.max(axis=1, keepdims=True)
            np.exp(x, out=x)
            np.divide(x, x.sum(axis=1, keepdims=True), out=y[columns])

    in_threads(compute, slices(len(every), _ELEMENTS_AT_ONCE // every.shape[1]))
    return {"y": y}
