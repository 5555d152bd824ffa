"""cuDNN's convolution in BF16, reached through PyTorch."""

from collections.abc import Callable
from typing import Final

from warpladder.workloads.api import Buffers, Case, Repacked
from warpladder.workloads.cnn_conv import torch_calls

_CHANNELS: Final = 8  # that kernels for tensor cores take at a time: 16 bytes


def cudnn(case: Case, inputs: Buffers, outputs: Buffers) -> Callable[[], None]:
    """The forward convolution of NVIDIA's deep-learning library in BF16, on planes of pixels (NCHW).

    Idea: What most people would call. cuDNN times its own algorithms at the first call (benchmark mode) and keeps the fastest.
    Bottleneck: It takes 583 us for 1,000 images on an H200, and so does the same call on four channels together. Its kernels for tensor cores want
        channels by eights, and together.
    Next: `cudnn_nhwc` with eight channels.
    Source: NVIDIA cuDNN by torch.ops.aten.cudnn_convolution.
    """
    return torch_calls.convolution(inputs, outputs)


def cudnn_nhwc(case: Case, inputs: Buffers, outputs: Buffers, multiple: int) -> Repacked:
    """The same on images and filters whose channels lie together (NHWC), as they are or filled up to eight.

    Idea: Tensor cores read the channels of a pixel at once, so that nothing is rearranged before the products. cuDNN's kernels for them want
        channels by eights in BF16; four of eight are zeros then. Images and filters are copied into this layout when the inputs change,
        and the result stays in it.
    Bottleneck: The tiles of the tensor cores ask for channels and maps that this layer does not have.
    Next: Give the tensor cores the columns of the image for a dimension: a Toeplitz matrix.
    Source: NVIDIA cuDNN by torch.ops.aten.cudnn_convolution, memory format channels_last.
    """
    return torch_calls.channels_last(inputs, outputs, multiple=multiple)


def cudnn_nhwc_tf32(case: Case, inputs: Buffers, outputs: Buffers) -> Repacked:
    """The convolution of the same numbers in float32 with TensorFloat-32 allowed (NHWC); its result is rounded to BF16.

    Idea: cuDNN's kernels in TF32 take four channels. TF32 holds all numbers of BF16. Inputs are widened when they change.
    Bottleneck: Twice the bytes, and another pass to round.
    Next: A kernel for these few channels in BF16.
    Source: NVIDIA cuDNN by torch.ops.aten.cudnn_convolution, memory format channels_last.
    """
    return torch_calls.channels_last(inputs, outputs, allow_tf32=True, in_float32=True)


def compiled(case: Case, inputs: Buffers, outputs: Buffers, mode: str) -> Repacked:
    """The convolution compiled by PyTorch, channels last and filled up to eight, in a CUDA graph.

    Idea: The compiler times cuDNN and, in the mode max-autotune, kernels in Triton. Where it takes the latter, the copy to where the result belongs is
        in the same kernel.
    Bottleneck: The tiles of the tensor cores ask for channels and maps that this layer does not have.
    Next: Give the tensor cores the columns of the image for a dimension: a Toeplitz matrix.
    Source: torch.compile, TorchInductor.
    """
    import torch

    from warpladder.workloads import torch_bridge

    torch_bridge.use_current_stream()
    x, k, y = (torch_bridge.as_values(array) for array in (inputs["x"], inputs["k"], outputs["y"]))
    images, filters = (torch_calls.padded_channels(each, _CHANNELS) for each in (x, k))

    def repack() -> None:
        images[:, : x.shape[1]].copy_(x)
        filters[:, : x.shape[1]].copy_(k)

    repack()

    def convolve() -> None:
        y.copy_(torch.nn.functional.conv2d(images, filters))

    with torch_bridge.compile_mode(mode):
        return Repacked(torch_bridge.compile_for_graph(convolve), repack)
