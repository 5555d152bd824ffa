"""cuBLASLt's product with a result of its own: D = alpha A B + beta C, by the bindings of nvmath-python."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from warpladder.workloads.api import Array, Buffers, Case, Repacked
from warpladder.workloads.mlp_gemm.problem import ALPHA, BETA, Size, size_of

#: Modules that `product` takes, as a variant's `requires` names them.
REQUIRES: Final = ("cupy", "nvmath")
_WORKSPACE_BYTES: Final = 64 << 20
#: Algorithms of the heuristic that are timed, and how often each, after one execution that is not timed.
_ALGORITHMS: Final = 16
_TRIES: Final = 9


def product(case: Case, inputs: Buffers, outputs: Buffers, *, allow_tf32: bool, a: str) -> Callable[[], Buffers | None]:
    """Plans a product, with the fastest of the heuristic's algorithms.

    Args:
        case: with the size.
        inputs, outputs: A, B, C and D, as arrays of columns.
        allow_tf32: let the product use TensorFloat-32.
        a: `columns` for A as it is, or `rows` for a transposed copy of A, which is made anew whenever the inputs change.

    Returns:
        a function that enqueues the product on CuPy's current stream.
    """
    if a == "columns":
        return _fastest(size_of(case), inputs, outputs["d"], allow_tf32, transposed=False)
    import cupy

    rows = cupy.empty(inputs["a"].shape[::-1], np.float32)

    def repack() -> None:
        cupy.copyto(rows, inputs["a"].T)

    repack()
    return Repacked(_fastest(size_of(case), {**inputs, "a": rows}, outputs["d"], allow_tf32, transposed=True), repack)


def _fastest(size: Size, inputs: Buffers, d: Array, allow_tf32: bool, transposed: bool) -> Callable[[], None]:
    """The call with the algorithm of the least median time, each try with its operands in memory and not in L2.

    Timed in L2, algorithms change places. At 1024 x 1024 x 1024 in TF32 on an H200 the fastest there took 20.3 us from memory, and
    another one 12.6 us.
    """
    import cupy
    from nvmath.bindings import cublasLt

    plan = _Plan(cublasLt, size, allow_tf32, transposed)
    workspace = cupy.empty(_WORKSPACE_BYTES, np.uint8)
    beyond_l2 = cupy.empty(2 * cupy.cuda.Device().attributes["L2CacheSize"], np.uint8)
    stream = cupy.cuda.get_current_stream()

    def of(algorithm: Any) -> Callable[[], None]:
        return lambda: plan.enqueue(inputs, d, algorithm, workspace, cupy.cuda.get_current_stream().ptr)

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

    if not (algorithms := plan.algorithms()):
        raise RuntimeError("cuBLASLt's heuristic offers no algorithm for this product")
    return min(map(of, algorithms), key=median_ms)


class _Plan:
    """Descriptors of cuBLASLt for a product of column-major matrices of float32. They live as long as the process."""

    def __init__(self, cublas_lt: Any, size: Size, allow_tf32: bool, transposed: bool) -> None:
        from nvmath.bindings.cublas import ComputeType

        self._lt = cublas_lt
        self._handle = cublas_lt.create()
        kind = ComputeType.COMPUTE_32F_FAST_TF32 if allow_tf32 else ComputeType.COMPUTE_32F
        self._product = cublas_lt.matmul_desc_create(kind, _FLOAT32)
        attribute = cublas_lt.MatmulDescAttribute.TRANSA
        self._set(cublas_lt.matmul_desc_set_attribute, self._product, attribute, np.int32(transposed))
        a = (size.k, size.m) if transposed else (size.m, size.k)
        extents = {"a": a, "b": (size.k, size.n), "c": (size.m, size.n), "d": (size.m, size.n)}
        self._layouts = {name: cublas_lt.matrix_layout_create(_FLOAT32, *each, each[0]) for name, each in extents.items()}
        self._factors = np.array([ALPHA, BETA], np.float32)

    def algorithms(self) -> list[np.ndarray]:
        """The algorithms of the heuristic that can run, the most promising first."""
        lt = self._lt
        preference = lt.matmul_preference_create()
        most = lt.MatmulPreferenceAttribute.MAX_WORKSPACE_BYTES
        self._set(lt.matmul_preference_set_attribute, preference, most, np.uint64(_WORKSPACE_BYTES))
        found, count = np.zeros(_ALGORITHMS, lt.matmul_heuristic_result_dtype), np.zeros(1, np.int32)
        layouts = (self._layouts[name] for name in "abcd")
        lt.matmul_algo_get_heuristic(
            self._handle, self._product, *layouts, preference, _ALGORITHMS, found.ctypes.data, count.ctypes.data
        )
        return [np.ascontiguousarray(each["algo"]) for each in found[: count[0]] if each["state"] == 0]

    def enqueue(self, inputs: Mapping[str, Array], d: Array, algorithm: np.ndarray, workspace: Array, stream: int) -> None:
        alpha = self._factors.ctypes.data
        a, b, c = (inputs[name].data.ptr for name in "abc")
        layouts = self._layouts
        self._lt.matmul(
            *(self._handle, self._product, alpha, a, layouts["a"], b, layouts["b"]),
            *(alpha + self._factors.itemsize, c, layouts["c"], d.data.ptr, layouts["d"]),
            *(algorithm.ctypes.data, workspace.data.ptr, workspace.nbytes, stream),
        )

    def _set(self, function: Callable[..., object], of: int, attribute: int, value: np.generic) -> None:
        held = np.array(value)
        function(of, attribute, held.ctypes.data, held.nbytes)


_FLOAT32: Final = 0  # CUDA_R_32F
