"""The same step by PyTorch, which averages the ranks' gradients between their GPUs by NCCL."""

from collections.abc import Callable
from typing import Final

import numpy as np

from warpladder.workloads.api import Buffers, Case, Communicator
from warpladder.workloads.mlp_training.problem import INPUTS, OUTPUTS, REGULARIZATION, rate_of

#: Steps before the first that is measured: DistributedDataParallel arranges its buckets after the first, and takes times of ten.
_WARM_UPS: Final = 11


def torch_ddp(case: Case, inputs: Buffers, outputs: Buffers, communicator: Communicator) -> Callable[[], None]:
    """PyTorch's DistributedDataParallel around the perceptron, as most people train on several GPUs; in float32.

    Idea: Automatic differentiation; the gradients' average over all ranks starts as soon as a bucket of them is ready.
    Bottleneck: Kernels of their own for all that lies between the products, each started from Python; gradients are copied into buckets.
    Next: The whole step in a few kernels: `v02_nccl`.
    Source: torch.nn.parallel.DistributedDataParallel.
    """
    import torch
    from torch import nn
    from torch.nn import functional

    from warpladder.workloads import torch_bridge

    torch_bridge.use_current_stream()
    x, y = (torch_bridge.as_tensor(inputs[name]) for name in ("x", "y"))
    new = [torch_bridge.as_tensor(outputs[name]) for name in OUTPUTS]
    rates = np.array([rate_of(case)])
    communicator.average([rates])
    keep = 1.0 - float(rates[0]) * REGULARIZATION

    class Perceptron(nn.Module):  # type: ignore[misc]
        """784-1000-10, on the very weights of the case, which a step leaves as they are."""

        def __init__(self) -> None:
            super().__init__()
            for name in INPUTS:
                self.register_parameter(name, nn.Parameter(torch_bridge.as_tensor(inputs[name])))

        def forward(self, rows: torch.Tensor) -> torch.Tensor:
            hidden = torch.sigmoid(torch.addmm(self.b1, rows, self.w1))
            return torch.addmm(self.b2, hidden, self.w2)

    network: nn.Module = Perceptron()
    parameters = list(network.parameters())
    if communicator.size > 1:
        torch_bridge.join_ranks(communicator)
        network = nn.parallel.DistributedDataParallel(
            network, device_ids=[x.device.index], gradient_as_bucket_view=True, init_sync=False
        )
        network._set_ddp_runtime_logging_sample_rate(1 << 30)  # which waits for the device

    def operation() -> None:
        for parameter in parameters:
            parameter.grad = None
        # Kernels of the backward pass start from this thread, in this order.
        with torch_bridge.tf32(False), torch.autograd.set_multithreading_enabled(False):
            (rate_of(case) * functional.cross_entropy(network(x), y)).backward()
        with torch.no_grad():
            for number, (weights, target) in enumerate(zip(parameters, new, strict=True)):
                is_bias = number % 2 == 1
                torch.mul(weights, 1.0 if is_bias else keep, out=target).sub_(weights.grad)

    for _ in range(_WARM_UPS):
        operation()
    torch.cuda.current_stream().synchronize()
    return operation
