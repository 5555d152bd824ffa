"""cuDNN's convolution, reached through PyTorch."""

from collections.abc import Callable

from warpladder.workloads.api import Buffers, Case, Repacked
from warpladder.workloads.cnn_conv.torch_calls import channels_last as _channels_last
from warpladder.workloads.cnn_conv.torch_calls import convolution as _convolution


def cudnn_fp32(case: Case, inputs: Buffers, outputs: Buffers) -> Callable[[], None]:
    """The forward convolution of NVIDIA's deep-learning library in float32.

    Idea: What most people would call. cuDNN times its own algorithms at the first call (benchmark mode) and keeps the fastest.
    Bottleneck: Its kernels are matrix products inside, made for dozens of channels and maps: with 1 or 4 of the one and 4 or
        16 of the other most of each tile is padding.
    Next: Kernels for these few channels: register tiles over the image instead of tiles over channels and maps.
    Source: NVIDIA cuDNN by torch.ops.aten.cudnn_convolution.
    """
    return _convolution(inputs, outputs, allow_tf32=False)


def cudnn_tf32(case: Case, inputs: Buffers, outputs: Buffers) -> Callable[[], None]:
    """The same call with TensorFloat-32 allowed, as PyTorch has it by default.

    Idea: Tensor cores, on operands rounded to 10 bits of mantissa. Benchmark mode still picks whatever is fastest.
    Bottleneck: As for `cudnn`: the tiles of the tensor cores ask for channels and maps that these layers do not have.
    Next: Give the tensor cores the columns of the image for a dimension: a Toeplitz matrix.
    Source: NVIDIA cuDNN by torch.ops.aten.cudnn_convolution.
    """
    return _convolution(inputs, outputs, allow_tf32=True)


def cudnn_nhwc_fp32(case: Case, inputs: Buffers, outputs: Buffers) -> Repacked:
    """The call of `cudnn` on images and filters whose channels lie together (NHWC).

    Idea: The layout that cuDNN's newer kernels read. Images and filters are copied into it when the inputs change, and the result stays
        in it.
    Bottleneck: As for `cudnn`: few channels.
    Next: `cudnn_nhwc_tf32`.
    Source: NVIDIA cuDNN by torch.ops.aten.cudnn_convolution, memory format channels_last.
    """
    return _channels_last(inputs, outputs, allow_tf32=False)


def cudnn_nhwc_tf32(case: Case, inputs: Buffers, outputs: Buffers) -> Repacked:
    """The same with TensorFloat-32 allowed.

    Idea: Tensor cores read the channels of a pixel at once, so that nothing is rearranged before the products.
    Bottleneck: As for `cudnn_tf32`: the tiles of the tensor cores ask for channels and maps that these layers do not have.
    Next: Give the tensor cores the columns of the image for a dimension: a Toeplitz matrix.
    Source: NVIDIA cuDNN by torch.ops.aten.cudnn_convolution, memory format channels_last.
    """
    return _channels_last(inputs, outputs, allow_tf32=True)
