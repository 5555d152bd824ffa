"""cuBLASLt's product of operands of few bits, by the bindings of nvmath-python: the fastest of the algorithms that its heuristic offers."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from warpladder.workloads.api import Array, Buffers, Case
from warpladder.workloads.gemm_bf16.problem import Size, size_of, types_of

#: Modules that `product` takes, as a variant's `requires` names them.
REQUIRES: Final = ("cupy", "nvmath")
_WORKSPACE_BYTES: Final = 64 << 20
#: Algorithms of the heuristic that are timed, and how often each, after one execution that is not timed.
_ALGORITHMS: Final = 32
_TRIES: Final = 9
#: cudaDataType, by the type of a buffer.
_TYPES: Final = {"float16": 2, "bfloat16": 14, "float8_e4m3fn": 28}
_FLOAT32: Final = 0


def product(case: Case, inputs: Buffers, outputs: Buffers) -> Callable[[], None]:
    """Plans a product, with the fastest of the heuristic's algorithms, each try with its operands in memory and not in L2.

    Returns:
        a function that enqueues the product on CuPy's current stream.
    """
    import cupy
    from nvmath.bindings import cublasLt

    types = types_of(inputs["a"])
    plan = _Plan(cublasLt, size_of(case), types.operand, types.result)
    workspace = cupy.empty(_WORKSPACE_BYTES, np.uint8)
    beyond_l2 = cupy.empty(2 * cupy.cuda.Device().attributes["L2CacheSize"], np.uint8)
    stream = cupy.cuda.get_current_stream()

    def of(algorithm: Any) -> Callable[[], None]:
        return lambda: plan.enqueue(inputs, outputs["d"], algorithm, workspace, cupy.cuda.get_current_stream().ptr)

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
    """Descriptors of cuBLASLt, which live as long as the process. Its matrices are column-major: D^T = B A^T, and rows of B and of A are columns
    of matrices that are transposed and not."""

    def __init__(self, cublas_lt: Any, size: Size, operand: str, result: str) -> None:
        from nvmath.bindings.cublas import ComputeType

        self._lt = cublas_lt
        self._handle = cublas_lt.create()
        self._product = cublas_lt.matmul_desc_create(ComputeType.COMPUTE_32F, _FLOAT32)
        attributes = cublas_lt.MatmulDescAttribute
        self._set(cublas_lt.matmul_desc_set_attribute, self._product, attributes.TRANSA, np.int32(1))
        if operand == "float8_e4m3fn":  # sums with the bits that the tensor cores keep, as PyTorch has it for inference
            self._set(cublas_lt.matmul_desc_set_attribute, self._product, attributes.FAST_ACCUM, np.int8(1))
        of_operand, of_result = _TYPES[operand], _TYPES[result]
        extents = {"b": (of_operand, size.k, size.n), "a": (of_operand, size.k, size.m), "d": (of_result, size.n, size.m)}
        self._layouts = {name: cublas_lt.matrix_layout_create(kind, *each, each[0]) for name, (kind, *each) in extents.items()}
        self._factors = np.array([1, 0], np.float32)

    def algorithms(self) -> list[np.ndarray]:
        """The algorithms of the heuristic that can run, the most promising first."""
        lt = self._lt
        preference = lt.matmul_preference_create()
        most = lt.MatmulPreferenceAttribute.MAX_WORKSPACE_BYTES
        self._set(lt.matmul_preference_set_attribute, preference, most, np.uint64(_WORKSPACE_BYTES))
        found, count = np.zeros(_ALGORITHMS, lt.matmul_heuristic_result_dtype), np.zeros(1, np.int32)
        layouts = (self._layouts[name] for name in "badd")
        lt.matmul_algo_get_heuristic(
            self._handle, self._product, *layouts, preference, _ALGORITHMS, found.ctypes.data, count.ctypes.data
        )
        return [np.ascontiguousarray(each["algo"]) for each in found[: count[0]] if each["state"] == 0]

    def enqueue(self, inputs: Mapping[str, Array], d: Array, algorithm: np.ndarray, workspace: Array, stream: int) -> None:
        one, layouts = self._factors.ctypes.data, self._layouts
        self._lt.matmul(
            *(self._handle, self._product, one, inputs["b"].data.ptr, layouts["b"], inputs["a"].data.ptr, layouts["a"]),
            *(one + self._factors.itemsize, d.data.ptr, layouts["d"], d.data.ptr, layouts["d"]),
            *(algorithm.ctypes.data, workspace.data.ptr, workspace.nbytes, stream),
        )

    def _set(self, function: Callable[..., object], of: int, attribute: int, value: np.generic) -> None:
        held = np.array(value)
        function(of, attribute, held.ctypes.data, held.nbytes)
