"""The generator by PyTorch's calls: what peers of any type share."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from warpladder.workloads.api import Buffers, Case, Repacked
from warpladder.workloads.gan_tconv.problem import EPSILON, Layer, channels_of, layers, side_of


def compiled(case: Case, inputs: Buffers, outputs: Buffers, allow_tf32: bool = False) -> Repacked:
    """The generator compiled by PyTorch, channels last, in the types of its buffers."""
    import torch
    from torch.nn import functional

    from warpladder.workloads import torch_bridge

    torch_bridge.use_current_stream()
    given = {name: torch_bridge.as_values(array) for name, array in inputs.items()}
    images = torch_bridge.as_values(outputs["images"]).permute(0, 3, 1, 2)
    first = (-1, side_of(case), side_of(case), channels_of(case))
    network = layers(case)
    weights, repack = _repacked(given, network, torch.channels_last)

    def generate() -> None:
        x = _normalised(given, (given["z"] @ given["w0"].T).view(first).permute(0, 3, 1, 2), 0)
        for layer, weight in zip(network, weights, strict=True):
            whole = functional.conv_transpose2d(x, weight, stride=2, padding=1)
            x = whole[:, :, :-1, :-1]  # of 2 side + 1 rows and columns
            if layer.last:
                images.copy_(torch.tanh(x + given["b4"][:, None, None]))
            else:
                x = _normalised(given, x, layer.number)

    return Repacked(torch_bridge.compile_for_graph(generate, allow_tf32=allow_tf32), repack)


def _repacked(given: Mapping[str, Any], network: Sequence[Layer], memory_format: Any) -> tuple[list[Any], Callable[[], None]]:
    """The weights in PyTorch's layout: input channels, output channels, rows, columns; and what copies them there.

    They are copied when the inputs change, as a model's weights are when it is loaded.
    """
    own = [given[f"w{layer.number}"].permute(3, 2, 0, 1) for layer in network]
    weights = [each.contiguous(memory_format=memory_format) for each in own]

    def repack() -> None:
        for weight, each in zip(weights, own, strict=True):
            weight.copy_(each)

    return weights, repack


def _normalised(given: Mapping[str, Any], x: Any, number: int) -> Any:
    """Batch normalisation and ReLU behind layer `number`, whose bias goes into the mean: that spares a pass over all pixels."""
    from torch.nn import functional

    gamma, beta, mean, variance = given[f"bn{number}"]
    mean = mean - given[f"b{number}"] if number else mean
    return functional.batch_norm(x, mean, variance, gamma, beta, training=False, eps=EPSILON).relu_()


def generator(case: Case, inputs: Buffers, outputs: Buffers, channels_last: bool, allow_tf32: bool = False) -> Repacked:
    """The generator by calls of cuDNN and PyTorch, in the types of its buffers."""
    import torch

    from warpladder.workloads import torch_bridge

    torch_bridge.use_current_stream()
    torch.backends.cudnn.benchmark_limit = 0  # try every algorithm; PyTorch stops at ten
    memory_format = torch.channels_last if channels_last else torch.contiguous_format
    given = {name: torch_bridge.as_values(array) for name, array in inputs.items()}
    images = torch_bridge.as_values(outputs["images"]).permute(0, 3, 1, 2)
    first = (-1, side_of(case), side_of(case), channels_of(case))
    network = layers(case)
    weights, repack = _repacked(given, network, memory_format)
    matmul = torch.backends.cuda.matmul

    def operation() -> None:
        before, matmul.allow_tf32 = matmul.allow_tf32, allow_tf32
        try:
            x = (given["z"] @ given["w0"].T).view(first).permute(0, 3, 1, 2)
        finally:
            matmul.allow_tf32 = before
        x = _normalised(given, x.contiguous(memory_format=memory_format), 0)
        for layer, weight in zip(network, weights, strict=True):
            x = torch.ops.aten.cudnn_convolution_transpose(
                x,
                weight,
                padding=[1, 1],
                output_padding=[0, 0],
                stride=[2, 2],
                dilation=[1, 1],
                groups=1,
                benchmark=True,
                deterministic=False,
                allow_tf32=allow_tf32,
            )[:, :, :-1, :-1]  # of its 2 side + 1 rows and columns
            if layer.last:
                torch.tanh(x.add_(given["b4"][:, None, None]), out=images)
            else:
                x = _normalised(given, x, layer.number).contiguous(memory_format=memory_format)

    return Repacked(operation, repack)
