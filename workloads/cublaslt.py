"""cuBLASLt's matrix product by the bindings of nvmath-python: the fastest of the algorithms that its heuristic offers."""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np

from warpladder.workloads.api import Array

#: Modules that `product` takes, as a variant's `requires` names them.
REQUIRES: Final = ("cupy", "nvmath")
_WORKSPACE_BYTES: Final = 64 << 20
#: How often an algorithm is timed, after one execution that is not timed.
_TRIES: Final = 9
#: cudaDataType, by the type of a buffer.
_TYPES: Final = {"float32": 0, "float16": 2, "bfloat16": 14, "float8_e4m3fn": 28}


class Matrix(NamedTuple):
    """A matrix by columns: its elements on the GPU, their type, and the extents."""

    array: Array
    type: str
    rows: int
    columns: int


def product(
    a: Matrix,
    b: Matrix,
    c: Matrix,
    d: Matrix,
    most: int,
    *,
    alpha: float = 1.0,
    beta: float = 0.0,
    transposed: bool = False,
    compute: str = "COMPUTE_32F",
    fast_sums: bool = False,
) -> Callable[[], None]:
    """Plans D = alpha A B + beta C, with the algorithm of the least median time, each try with its operands in memory and not in L2.

    Timed in L2, algorithms change places. At 1024 x 1024 x 1024 in TF32 on an H200 the fastest there took 20.3 us from memory, and
    another one 12.6 us.

    Args:
        most: the most algorithms that are timed.
        transposed: the product takes A transposed.
        compute: a `ComputeType` of cuBLAS.
        fast_sums: sums have the bits that the tensor cores keep, as PyTorch has it for inference.

    Returns:
        a function that enqueues the product on CuPy's current stream.
    """
    import cupy
    from nvmath.bindings import cublasLt

    plan = _Plan(cublasLt, (a, b, c, d), (alpha, beta), transposed=transposed, compute=compute, fast_sums=fast_sums)
    workspace = cupy.empty(_WORKSPACE_BYTES, np.uint8)
    beyond_l2 = cupy.empty(2 * cupy.cuda.Device().attributes["L2CacheSize"], np.uint8)
    stream = cupy.cuda.get_current_stream()

    def of(algorithm: Any) -> Callable[[], None]:
        return lambda: plan.enqueue(algorithm, workspace, cupy.cuda.get_current_stream().ptr)

    def median_ms(call: Callable[[], None]) -> float:
        call()
        begins, ends = ([cupy.cuda.Event() for _ in range(_TRIES)] for _ in range(2))
        for begin, end in zip(begins, ends, strict=True):
            beyond_l2.fill(0)
            begin.record(stream)
            call()
            end.record(stream)
        stream.synchronize()
        return float(np.median(list(map(cupy.cuda.get_elapsed_time, begins, ends))))

    if not (algorithms := plan.algorithms(most)):
        raise RuntimeError("cuBLASLt's heuristic offers no algorithm for this product")
    return min(map(of, algorithms), key=median_ms)


class _Plan:
    """Descriptors of cuBLASLt, which live as long as the process."""

    def __init__(
        self,
        cublas_lt: Any,
        matrices: tuple[Matrix, Matrix, Matrix, Matrix],
        factors: tuple[float, float],
        *,
        transposed: bool,
        compute: str,
        fast_sums: bool,
    ) -> None:
        from nvmath.bindings.cublas import ComputeType

        self._lt = cublas_lt
        self._handle = cublas_lt.create()
        self._product = cublas_lt.matmul_desc_create(ComputeType[compute], _TYPES["float32"])
        attributes = cublas_lt.MatmulDescAttribute
        self._set(cublas_lt.matmul_desc_set_attribute, self._product, attributes.TRANSA, np.int32(transposed))
        if fast_sums:
            self._set(cublas_lt.matmul_desc_set_attribute, self._product, attributes.FAST_ACCUM, np.int8(1))
        self._arrays = [each.array for each in matrices]
        self._layouts = [
            cublas_lt.matrix_layout_create(_TYPES[each.type], each.rows, each.columns, each.rows) for each in matrices
        ]
        self._factors = np.array(factors, np.float32)

    def algorithms(self, most: int) -> list[np.ndarray]:
        """At most so many algorithms of the heuristic, those that can run, the most promising first."""
        lt = self._lt
        preference = lt.matmul_preference_create()
        attribute = lt.MatmulPreferenceAttribute.MAX_WORKSPACE_BYTES
        self._set(lt.matmul_preference_set_attribute, preference, attribute, np.uint64(_WORKSPACE_BYTES))
        found, count = np.zeros(most, lt.matmul_heuristic_result_dtype), np.zeros(1, np.int32)
        lt.matmul_algo_get_heuristic(
            self._handle, self._product, *self._layouts, preference, most, found.ctypes.data, count.ctypes.data
        )
        return [np.ascontiguousarray(each["algo"]) for each in found[: count[0]] if each["state"] == 0]

    def enqueue(self, algorithm: np.ndarray, workspace: Array, stream: int) -> None:
        a, b, c, d = ((array.data.ptr, layout) for array, layout in zip(self._arrays, self._layouts, strict=True))
        alpha = self._factors.ctypes.data
        beta = alpha + self._factors.itemsize
        self._lt.matmul(
            *(self._handle, self._product, alpha, *a, *b, beta, *c, *d),
            *(algorithm.ctypes.data, workspace.data.ptr, workspace.nbytes, stream),
        )

    def _set(self, function: Callable[..., object], of: int, attribute: int, value: np.generic) -> None:
        held = np.array(value)
        function(of, attribute, held.ctypes.data, held.nbytes)
