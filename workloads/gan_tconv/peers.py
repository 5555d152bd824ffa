"""cuDNN's transposed convolution, reached through PyTorch, with PyTorch's batch normalisation and activations."""

from collections.abc import Callable

from workloads.api import Buffers, Case
from workloads.gan_tconv.network import EPSILON, channels_of, layers, side_of


def cudnn_fp32(case: Case, inputs: Buffers, outputs: Buffers) -> Callable[[], None]:
    """NVIDIA's deep-learning library in float32, on planes of pixels (NCHW), PyTorch's own layout.

    Idea: What most people would call. cuDNN times its algorithms at the first call (benchmark mode) and keeps the fastest.
    Bottleneck: A transposed convolution is run as the gradient of a convolution; batch normalisation, ReLU and tanh are kernels
        of their own, each of which reads and writes all pixels.
    Next: Pixels with their channels together, `cudnn_nhwc`; or one's own kernel, with all of it in one.
    Source: NVIDIA cuDNN by torch.ops.aten.cudnn_convolution_transpose.
    """
    return _generator(case, inputs, outputs, allow_tf32=False, channels_last=False)


def cudnn_nhwc_fp32(case: Case, inputs: Buffers, outputs: Buffers) -> Callable[[], None]:
    """The same calls in float32 on pixels whose channels lie together (NHWC), as in the images that come out.

    Idea: No change of layout at the end, and rows of channels, as a matrix product likes them.
    Bottleneck: cuDNN has fewer float32 kernels for this layout.
    Next: One's own kernel.
    Source: NVIDIA cuDNN by torch.ops.aten.cudnn_convolution_transpose, memory format channels_last.
    """
    return _generator(case, inputs, outputs, allow_tf32=False, channels_last=True)


def cudnn_tf32(case: Case, inputs: Buffers, outputs: Buffers) -> Callable[[], None]:
    """The calls of `cudnn` with TensorFloat-32 allowed, as PyTorch has it by default for convolutions.

    Idea: Tensor cores, on operands rounded to 10 bits of fraction.
    Bottleneck: Tensor cores want channels together; planes are rearranged before and after.
    Next: `cudnn_nhwc_tf32`.
    Source: NVIDIA cuDNN by torch.ops.aten.cudnn_convolution_transpose.
    """
    return _generator(case, inputs, outputs, allow_tf32=True, channels_last=False)


def cudnn_nhwc_tf32(case: Case, inputs: Buffers, outputs: Buffers) -> Callable[[], None]:
    """The calls of `cudnn_nhwc` with TensorFloat-32 allowed.

    Idea: Tensor cores, in the layout that they want.
    Bottleneck: What lies between the convolutions: batch normalisation and activation, bound by memory.
    Next: One's own kernel, with these in its last lines.
    Source: NVIDIA cuDNN by torch.ops.aten.cudnn_convolution_transpose, memory format channels_last.
    """
    return _generator(case, inputs, outputs, allow_tf32=True, channels_last=True)


def _generator(case: Case, inputs: Buffers, outputs: Buffers, allow_tf32: bool, channels_last: bool) -> Callable[[], None]:
    import torch
    from torch.nn import functional

    from workloads import torch_bridge

    torch_bridge.use_current_stream()
    torch.backends.cudnn.benchmark_limit = 0  # try every algorithm; PyTorch stops at ten
    memory_format = torch.channels_last if channels_last else torch.contiguous_format
    given = {name: torch_bridge.as_tensor(array) for name, array in inputs.items()}
    images = torch_bridge.as_tensor(outputs["images"]).permute(0, 3, 1, 2)
    first = (-1, side_of(case), side_of(case), channels_of(case))
    network = layers(case)
    # PyTorch has input channels, output channels, rows, columns; made once, as a model's weights are.
    weights = [given[f"w{n.number}"].permute(3, 2, 0, 1).contiguous(memory_format=memory_format) for n in network]
    matmul = torch.backends.cuda.matmul

    def normalised(x: torch.Tensor, number: int) -> torch.Tensor:
        gamma, beta, mean, variance = given[f"bn{number}"]
        if number:  # the bias goes into the mean, which spares a pass over all pixels
            mean = mean - given[f"b{number}"]
        return functional.batch_norm(x, mean, variance, gamma, beta, training=False, eps=EPSILON).relu_()

    def operation() -> None:
        before, matmul.allow_tf32 = matmul.allow_tf32, allow_tf32
        try:
            x = (given["z"] @ given["w0"].T).view(first).permute(0, 3, 1, 2)
        finally:
            matmul.allow_tf32 = before
        x = normalised(x.contiguous(memory_format=memory_format), 0)
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
                torch.tanh(x + given["b4"][:, None, None], out=images)
            else:
                x = normalised(x, layer.number).contiguous(memory_format=memory_format)

    return operation
