"""Routes to a convolution layer."""

from collections.abc import Callable

from benchmarks.peers.routes import compiled_routes, searched
from warpladder.workloads.api import Buffers, Case


def layer(case: Case, inputs: Buffers, outputs: Buffers) -> Callable[[], object]:
    """PyTorch's convolution, for which its compiler may take a Triton kernel of its own."""
    from torch.nn import functional

    from warpladder.workloads import torch_bridge

    images, filters, result = (torch_bridge.as_tensor(array) for array in (inputs["x"], inputs["k"], outputs["y"]))
    return lambda: result.copy_(functional.conv2d(images, filters))


WORKLOAD = searched("cnn_conv", *compiled_routes(layer, "fp32", "tf32"))
