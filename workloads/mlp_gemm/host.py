"""The product on the host: BLAS through NumPy, and loops."""

import numpy as np

from warpladder.workloads.api import Array, Buffers, Case
from warpladder.workloads.mlp_gemm.problem import ALPHA, BETA
from warpladder.workloads.numba_loops import compiled, prange


def numpy_blas(case: Case, inputs: Buffers, outputs: Buffers) -> None:
    """The host's BLAS, by NumPy's matmul.

    Idea: An array of columns is the transposition of its matrix, and (A B)^T is B^T A^T: so matmul takes B first, and
        nothing is transposed. BLAS tiles for the caches and for the registers, and uses all cores.
    Bottleneck: The multiply-add units of the cores; below a few hundred rows, the call. C is scaled and added in two more passes.
    Next: A GPU, once the product is large enough to pay for the copies.
    Source: The report measures its GPU against Armadillo, which calls BLAS alike.
    """
    a, b, c, d = inputs["a"], inputs["b"], inputs["c"], outputs["d"]
    np.matmul(b, a, out=d)
    d *= np.float32(ALPHA)
    d += np.float32(BETA) * c


def _arguments(case: Case, inputs: Buffers, outputs: Buffers) -> tuple[Array, Array, Array, Array, np.float32, np.float32]:
    return inputs["a"], inputs["b"], inputs["c"], outputs["d"], np.float32(ALPHA), np.float32(BETA)


@compiled(_arguments)
def numba_serial(a: Array, b: Array, c: Array, d: Array, alpha: np.float32, beta: np.float32) -> None:
    """Three nested loops on one core.

    Idea: Each column of D is a sum of the columns of A, so that the innermost loop runs down columns and becomes vectors.
    Bottleneck: One load of A, one of D and one store of D for each multiply-add: the caches, and beyond them memory, since
        all of A is read again for every column of D.
    Next: All cores, and columns of A that are used more than once while they are in a cache.
    Source: Own work; the report prints no listing of its sequential code.
    """
    columns, depth = b.shape
    rows = a.shape[1]
    for j in range(columns):
        for i in range(rows):
            d[j, i] = beta * c[j, i]
        for p in range(depth):
            weight = alpha * b[j, p]
            for i in range(rows):
                d[j, i] += a[p, i] * weight


@compiled(_arguments, parallel=True)
def numba_parallel(a: Array, b: Array, c: Array, d: Array, alpha: np.float32, beta: np.float32) -> None:
    """Groups of 16 columns shared out among the cores, in blocks that stay in the caches.

    Idea: 512 rows of 32 columns of A, 64 KB, are added into 16 columns of D before the next are read, so that they come
        from L2 instead of memory; 512 rows of one column of D are 2 KB, which stay in L1 the while.
    Bottleneck: Loads and stores still: two and one for each vector of multiply-adds, where BLAS keeps its sums in registers.
    Next: Sums in registers, which loops of this kind cannot ask for: `numpy`, or a GPU.
    Source: Own work; the blocks are those of any BLAS.
    """
    columns, depth = b.shape
    rows = a.shape[1]
    group, height, width = 16, 512, 32
    for part in prange((columns + group - 1) // group):
        first = part * group
        last = min(first + group, columns)
        for top in range(0, rows, height):
            bottom = min(top + height, rows)
            for j in range(first, last):
                d[j, top:bottom] = beta * c[j, top:bottom]
            for left in range(0, depth, width):
                for j in range(first, last):
                    sums = d[j, top:bottom]
                    for p in range(left, min(left + width, depth)):
                        weight, values = alpha * b[j, p], a[p, top:bottom]
                        for i in range(len(sums)):  # from 0, or Numba tests every index for its sign
                            sums[i] += values[i] * weight
