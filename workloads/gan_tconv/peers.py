"""cuDNN's transposed convolution, reached through PyTorch, with PyTorch's batch normalisation and activations."""

from collections.abc import Callable

from warpladder.workloads.api import Buffers, Case
from warpladder.workloads.gan_tconv.torch_calls import compiled as _compiled
from warpladder.workloads.gan_tconv.torch_calls import generator as _generator


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


def compiled_fp32(case: Case, inputs: Buffers, outputs: Buffers) -> Callable[[], None]:
    """The generator compiled by PyTorch, channels last (NHWC), in a CUDA graph, in float32.

    Idea: cuDNN computes the transposed convolutions; one Triton kernel does all that lies between two of them. Python launches nothing.
    Bottleneck: cuDNN's float32 kernels for many images; for few, reading the weights and the number of kernels.
    Next: One kernel a layer, which also does what follows the products.
    Source: torch.compile, TorchInductor.
    """
    return _compiled(case, inputs, outputs, allow_tf32=False)


def compiled_tf32(case: Case, inputs: Buffers, outputs: Buffers) -> Callable[[], None]:
    """The same with TensorFloat-32 allowed.

    Idea: Tensor cores, in the layout that they need, and few kernels between the convolutions.
    Bottleneck: The pixels go to memory and back between a convolution and what follows it.
    Next: One kernel a layer.
    Source: torch.compile, with torch.backends.cudnn.allow_tf32.
    """
    return _compiled(case, inputs, outputs, allow_tf32=True)
