"""Routes to a training step."""

from collections.abc import Callable

from benchmarks.peers.routes import compiled_routes, searched
from warpladder.workloads.api import Buffers, Case
from warpladder.workloads.mlp_training.problem import INPUTS, OUTPUTS, REGULARIZATION, rate_of


def by_gradient(case: Case, inputs: Buffers, outputs: Buffers) -> Callable[[], object]:
    """The step as users write it: a loss, its gradient by PyTorch, and the update."""
    import torch
    from torch.nn.functional import cross_entropy

    from warpladder.workloads import torch_bridge

    x, y, *weights = (torch_bridge.as_tensor(inputs[name]) for name in ("x", "y", *INPUTS))
    new, rate = [torch_bridge.as_tensor(outputs[name]) for name in OUTPUTS], rate_of(case)

    def loss(w1: torch.Tensor, b1: torch.Tensor, w2: torch.Tensor, b2: torch.Tensor) -> torch.Tensor:
        logits = torch.sigmoid(x @ w1 + b1) @ w2 + b2
        return cross_entropy(logits, y) + REGULARIZATION / 2 * (w1.square().sum() + w2.square().sum())

    def step() -> None:
        gradients = torch.func.grad(loss, argnums=(0, 1, 2, 3))(*weights)
        for target, weight, gradient in zip(new, weights, gradients, strict=True):
            target.copy_(weight - rate * gradient)

    return step


WORKLOAD = searched("mlp_training", *compiled_routes(by_gradient, "fp32", "tf32", suffix="_by_gradient"))
