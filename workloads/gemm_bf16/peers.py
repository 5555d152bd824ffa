"""cuBLASLt, and PyTorch's product."""

from collections.abc import Callable
from typing import Any

from warpladder.workloads.api import Array, Buffers, Case
from warpladder.workloads.gemm_bf16 import cublaslt
from warpladder.workloads.gemm_bf16.problem import types_of


def cublaslt_fastest(case: Case, inputs: Buffers, outputs: Buffers) -> Callable[[], None]:
    """NVIDIA's matrix product, the fastest of the algorithms that its heuristic offers.

    Idea: Up to 32 algorithms are timed first, with operands from memory. Both operands lie along k, the layout that the tensor cores take.
    Bottleneck: The tensor cores, and the power that they draw, at large sizes.
    Next: Operands of fewer bits.
    Source: NVIDIA cuBLASLt, cublasLtMatmul with CUBLAS_COMPUTE_32F, by nvmath-python.
    """
    return cublaslt.product(case, inputs, outputs)


def torch_matmul(case: Case, inputs: Buffers, outputs: Buffers) -> Callable[[], None]:
    """PyTorch's product, as a linear layer calls it.

    Idea: What everybody would call. PyTorch hands it to cuBLAS, which chooses by its heuristic and times nothing.
    Bottleneck: The tensor cores at large sizes; a call takes some microseconds of the host.
    Next: cuBLASLt's other algorithms.
    Source: PyTorch, torch.matmul.
    """
    import torch

    from warpladder.workloads import torch_bridge

    torch_bridge.use_current_stream()
    a, b, d = (as_typed(array) for array in (inputs["a"], inputs["b"], outputs["d"]))

    def multiply() -> None:
        torch.matmul(a, b.T, out=d)

    return multiply


def torch_scaled(case: Case, inputs: Buffers, outputs: Buffers, fast: bool) -> Callable[[], None]:
    """PyTorch's product of FP8 matrices, with scales of 1.

    Idea: What inference calls. `fast` leaves sums in the tensor cores from the first product to the last; without it they are moved to float32 on
        the way.
    Bottleneck: The tensor cores at large sizes.
    Next: cuBLASLt's other algorithms.
    Source: PyTorch, torch._scaled_mm.
    """
    import torch

    from warpladder.workloads import torch_bridge

    torch_bridge.use_current_stream()
    a, b = as_typed(inputs["a"]), as_typed(inputs["b"])
    d = torch_bridge.as_tensor(outputs["d"]).view(torch.bfloat16)
    one = torch.ones((), device=a.device)

    def multiply() -> None:
        torch._scaled_mm(a, b.T, one, one, out_dtype=torch.bfloat16, use_fast_accum=fast, out=d)

    return multiply


def as_typed(array: Array) -> Any:
    """The tensor that shares the memory of an operand or a result, in its type."""
    import torch

    from warpladder.workloads import torch_bridge

    return torch_bridge.as_tensor(array).view(getattr(torch, types_of(array).operand))
