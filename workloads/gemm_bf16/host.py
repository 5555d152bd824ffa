"""The product on the host: BLAS through NumPy, and loops. Operands are widened to float32 before, and results rounded after."""

from collections.abc import Callable
from functools import wraps

import numpy as np

from warpladder.workloads.api import Array, Buffers, Case
from warpladder.workloads.declare.cases import narrowed
from warpladder.workloads.gemm_bf16.problem import types_of, values_of
from warpladder.workloads.numba_loops import compiled, prange

_Run = Callable[[Case, Buffers, Buffers], None]


def _in_single(run: _Run) -> _Run:
    """The same on the types of a case, by way of float32."""

    @wraps(run)
    def converted(case: Case, inputs: Buffers, outputs: Buffers) -> None:
        types, d = types_of(inputs["a"]), np.empty(outputs["d"].shape, np.float32)
        run(case, {name: values_of(array, types.operand).astype(np.float32) for name, array in inputs.items()}, {"d": d})
        outputs["d"][...] = narrowed(d, types.result)

    return converted


def _arguments(case: Case, inputs: Buffers, outputs: Buffers) -> tuple[Array, Array, Array]:
    return inputs["a"], inputs["b"], outputs["d"]


@_in_single
def numpy_blas(case: Case, inputs: Buffers, outputs: Buffers) -> None:
    """The host's BLAS, by NumPy's matmul, on operands that are widened to float32.

    Idea: BLAS tiles for the caches and for the registers, and uses all cores. NumPy has no product of numbers of few bits that is as fast.
    Bottleneck: The multiply-add units of the cores, which do no more products of few bits than of float32; widening and rounding are more passes.
    Next: A GPU, whose tensor cores have units for these types.
    Source: NumPy, numpy.matmul.
    """
    np.matmul(inputs["a"], inputs["b"].T, out=outputs["d"])


@_in_single
@compiled(_arguments)
def numba_serial(a: Array, b: Array, d: Array) -> None:
    """Three nested loops on one core.

    Idea: An element of D is the product of two rows, which lie in memory as they are read.
    Bottleneck: The latency of one sum after another: loops in the order of the definition may not be made into vectors.
    Next: All cores, and sums side by side.
    Source: Own work.
    """
    for i in range(a.shape[0]):
        for j in range(b.shape[0]):
            total = np.float32(0)
            for p in range(a.shape[1]):
                total += a[i, p] * b[j, p]
            d[i, j] = total


@_in_single
@compiled(_arguments, parallel=True, fastmath=True)
def numba_parallel(a: Array, b: Array, d: Array) -> None:
    """Rows of D shared out among the cores, with sums that may be added in any order.

    Idea: In any order, the products of two rows become vectors. 64 rows of B stay in a cache while all rows of A of a core meet them.
    Bottleneck: Two loads for each vector of multiply-adds, where BLAS keeps its sums in registers.
    Next: Sums in registers, which loops of this kind cannot ask for: `numpy`, or a GPU.
    Source: Own work; the blocks are those of any BLAS.
    """
    rows, width = 16, 64
    for part in prange((a.shape[0] + rows - 1) // rows):
        for left in range(0, b.shape[0], width):
            for i in range(part * rows, min(part * rows + rows, a.shape[0])):
                for j in range(left, min(left + width, b.shape[0])):
                    total = np.float32(0)
                    for p in range(a.shape[1]):
                        total += a[i, p] * b[j, p]
                    d[i, j] = total
