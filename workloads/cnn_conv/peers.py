"""cuDNN's convolution, reached through PyTorch."""

from collections.abc import Callable
from typing import Any

from warpladder.workloads.api import Buffers, Case, Repacked


def cudnn_fp32(case: Case, inputs: Buffers, outputs: Buffers) -> Callable[[], None]:
    """The forward convolution of NVIDIA's deep-learning library in float32.

    Idea: What most people would call. cuDNN times its own algorithms at the first call (benchmark mode) and keeps the fastest.
    Bottleneck: Its kernels are matrix products inside, made for dozens of channels and maps: with 1 or 4 of the one and 4 or
        16 of the other most of each tile is padding.
    Next: Kernels for these few channels: register tiles over the image instead of tiles over channels and maps.
    Source: NVIDIA cuDNN by torch.ops.aten.cudnn_convolution.
    """
    return planes(inputs, outputs)


def cudnn_tf32(case: Case, inputs: Buffers, outputs: Buffers) -> Callable[[], None]:
    """The same call with TensorFloat-32 allowed, as PyTorch has it by default.

    Idea: Tensor cores, on operands rounded to 10 bits of mantissa. Benchmark mode still picks whatever is fastest.
    Bottleneck: As for `cudnn`: the tiles of the tensor cores ask for channels and maps that these layers do not have.
    Next: Give the tensor cores the columns of the image for a dimension: a Toeplitz matrix.
    Source: NVIDIA cuDNN by torch.ops.aten.cudnn_convolution.
    """
    return planes(inputs, outputs, allow_tf32=True)


def cudnn_nhwc_fp32(case: Case, inputs: Buffers, outputs: Buffers) -> Repacked:
    """The call of `cudnn` on images and filters whose channels lie together (NHWC).

    Idea: The layout that cuDNN's newer kernels read. Images and filters are copied into it when the inputs change, and the result stays
        in it.
    Bottleneck: As for `cudnn`: few channels.
    Next: `cudnn_nhwc_tf32`.
    Source: NVIDIA cuDNN by torch.ops.aten.cudnn_convolution, memory format channels_last.
    """
    return channels_last(inputs, outputs)


def cudnn_nhwc_tf32(case: Case, inputs: Buffers, outputs: Buffers) -> Repacked:
    """The same with TensorFloat-32 allowed.

    Idea: Tensor cores read the channels of a pixel at once, so that nothing is rearranged before the products.
    Bottleneck: As for `cudnn_tf32`: the tiles of the tensor cores ask for channels and maps that these layers do not have.
    Next: Give the tensor cores the columns of the image for a dimension: a Toeplitz matrix.
    Source: NVIDIA cuDNN by torch.ops.aten.cudnn_convolution, memory format channels_last.
    """
    return channels_last(inputs, outputs, allow_tf32=True)


def channels_last(inputs: Buffers, outputs: Buffers, allow_tf32: bool = False) -> Repacked:
    """cuDNN's convolution of channels that lie together, in the type of the buffers."""
    import cupy
    import torch

    from warpladder.workloads import torch_bridge

    torch_bridge.use_current_stream()
    given = [torch_bridge.as_values(array) for array in (inputs["x"], inputs["k"], outputs["y"])]
    images, filters, result = (torch.empty_like(each, memory_format=torch.channels_last) for each in given)
    convolve = _call(images, filters, result, allow_tf32=allow_tf32)
    y = cupy.from_dlpack(result.view(torch.uint16) if result.dtype == torch.bfloat16 else result)  # CuPy has no BF16

    def repack() -> None:
        images.copy_(given[0])
        filters.copy_(given[1])

    def operation() -> Buffers:
        convolve()
        return {"y": y}

    repack()
    return Repacked(operation, repack)


def planes(inputs: Buffers, outputs: Buffers, allow_tf32: bool = False) -> Callable[[], None]:
    """cuDNN's convolution of planes, in the type of the buffers."""
    from warpladder.workloads import torch_bridge

    torch_bridge.use_current_stream()
    tensors = (torch_bridge.as_values(array) for array in (inputs["x"], inputs["k"], outputs["y"]))
    return _call(*tensors, allow_tf32=allow_tf32)


def _call(images: Any, filters: Any, result: Any, *, allow_tf32: bool) -> Callable[[], None]:
    """The convolution of tensors in any layout."""
    import torch

    torch.backends.cudnn.benchmark_limit = 0  # try every algorithm; PyTorch stops at ten
    convolve = torch.ops.aten.cudnn_convolution.out  # writes into `result`; conv2d would allocate its own

    def operation() -> None:
        convolve(
            images,
            filters,
            padding=[0, 0],
            stride=[1, 1],
            dilation=[1, 1],
            groups=1,
            benchmark=True,
            deterministic=False,
            allow_tf32=allow_tf32,  # of this call alone: no global switch is touched
            out=result,
        )

    return operation
