"""cuDNN's convolution by PyTorch's calls: what peers of any type share."""

from collections.abc import Callable
from typing import Any

from warpladder.workloads.api import Buffers, Repacked


def channels_last(
    inputs: Buffers, outputs: Buffers, allow_tf32: bool = False, *, multiple: int = 1, in_float32: bool = False
) -> Repacked:
    """cuDNN's convolution of channels that lie together, in the type of the buffers.

    Args:
        inputs, outputs: the buffers.
        allow_tf32: of products of float32.
        multiple: input channels are filled up with zeros to a multiple of it.
        in_float32: the convolution takes float32, and its result is rounded to the type of the buffers.
    """
    import cupy
    import torch

    from warpladder.workloads import torch_bridge

    torch_bridge.use_current_stream()
    x, k, y = (torch_bridge.as_values(array) for array in (inputs["x"], inputs["k"], outputs["y"]))
    of_products = torch.float32 if in_float32 else x.dtype
    images, filters = (padded_channels(each, multiple).to(of_products) for each in (x, k))
    result = torch.empty_like(y, dtype=of_products, memory_format=torch.channels_last)
    rounded = torch.empty_like(result, dtype=y.dtype) if in_float32 else result
    convolve = _call(images, filters, result, allow_tf32=allow_tf32)
    given = cupy.from_dlpack(rounded.view(torch.uint16) if y.dtype == torch.bfloat16 else rounded)  # CuPy has no BF16

    def repack() -> None:
        images[:, : x.shape[1]].copy_(x)
        filters[:, : x.shape[1]].copy_(k)

    def operation() -> Buffers:
        convolve()
        if in_float32:
            rounded.copy_(result)
        return {"y": given}

    repack()
    return Repacked(operation, repack)


def padded_channels(tensor: Any, multiple: int) -> Any:
    """Zeros of a tensor's type, channels last, with as many channels as are a multiple."""
    import torch

    first, channels, *sides = tensor.shape
    shape = (first, -(-channels // multiple) * multiple, *sides)
    return torch.empty(shape, dtype=tensor.dtype, device=tensor.device, memory_format=torch.channels_last).zero_()


def convolution(inputs: Buffers, outputs: Buffers, allow_tf32: bool = False) -> Callable[[], None]:
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
