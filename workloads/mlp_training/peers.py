"""The step by PyTorch's tensor operations."""

from collections.abc import Callable

from warpladder.workloads import torch_bridge
from warpladder.workloads.api import Buffers, Case
from warpladder.workloads.mlp_training.problem import INPUTS, OUTPUTS, REGULARIZATION, rate_of


def torch_fp32(case: Case, inputs: Buffers, outputs: Buffers) -> Callable[[], None]:
    """The step written with PyTorch, every tensor allocated beforehand, TensorFloat-32 switched off.

    Idea: What autograd and SGD run, without their bookkeeping: cuBLAS for the five products, biases and regularisation added by
        it (addmm), one kernel for each operation between. As `torch` each is launched by itself, as `torch_graph` all in one CUDA graph.
    Bottleneck: The products of 784 x 1000 a sample; at small batches the number of kernels, about 15, each a pass through memory.
    Next: Fused passes and fewer launches: a step of one's own.
    Source: PyTorch; cuBLAS by torch.addmm.
    """
    return _step(case, inputs, outputs, allow_tf32=False)


def torch_tf32(case: Case, inputs: Buffers, outputs: Buffers) -> Callable[[], None]:
    """The same with TensorFloat-32 allowed in the products, in one CUDA graph.

    Idea: Tensor cores, on operands of 10 bits of mantissa; sums and everything between the products stay float32.
    Bottleneck: What the faster products leave: the passes through memory between them, and the number of kernels.
    Next: Fused passes and fewer launches.
    Source: PyTorch with torch.backends.cuda.matmul.allow_tf32.
    """
    return _step(case, inputs, outputs, allow_tf32=True)


def _step(case: Case, inputs: Buffers, outputs: Buffers, allow_tf32: bool) -> Callable[[], None]:
    import torch

    torch_bridge.use_current_stream()
    x, y, w1, b1, w2, b2 = (torch_bridge.as_tensor(inputs[name]) for name in ("x", "y", *INPUTS))
    new_w1, new_b1, new_w2, new_b2 = (torch_bridge.as_tensor(outputs[name]) for name in OUTPUTS)
    batch, hidden, classes = len(x), len(b1), len(b2)
    a1, dz1, z2, dz2 = (torch.empty((batch, width), device=x.device) for width in (hidden, hidden, classes, classes))
    rate = rate_of(case)
    keep = 1.0 - rate * REGULARIZATION

    def operation() -> None:
        before = torch.backends.cuda.matmul.allow_tf32
        torch.backends.cuda.matmul.allow_tf32 = allow_tf32
        try:
            torch.addmm(b1, x, w1, out=a1)
            torch.sigmoid(a1, out=a1)
            torch.addmm(b2, a1, w2, out=z2)
            torch.ops.aten._softmax.out(z2, 1, False, out=dz2)
            dz2.sub_(y).div_(batch)
            torch.mm(dz2, w2.t(), out=dz1)
            torch.ops.aten.sigmoid_backward.grad_input(dz1, a1, grad_input=dz1)
            torch.addmm(w1, x.t(), dz1, beta=keep, alpha=-rate, out=new_w1)
            torch.addmm(w2, a1.t(), dz2, beta=keep, alpha=-rate, out=new_w2)
            torch.sum(dz1, 0, out=new_b1)
            torch.sum(dz2, 0, out=new_b2)
            new_b1.mul_(-rate).add_(b1)
            new_b2.mul_(-rate).add_(b2)
        finally:
            torch.backends.cuda.matmul.allow_tf32 = before

    return operation


def compiled_fp32(case: Case, inputs: Buffers, outputs: Buffers, mode: str) -> Callable[[], None]:
    """The step compiled by PyTorch, in a CUDA graph, with TensorFloat-32 switched off.

    Idea: cuBLAS computes the products; Triton kernels, as few as the compiler can fuse, do everything between them. In the mode
        max-autotune the compiler times Triton kernels for the products too.
    Bottleneck: The products of 784 x 1000 a sample; sums over large batches, which fuse less.
    Next: A step written by hand.
    Source: torch.compile, TorchInductor.
    """
    with torch_bridge.compile_mode(mode):
        return _compiled(case, inputs, outputs, allow_tf32=False)


def compiled_tf32(case: Case, inputs: Buffers, outputs: Buffers) -> Callable[[], None]:
    """The same with TensorFloat-32 allowed in the products.

    Idea: Tensor cores, on operands with 10 bits of mantissa, and few kernels between the products. The mode max-autotune is wrong
        here: at 800 rows the error of `new_w1` was 7.8e-4 on an H200, and 7e-4 passes.
    Bottleneck: The passes through memory between the products.
    Next: A step written by hand.
    Source: torch.compile, with torch.backends.cuda.matmul.allow_tf32.
    """
    return _compiled(case, inputs, outputs, allow_tf32=True)


def _compiled(case: Case, inputs: Buffers, outputs: Buffers, allow_tf32: bool) -> Callable[[], None]:
    import torch

    torch_bridge.use_current_stream()
    x, y, w1, b1, w2, b2 = (torch_bridge.as_tensor(inputs[name]) for name in ("x", "y", *INPUTS))
    new = [torch_bridge.as_tensor(outputs[name]) for name in OUTPUTS]
    rate = rate_of(case)
    keep = 1.0 - rate * REGULARIZATION

    def step() -> None:
        a1 = torch.sigmoid(x @ w1 + b1)
        dz2 = (torch.softmax(a1 @ w2 + b2, 1) - y) / len(x)
        dz1 = (dz2 @ w2.t()) * a1 * (1.0 - a1)
        found = (
            *(keep * w1 - rate * (x.t() @ dz1), b1 - rate * dz1.sum(0)),
            *(keep * w2 - rate * (a1.t() @ dz2), b2 - rate * dz2.sum(0)),
        )
        for target, value in zip(new, found, strict=True):
            target.copy_(value)

    return torch_bridge.compile_for_graph(step, allow_tf32=allow_tf32)
