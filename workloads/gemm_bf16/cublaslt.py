"""cuBLASLt's product of operands of few bits."""

from collections.abc import Callable
from typing import Final

from warpladder.workloads import cublaslt
from warpladder.workloads.api import Buffers, Case
from warpladder.workloads.cublaslt import REQUIRES as REQUIRES
from warpladder.workloads.cublaslt import Matrix
from warpladder.workloads.gemm_bf16.problem import size_of, types_of

_ALGORITHMS: Final = 32


def product(case: Case, inputs: Buffers, outputs: Buffers) -> Callable[[], None]:
    """Plans a product; see `cublaslt.product`. By columns it is D^T = B A^T, and rows of B and of A are columns of matrices that are
    transposed and not."""
    types, size = types_of(inputs["a"]), size_of(case)
    a = Matrix(inputs["a"], types.operand, size.k, size.m)
    b = Matrix(inputs["b"], types.operand, size.k, size.n)
    d = Matrix(outputs["d"], types.result, size.n, size.m)
    return cublaslt.product(b, a, d, d, _ALGORITHMS, transposed=True, fast_sums=types.operand == "float8_e4m3fn")
