"""cuBLASLt's product with a result of its own: D = alpha A B + beta C."""

from collections.abc import Callable
from typing import Final

import numpy as np

from warpladder.workloads import cublaslt
from warpladder.workloads.api import Buffers, Case, Repacked
from warpladder.workloads.cublaslt import REQUIRES as REQUIRES
from warpladder.workloads.cublaslt import Matrix
from warpladder.workloads.mlp_gemm.problem import ALPHA, BETA, size_of

_ALGORITHMS: Final = 16


def product(case: Case, inputs: Buffers, outputs: Buffers, *, allow_tf32: bool, a: str) -> Callable[[], Buffers | None]:
    """Plans a product; see `cublaslt.product`.

    Args:
        case: with the size.
        inputs, outputs: A, B, C and D, as arrays of columns.
        allow_tf32: let the product use TensorFloat-32.
        a: `columns` for A as it is, or `rows` for a transposed copy of A, which is made again whenever the inputs change.
    """
    size = size_of(case)
    of_b = Matrix(inputs["b"], "float32", size.k, size.n)
    of_c, of_d = (Matrix(array, "float32", size.m, size.n) for array in (inputs["c"], outputs["d"]))
    compute = "COMPUTE_32F_FAST_TF32" if allow_tf32 else "COMPUTE_32F"

    def planned(of_a: Matrix, *, transposed: bool) -> Callable[[], None]:
        matrices = (of_a, of_b, of_c, of_d)
        return cublaslt.product(*matrices, _ALGORITHMS, alpha=ALPHA, beta=BETA, transposed=transposed, compute=compute)

    if a == "columns":
        return planned(Matrix(inputs["a"], "float32", size.m, size.k), transposed=False)
    import cupy

    rows = cupy.empty(inputs["a"].shape[::-1], np.float32)

    def repack() -> None:
        cupy.copyto(rows, inputs["a"].T)

    repack()
    return Repacked(planned(Matrix(rows, "float32", size.k, size.m), transposed=True), repack)
