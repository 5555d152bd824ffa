"""The same transposition by libraries, and the pitfall of a call that nobody waits for."""

import ctypes
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from warpladder.workloads.api import Buffers, Case
from warpladder.workloads.tensor_transpose.problem import perm_of


def cupy_copy(case: Case, inputs: Buffers, outputs: Buffers) -> Callable[[], None]:
    """CuPy's copy out of a transposed view.

    Idea: One call; CuPy generates an element-wise kernel for the shapes and strides at hand.
    Bottleneck: One thread an element in the output's order: scattered reads, like the simple kernel turned around.
    Next: A library that knows tensors: cuTENSOR.
    Source: cupy.copyto.
    """
    import cupy

    view, out = inputs["x"].transpose(perm_of(case)), outputs["y"]
    return lambda: cupy.copyto(out, view)


def torch_copy(case: Case, inputs: Buffers, outputs: Buffers) -> Callable[[], None]:
    """PyTorch's copy out of a permuted view, on the same memory and stream.

    Idea: What `x.permute(...).contiguous()` runs, without its allocation.
    Bottleneck: A general strided copy: coalesced on one side only, unless PyTorch recognises a plain matrix.
    Next: A library that knows tensors: cuTENSOR.
    Source: torch.Tensor.copy_.
    """
    from warpladder.workloads import torch_bridge

    torch_bridge.use_current_stream()
    view = torch_bridge.as_tensor(inputs["x"]).permute(perm_of(case))
    out = torch_bridge.as_tensor(outputs["y"])

    def operation() -> None:
        out.copy_(view)

    return operation


def cutensor_permute(case: Case, inputs: Buffers, outputs: Buffers) -> Callable[[], None]:
    """NVIDIA's tensor library: a permutation planned once and executed by each call.

    Idea: cuTENSOR picks a kernel for the extents and the permutation by its model of the device; buffers are declared
        aligned to 128 bytes, as they are.
    Bottleneck: Its own choice of tile; it must serve any number of dimensions and any stride.
    Next: A kernel for three dimensions and these permutations only.
    Source: cutensorPermute of NVIDIA cuTENSOR 2, called through ctypes.
    """
    import cupy

    library = _Cutensor()
    plan = library.plan_permutation(inputs["x"], outputs["y"], perm_of(case))
    one, source, target = ctypes.c_float(1.0), inputs["x"].data.ptr, outputs["y"].data.ptr

    def operation() -> None:
        library.permute(plan, ctypes.byref(one), source, target, cupy.cuda.get_current_stream().ptr)

    return operation


class _Cutensor:
    """The few calls of cuTENSOR 2 that a permutation takes. What it creates lives as long as the process."""

    _R_32F = 0  # cudaDataType_t
    _OP_IDENTITY = 1
    _ALGO_DEFAULT = -1
    _JIT_MODE_NONE = 0
    _ALIGNMENT_BYTES = 128

    def __init__(self) -> None:
        spec = find_spec("cutensor")
        if spec is None or not spec.submodule_search_locations:
            raise ImportError("needs the package cutensor-cu13")
        self._library = ctypes.CDLL(str(Path(next(iter(spec.submodule_search_locations)), "lib", "libcutensor.so.2")))
        self._library.cutensorGetErrorString.restype = ctypes.c_char_p
        self._compute_float = ctypes.c_void_p.in_dll(self._library, "CUTENSOR_COMPUTE_DESC_32F")
        self._handle = self._created("cutensorCreate")

    def plan_permutation(self, x: Any, y: Any, perm: tuple[int, ...]) -> ctypes.c_void_p:
        """A plan for y = x.transpose(perm), both C-contiguous float32 arrays of the device."""
        x_modes, y_modes = (ctypes.c_int32 * 3)(0, 1, 2), (ctypes.c_int32 * 3)(*perm)
        operation = self._created_with_handle(
            "cutensorCreatePermutation",
            *(self._describe(x), x_modes, self._OP_IDENTITY),
            *(self._describe(y), y_modes, self._compute_float),
        )
        preference = self._created_with_handle("cutensorCreatePlanPreference", self._ALGO_DEFAULT, self._JIT_MODE_NONE)
        return self._created_with_handle("cutensorCreatePlan", operation, preference, ctypes.c_uint64(0))

    def permute(self, plan: ctypes.c_void_p, alpha: Any, source: int, target: int, stream: int) -> None:
        pointers = (ctypes.c_void_p(source), ctypes.c_void_p(target), ctypes.c_void_p(stream))
        self._check(self._library.cutensorPermute(self._handle, plan, alpha, *pointers))

    def _describe(self, array: Any) -> ctypes.c_void_p:
        extents = (ctypes.c_int64 * 3)(*array.shape)
        strides = (ctypes.c_int64 * 3)(*(stride // array.itemsize for stride in array.strides))
        return self._created_with_handle(
            "cutensorCreateTensorDescriptor", 3, extents, strides, self._R_32F, self._ALIGNMENT_BYTES
        )

    def _created(self, function: str) -> ctypes.c_void_p:
        created = ctypes.c_void_p()
        self._check(getattr(self._library, function)(ctypes.byref(created)))
        return created

    def _created_with_handle(self, function: str, *arguments: object) -> ctypes.c_void_p:
        created = ctypes.c_void_p()
        self._check(getattr(self._library, function)(self._handle, ctypes.byref(created), *arguments))
        return created

    def _check(self, status: int) -> None:
        if status:
            raise RuntimeError(f"cuTENSOR: {self._library.cutensorGetErrorString(status).decode()}")


def torch_compiled(case: Case, inputs: Buffers, outputs: Buffers) -> Callable[[], None]:
    """The Triton kernel that PyTorch's compiler writes for the permuted copy, in a CUDA graph.

    Idea: Each block moves a tile that the compiler chose for these shapes and strides. Python launches nothing.
    Bottleneck: The order in which blocks touch DRAM pages; both sides of the tile are coalesced.
    Next: Tiles and block order by hand: the last rungs.
    Source: torch.compile of `out.copy_(x.permute(...))`, TorchInductor.
    """
    from warpladder.workloads import torch_bridge

    torch_bridge.use_current_stream()
    view = torch_bridge.as_tensor(inputs["x"]).permute(perm_of(case))
    out = torch_bridge.as_tensor(outputs["y"])
    return torch_bridge.compile_for_graph(lambda: out.copy_(view))


def torch_autotuned(case: Case, inputs: Buffers, outputs: Buffers) -> Callable[[], None]:
    """The same in the mode `max-autotune`, whose compiler times more tiles.

    Idea: As `torch_compile`, with the fastest of several kernels.
    Bottleneck: As for `torch_compile`.
    Next: As for `torch_compile`.
    Source: torch.compile with mode="max-autotune-no-cudagraphs", TorchInductor.
    """
    from warpladder.workloads import torch_bridge

    with torch_bridge.compile_mode("max-autotune-no-cudagraphs"):
        return torch_compiled(case, inputs, outputs)


def cupy_unsynchronized(case: Case, inputs: Buffers, outputs: Buffers) -> Callable[[], None]:
    """A pitfall, kept as a specimen: the call is timed on the host and nobody waits for the device.

    Idea: Take the time before and after the call, as for a function of the host.
    Bottleneck: None that is timed: the call returns when the kernel is queued, in the same time at any size.
    Next: Synchronise before reading the clock, or let the device take the time: `cupy`.
    Source: E. Sgarbanti, Advanced Computer Architectures report, section 0.3.3: 0.0003 ms by the host's clock, 0.001 ms by events.
    """
    return cupy_copy(case, inputs, outputs)
