"""The same step by PyTorch, which averages the ranks' gradients in BF16 between their GPUs by NCCL."""

from collections.abc import Callable
from typing import Any, Final, Literal

import numpy as np

from warpladder.workloads import torch_bridge
from warpladder.workloads.api import Buffers, Case, Communicator
from warpladder.workloads.mlp_training.problem import INPUTS, OUTPUTS, REGULARIZATION, rate_of
from warpladder.workloads.mlp_training_bf16.problem import COPIES

#: Steps before the first that is measured: DistributedDataParallel arranges its buckets after the first, and takes times of ten.
_WARM_UPS: Final = 11


def torch_ddp(case: Case, inputs: Buffers, outputs: Buffers, communicator: Communicator) -> Callable[[], None]:
    """PyTorch's DistributedDataParallel in `torch.autocast`, whose hook averages gradients in BF16, as most people train on several GPUs.

    Idea: Half of the bytes between the GPUs; a bucket leaves as soon as it is full; gradients lie in the buckets, and the graph is static.
    Bottleneck: Kernels of their own for all that lies between the products, casts of weights and gradients among them.
    Next: A compiler that fuses the passes.
    Source: torch.nn.parallel.DistributedDataParallel; torch.distributed.algorithms.ddp_comm_hooks.default_hooks.bf16_compress_hook.
    """
    return _ddp_step(case, inputs, outputs, communicator, "autocast", is_compiled=False)


def compiled_ddp(
    case: Case, inputs: Buffers, outputs: Buffers, communicator: Communicator, products: Literal["autocast", "copies"]
) -> Callable[[], None]:
    """DistributedDataParallel around the module that `torch.compile` has compiled, with a compiled update, in one CUDA graph.

    Idea: Triton kernels for what lies between the products. With `copies` the parameters are the BF16 copies of the weights, so that neither
        weights nor gradients are cast.
    Bottleneck: The compiled backward pass gives all gradients at its end, so that they leave together; the copies to and from buckets.
    Next: `torch_compile_allreduce`, without the wrapper.
    Source: torch.compile around a module within DistributedDataParallel.
    """
    return _ddp_step(case, inputs, outputs, communicator, products, is_compiled=True)


def compiled_allreduce(case: Case, inputs: Buffers, outputs: Buffers, communicator: Communicator) -> Callable[[], None]:
    """The compiled step of one rank, cut in two at an all-reduce of all gradients in BF16, in one CUDA graph.

    Idea: No wrapper: the first half leaves all gradients in one array of BF16, and the second half updates the weights and writes the copies.
    Bottleneck: The passes through memory between the products, and NCCL's latency, which nothing hides. The mode max-autotune is left out: its
        search had not ended for one case on two H200s after 26 s.
    Next: A step written by hand.
    Source: torch.compile, TorchInductor; torch.distributed.all_reduce.
    """
    import torch
    from torch import distributed

    torch_bridge.use_current_stream()
    of, new = _tensors(inputs), _tensors(outputs)
    x, y, b1, b2, w1, w2 = (of[name] for name in ("x", "y", "b1", "b2", *COPIES.values()))
    rate, keep = rate_of(case), _keep(case, communicator)
    sizes = [of[name].numel() for name in INPUTS]
    average = torch.zeros(sum(sizes), dtype=torch.bfloat16, device=x.device)
    parts = [part.view(of[name].shape) for name, part in zip(INPUTS, average.split(sizes), strict=True)]

    def gradients() -> None:
        with torch.autocast("cuda", torch.bfloat16):
            a1 = torch.sigmoid(x @ w1 + b1)
            z2 = a1 @ w2 + b2
            dz2 = (torch.softmax(z2, 1) - y) * (rate / len(x))
            dz1 = (dz2 @ w2.t()) * a1 * (1.0 - a1)
            new["losses"].copy_((y * (torch.logsumexp(z2, 1, keepdim=True) - z2)).sum(1))
            for part, gradient in zip(parts, (x.t() @ dz1, dz1.sum(0), a1.t() @ dz2, dz2.sum(0)), strict=True):
                part.copy_(gradient)

    def update() -> None:
        _update(of, new, dict(zip(INPUTS, parts, strict=True)), keep)

    first, last = torch_bridge.compile_for_graph(gradients), torch_bridge.compile_for_graph(update)
    if communicator.size > 1:
        torch_bridge.join_ranks(communicator)

    def operation() -> None:
        first()
        if communicator.size > 1:
            distributed.all_reduce(average, distributed.ReduceOp.AVG)
        last()

    operation()
    torch.cuda.current_stream().synchronize()
    return operation


