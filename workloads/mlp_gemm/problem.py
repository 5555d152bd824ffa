"""The product D = alpha A B + beta C: its cases, its buffers, its inputs and its reference.

Matrices are column-major, as in the report. NumPy's arrays are row-major, so a matrix of m rows and n columns is an array of
shape (n, m), one column of the matrix after another: array[j, i] is element (i, j).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from warpladder.workloads.api import TOLERANCE, Buffer, Case, CaseSet, Params
from warpladder.workloads.ladder import counted, extents_of

#: Neither is 0, 1 or -1, so that a kernel that leaves out a factor or a term is wrong. Both are exact in float32.
ALPHA: Final = 1.25
BETA: Final = -0.75

#: Relative L2 errors that pass, at every size. A sum of k products of random signs, added one after another in float32, is
#: off by about 0.42 * 2^-24 * sqrt(k / 2): 1.6e-6 at k = 8192, of which every other order of adding has less. 3xTF32 loses
#: about 2^-22 a product and adds up 16 products at a time: 0.42 * 2^-24 * sqrt(8192 / 16 / 2) = 4e-7. TF32 keeps 10 bits of
#: each operand: rounded 2.9e-4 in all, cut off up to 8e-4. C left out would be 1e-2 at k = 8192.
TOLERANCES: Final = {**TOLERANCE, "fp32": 2e-6, "3xtf32": 1e-6, "tf32": 1e-3}

_REFERENCE_COLUMNS: Final = 1024


@dataclass(frozen=True)
class Size:
    """A is m x k, B is k x n, C and D are m x n."""

    m: int
    n: int
    k: int


def size_of(case: Case) -> Size:
    """The size of a case `n=512`, or of one such as `shape=80x70x90`, which is (80 x 70) times (70 x 90)."""
    m, k, n = extents_of(case, 3)
    return Size(m, n, k)


def make_case(params: Params, sets: tuple[CaseSet, ...] = (), size_rank: int | None = None) -> Case:
    """A case with its operations and bytes: A, B and C read, D written.

    Operations are the 2 m n k of the product. The 3 m n of scaling and adding C are left out, as in the GFLOP/s that the student
    report and the libraries state.
    """
    case = Case(params, 0, 0, sets, size_rank)
    size = size_of(case)
    return counted(case, 2 * size.m * size.n * size.k, buffers(case))


def cases() -> tuple[Case, ...]:
    """Squares of 64 to 8192 by powers of two, and the student report's two products of odd sizes."""
    quick: CaseSet = "quick"
    report: CaseSet = "report"
    full: CaseSet = "full"
    sets: tuple[tuple[CaseSet, ...], ...] = (
        (report, full),  # 64
        (quick, report, full),
        (quick, report, full),  # 256
        (report, full),
        (report, full),  # 1024
        (report, full),
        (full,),  # 4096
        (full,),
    )
    squares = [make_case({"n": 64 << rank}, of, rank) for rank, of in enumerate(sets)]
    return (*squares, *(make_case({"shape": shape}, (report, full)) for shape in ("80x70x90", "250x400x150")))


def emulation_cases() -> tuple[Case, ...]:
    """Products small enough for the CPU emulator.

    They cover a few elements, less than a tile, edges anywhere, aligned columns that are no multiple of a tile, whole tiles
    with more steps along k than any kernel holds at once, nine tiles of 128 side by side, more than a group has, and a tile with
    so many steps that blocks share it.
    """
    return tuple(
        make_case({"shape": shape})
        for shape in ("1x5x2", "3x9x5", "131x37x67", "68x52x132", "128x128x128", "3x17x1027", "5x517x9")
    )


def buffers(case: Case) -> tuple[Mapping[str, Buffer], Mapping[str, Buffer]]:
    """A, B and C in, D out, each an array of columns."""
    size = size_of(case)
    inputs = {"a": Buffer((size.k, size.m)), "b": Buffer((size.n, size.k)), "c": Buffer((size.n, size.m))}
    return inputs, {"d": Buffer((size.n, size.m))}


def make_inputs(case: Case, rng: np.random.Generator) -> Mapping[str, np.ndarray]:
    """Uniform in [-1, 1)."""
    inputs, _ = buffers(case)
    return {name: rng.random(buffer.shape, np.float32) * np.float32(2) - np.float32(1) for name, buffer in inputs.items()}


def reference(case: Case, inputs: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
    """D in float64, some columns at a time: besides D it holds A and 1024 columns of B in float64.

    Args:
        case: not used; the sizes are those of the inputs.
        inputs: `a`, `b` and `c`, arrays of columns.

    Returns:
        `d`, float64, of the shape of `c`. As arrays of columns, D = B A: the transposition of the matrix product.
    """
    a, b, c = inputs["a"].astype(np.float64), inputs["b"], inputs["c"]
    d = np.empty(c.shape)
    for first in range(0, len(d), _REFERENCE_COLUMNS):
        columns = slice(first, first + _REFERENCE_COLUMNS)
        np.matmul(b[columns].astype(np.float64), a, out=d[columns])
        d[columns] *= ALPHA
        d[columns] += BETA * c[columns].astype(np.float64)
    return {"d": d}
