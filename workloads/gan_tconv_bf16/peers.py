"""cuDNN's transposed convolution in BF16, reached through PyTorch."""

from collections.abc import Callable

from warpladder.workloads.api import Buffers, Case
from warpladder.workloads.gan_tconv import torch_calls


def cudnn_nhwc(case: Case, inputs: Buffers, outputs: Buffers) -> Callable[[], None]:
    """NVIDIA's deep-learning library on pixels whose channels lie together (NHWC), in BF16.

    Idea: Tensor cores, in the layout that they want. cuDNN times its algorithms at the first call (benchmark mode) and keeps the fastest.
    Bottleneck: What lies between the convolutions: batch normalisation and activation, bound by memory.
    Next: `torch_compile`, which makes one kernel of what lies between two convolutions.
    Source: NVIDIA cuDNN by torch.ops.aten.cudnn_convolution_transpose, memory format channels_last.
    """
    return torch_calls.generator(case, inputs, outputs, channels_last=True)


def compiled(case: Case, inputs: Buffers, outputs: Buffers) -> Callable[[], None]:
    """The generator compiled by PyTorch, channels last (NHWC), in a CUDA graph, in BF16.

    Idea: cuDNN computes the transposed convolutions; one Triton kernel does all that lies between two of them. Python launches nothing.
    Bottleneck: The pixels go to memory and back between a convolution and what follows it.
    Next: One kernel a layer, which also does what follows the products.
    Source: torch.compile, TorchInductor.
    """
    return torch_calls.compiled(case, inputs, outputs)
