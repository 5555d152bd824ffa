"""cuDNN's convolution in BF16, reached through PyTorch."""

from collections.abc import Callable

from warpladder.workloads.api import Buffers, Case, Repacked
from warpladder.workloads.cnn_conv import torch_calls


def cudnn(case: Case, inputs: Buffers, outputs: Buffers) -> Callable[[], None]:
    """The forward convolution of NVIDIA's deep-learning library in BF16, on planes of pixels (NCHW).

    Idea: What most people would call. cuDNN times its own algorithms at the first call (benchmark mode) and keeps the fastest.
    Bottleneck: Its kernels for tensor cores want channels together: planes are rearranged before and after.
    Next: `cudnn_nhwc`.
    Source: NVIDIA cuDNN by torch.ops.aten.cudnn_convolution.
    """
    return torch_calls.convolution(inputs, outputs)


def cudnn_nhwc(case: Case, inputs: Buffers, outputs: Buffers) -> Repacked:
    """The same on images and filters whose channels lie together (NHWC).

    Idea: Tensor cores read the channels of a pixel at once, so that nothing is rearranged before the products. Images and filters are copied
        into this layout when the inputs change, and the result stays in it.
    Bottleneck: The tiles of the tensor cores ask for channels and maps that this layer does not have.
    Next: Give the tensor cores the columns of the image for a dimension: a Toeplitz matrix.
    Source: NVIDIA cuDNN by torch.ops.aten.cudnn_convolution, memory format channels_last.
    """
    return torch_calls.channels_last(inputs, outputs)
