"""cuDNN's transposed convolution, reached through PyTorch, with PyTorch's batch normalisation and activations."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from warpladder.workloads.api import Buffers, Case, Repacked
from warpladder.workloads.gan_tconv.problem import EPSILON, Layer, channels_of, layers, side_of


def cudnn_fp32(case: Case, inputs: Buffers, outputs: Buffers) -> Callable[[], None]:
    """NVIDIA's deep-learning library in float32, on planes of pixels (NCHW), PyTorch's own layout.

    Idea: What most people would call. cuDNN times its algorithms at the first call (benchmark mode) and keeps the fastest.
    Bottleneck: A transposed convolution is run as the gradient of a convolution; batch normalisation, ReLU and tanh are kernels
        of their own, each of which reads and writes all pixels.
    Next: Pixels with their channels together, `cudnn_nhwc`; or one's own kernel, with all of it in one.
    Source: NVIDIA cuDNN by torch.ops.aten.cudnn_convolution_transpose.
    """
    return generator(case, inputs, outputs, channels_last=False)


def cudnn_nhwc_fp32(case: Case, inputs: Buffers, outputs: Buffers) -> Callable[[], None]:
    """The same calls in float32 on pixels whose channels lie together (NHWC), as in the images that come out.

    Idea: No change of layout at the end, and rows of channels, as a matrix product likes them.
    Bottleneck: cuDNN has fewer float32 kernels for this layout.
    Next: One's own kernel.
    Source: NVIDIA cuDNN by torch.ops.aten.cudnn_convolution_transpose, memory format channels_last.
    """
    return generator(case, inputs, outputs, channels_last=True)


def cudnn_tf32(case: Case, inputs: Buffers, outputs: Buffers) -> Callable[[], None]:
    """The calls of `cudnn` with TensorFloat-32 allowed, as PyTorch has it by default for convolutions.

    Idea: Tensor cores, on operands rounded to 10 bits of fraction.
    Bottleneck: Tensor cores want channels together; planes are rearranged before and after.
    Next: `cudnn_nhwc_tf32`.
    Source: NVIDIA cuDNN by torch.ops.aten.cudnn_convolution_transpose.
    """
    return generator(case, inputs, outputs, channels_last=False, allow_tf32=True)


def cudnn_nhwc_tf32(case: Case, inputs: Buffers, outputs: Buffers) -> Callable[[], None]:
    """The calls of `cudnn_nhwc` with TensorFloat-32 allowed.

    Idea: Tensor cores, in the layout that they want.
    Bottleneck: What lies between the convolutions: batch normalisation and activation, bound by memory.
    Next: One's own kernel, with these in its last lines.
    Source: NVIDIA cuDNN by torch.ops.aten.cudnn_convolution_transpose, memory format channels_last.
    """
    return generator(case, inputs, outputs, channels_last=True, allow_tf32=True)


def compiled_fp32(case: Case, inputs: Buffers, outputs: Buffers) -> Callable[[], None]:
    """The generator compiled by PyTorch, channels last (NHWC), in a CUDA graph, in float32.

    Idea: cuDNN computes the transposed convolutions; one Triton kernel does all that lies between two of them. Python launches nothing.
    Bottleneck: cuDNN's float32 kernels for many images; for few, reading the weights and the number of kernels.
    Next: One kernel a layer, which also does what follows the products.
    Source: torch.compile, TorchInductor.
    """
    return compiled(case, inputs, outputs)


def compiled_tf32(case: Case, inputs: Buffers, outputs: Buffers) -> Callable[[], None]:
    """The same with TensorFloat-32 allowed.

    Idea: Tensor cores, in the layout that they need, and few kernels between the convolutions.
    Bottleneck: The pixels go to memory and back between a convolution and what follows it.
    Next: One kernel a layer.
    Source: torch.compile, with torch.backends.cudnn.allow_tf32.
    """
    return compiled(case, inputs, outputs, allow_tf32=True)


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
