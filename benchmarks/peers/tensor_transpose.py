"""Routes to a transposition."""

from collections.abc import Callable

from benchmarks.peers.routes import searched
from warpladder.workloads.api import Buffers, Case, LibraryVariant
from warpladder.workloads.tensor_transpose.problem import perm_of


def contiguous_of_torch(case: Case, inputs: Buffers, outputs: Buffers) -> Callable[[], Buffers]:
    """PyTorch's copy into memory that it allocates."""
    import cupy
    import torch

    from warpladder.workloads import torch_bridge

    torch_bridge.use_current_stream()
    view = torch_bridge.as_tensor(inputs["x"]).permute(perm_of(case))
    return lambda: {"y": cupy.from_dlpack(view.clone(memory_format=torch.contiguous_format))}


def contiguous_of_cupy(case: Case, inputs: Buffers, outputs: Buffers) -> Callable[[], Buffers]:
    """CuPy's copy into memory that it allocates."""
    import cupy

    view = inputs["x"].transpose(perm_of(case))
    return lambda: {"y": cupy.ascontiguousarray(view)}


WORKLOAD = searched(
    "tensor_transpose",
    LibraryVariant("torch_contiguous", "PyTorch clone", "peer", requires=("cupy", "torch"), prepare=contiguous_of_torch),
    LibraryVariant("cupy_contiguous", "CuPy ascontiguousarray", "peer", requires=("cupy",), prepare=contiguous_of_cupy),
)