def _ddp_step(
    case: Case, inputs: Buffers, outputs: Buffers, communicator: Communicator, products: str, *, is_compiled: bool
) -> Callable[[], None]:
    import torch
    from torch import nn
    from torch.nn import functional

    torch_bridge.use_current_stream()
    of, new = _tensors(inputs), _tensors(outputs)
    rate, keep = rate_of(case), _keep(case, communicator)
    names = {name: COPIES.get(name, name) if products == "copies" else name for name in INPUTS}

    class Perceptron(nn.Module):  # type: ignore[misc]
        """784-1000-10, on the very weights of the case, which a step leaves as they are."""

        def __init__(self) -> None:
            super().__init__()
            for name, source in names.items():
                self.register_parameter(name, nn.Parameter(of[source]))

        def forward(self, rows: torch.Tensor) -> torch.Tensor:
            with torch.autocast("cuda", torch.bfloat16):
                hidden = torch.sigmoid(torch.addmm(self.b1, rows, self.w1))
                logits = torch.addmm(self.b2, hidden, self.w2)
            return functional.cross_entropy(logits.float(), of["y"], reduction="none")

    perceptron = Perceptron()
    parameters = list(perceptron.parameters())  # in the order of INPUTS

    def update(*gradients: torch.Tensor) -> None:
        with torch.no_grad():
            _update(of, new, dict(zip(INPUTS, gradients, strict=True)), keep)

    network: nn.Module = perceptron
    if is_compiled:
        torch._dynamo.config.recompile_limit = torch._dynamo.config.accumulated_recompile_limit = 1 << 20
        network, update = (torch.compile(each, fullgraph=True, dynamic=False) for each in (perceptron, update))
    if communicator.size > 1:
        network = _averaged(network, communicator, of["x"].device.index)

    def operation() -> None:
        for parameter in parameters:
            parameter.grad = None
        # Kernels of the backward pass start from this thread, in this order.
        with torch.autograd.set_multithreading_enabled(False):
            losses = network(of["x"])
            (rate * losses.mean()).backward()
        new["losses"].copy_(losses.detach())
        update(*(parameter.grad for parameter in parameters))

    for _ in range(_WARM_UPS):
        operation()
    torch.cuda.current_stream().synchronize()
    return operation


def _averaged(network: Any, communicator: Communicator, device: int) -> Any:
    """The module within DistributedDataParallel, with its hook for BF16."""
    from torch import nn
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

    torch_bridge.join_ranks(communicator)
    averaged = nn.parallel.DistributedDataParallel(
        network, device_ids=[device], gradient_as_bucket_view=True, static_graph=True, init_sync=False
    )
    averaged.register_comm_hook(None, default_hooks.bf16_compress_hook)
    averaged._set_ddp_runtime_logging_sample_rate(1 << 30)  # which waits for the device
    return averaged


def _tensors(buffers: Buffers) -> dict[str, Any]:
    return {name: torch_bridge.as_values(array) for name, array in buffers.items()}


def _keep(case: Case, communicator: Communicator) -> float:
    """The part of a weight that the step of the whole batch keeps."""
    rates = np.array([rate_of(case)])
    communicator.average([rates])
    return 1.0 - float(rates[0]) * REGULARIZATION


def _update(of: dict[str, Any], new: dict[str, Any], gradients: dict[str, Any], keep: float) -> None:
    """New weights, and copies of those that products take copies of. Gradients hold the rate."""
    for name, target in zip(INPUTS, OUTPUTS, strict=True):
        weights = (keep if name in COPIES else 1.0) * of[name] - gradients[name]
        new[target].copy_(weights)
        if name in COPIES:
            new[f"new_{COPIES[name]}"].copy_(weights)
