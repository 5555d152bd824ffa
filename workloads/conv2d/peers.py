"""cuDNN's convolution, reached through PyTorch."""

from collections.abc import Callable

from workloads.api import Buffers, Case
from workloads.conv2d.host import RADIUS


def cudnn_fp32(case: Case, inputs: Buffers, outputs: Buffers) -> Callable[[], None]:
    """The convolution of NVIDIA's deep-learning library in float32, one image of one channel.

    Idea: What most people would call. cuDNN times its own algorithms at the first call (benchmark mode) and keeps the fastest.
    Bottleneck: Its kernels are made for many channels, whose products fill tiles of a matrix product. With one channel in
        and one out there is no reuse for them to find, and most of each tile is padding.
    Next: A kernel of one's own: one channel and a fixed 5x5 filter are a stencil, not a matrix product.
    Source: NVIDIA cuDNN by torch.ops.aten.cudnn_convolution.
    """
    return _convolution(inputs, outputs, allow_tf32=False)


def cudnn_tf32(case: Case, inputs: Buffers, outputs: Buffers) -> Callable[[], None]:
    """The same call with TensorFloat-32 allowed, as PyTorch has it by default.

    Idea: Tensor cores, on operands rounded to 10 bits of mantissa. Benchmark mode still picks whatever is fastest, and on
        an H200 that was a float32 kernel, as the time and the error show, both equal to those of `cudnn`.
    Bottleneck: As for `cudnn`: tensor cores need channels.
    Next: Nothing: with one channel, less accuracy buys no speed.
    Source: NVIDIA cuDNN by torch.ops.aten.cudnn_convolution.
    """
    return _convolution(inputs, outputs, allow_tf32=True)


def _convolution(inputs: Buffers, outputs: Buffers, allow_tf32: bool) -> Callable[[], None]:
    import torch

    from workloads import torch_bridge

    torch_bridge.use_current_stream()
    torch.backends.cudnn.benchmark_limit = 0  # try every algorithm; PyTorch stops at ten
    image, weights, result = (torch_bridge.as_tensor(array)[None, None] for array in (inputs["b"], inputs["a"], outputs["c"]))
    convolve = torch.ops.aten.cudnn_convolution.out  # writes into `result`; conv2d would allocate its own

    def operation() -> None:
        convolve(
            image,
            weights,
            padding=[RADIUS, RADIUS],
            stride=[1, 1],
            dilation=[1, 1],
            groups=1,
            benchmark=True,
            deterministic=False,
            allow_tf32=allow_tf32,
            out=result,
        )

    return operation
