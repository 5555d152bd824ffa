"""The step in mixed precision by PyTorch."""

from collections.abc import Callable
from typing import Any

from warpladder.workloads import torch_bridge
from warpladder.workloads.api import Buffers, Case
from warpladder.workloads.mlp_training.problem import REGULARIZATION, rate_of
from warpladder.workloads.mlp_training_bf16.problem import COPIES


def torch_autocast(case: Case, inputs: Buffers, outputs: Buffers) -> Callable[[], None]:
    """The step in `torch.autocast`, which casts the master weights in each step, in one CUDA graph.

    Idea: What most training programs run, without the bookkeeping of autograd: autocast rounds operands of products to BF16, and cuBLAS multiplies
        them.
    Bottleneck: Some 30 kernels, each a pass through memory.
    Next: A compiler that fuses the passes.
    Source: PyTorch, torch.autocast.
    """
    return _step(case, inputs, outputs, by_copies=False)


def compiled_autocast(case: Case, inputs: Buffers, outputs: Buffers) -> Callable[[], None]:
    """The same step compiled by `torch.compile`, in one CUDA graph.

    Idea: cuBLAS computes the products; Triton kernels, as few as the compiler can fuse, do everything between them.
    Bottleneck: The passes through memory between the products, and the cast of the master weights in each step.
    Next: Copies of the weights that the update writes.
    Source: torch.compile, TorchInductor; torch.autocast.
    """
    return torch_bridge.compile_for_graph(_step(case, inputs, outputs, by_copies=False))


def compiled_copies(case: Case, inputs: Buffers, outputs: Buffers, mode: str) -> Callable[[], None]:
    """The compiled step with products of the copies, which the update has written together with the master weights.

    Idea: No weights are cast before a product. In the mode max-autotune the compiler times Triton kernels for the products too.
    Bottleneck: The passes through memory between the products.
    Next: A step written by hand.
    Source: torch.compile, TorchInductor.
    """
    with torch_bridge.compile_mode(mode):
        return torch_bridge.compile_for_graph(_step(case, inputs, outputs, by_copies=True))


def _step(case: Case, inputs: Buffers, outputs: Buffers, *, by_copies: bool) -> Callable[[], None]:
    import torch

    torch_bridge.use_current_stream()

    def tensors(buffers: Buffers) -> dict[str, Any]:
        every = {name: torch_bridge.as_tensor(array) for name, array in buffers.items()}
        return {name: tensor.view(torch.bfloat16) if tensor.dtype == torch.uint16 else tensor for name, tensor in every.items()}

    of, new = tensors(inputs), tensors(outputs)
    x, y, b1, b2 = (of[name] for name in ("x", "y", "b1", "b2"))
    w1, w2 = (of[copy if by_copies else name] for name, copy in COPIES.items())
    rate = rate_of(case)
    keep = 1.0 - rate * REGULARIZATION

    def step() -> None:
        with torch.autocast("cuda", torch.bfloat16):
            a1 = torch.sigmoid(x @ w1 + b1)
            z2 = a1 @ w2 + b2
            dz2 = (torch.softmax(z2, 1) - y) / len(x)
            dz1 = (dz2 @ w2.t()) * a1 * (1.0 - a1)
            new["losses"].copy_((y * (torch.logsumexp(z2, 1, keepdim=True) - z2)).sum(1))
            for name, gradient in (("w1", x.t() @ dz1), ("w2", a1.t() @ dz2)):
                weights = keep * of[name] - rate * gradient
                new[f"new_{name}"].copy_(weights)
                new[f"new_{COPIES[name]}"].copy_(weights)
            new["new_b1"].copy_(b1 - rate * dz1.sum(0))
            new["new_b2"].copy_(b2 - rate * dz2.sum(0))

    return step
