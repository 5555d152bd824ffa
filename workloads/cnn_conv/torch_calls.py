"""cuDNN's convolution by PyTorch's calls: what peers of any type share."""

from collections.abc import Callable
from typing import Any

from warpladder.workloads.api import Buffers, Repacked


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
