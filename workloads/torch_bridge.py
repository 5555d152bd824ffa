"""PyTorch on CuPy's arrays and CuPy's stream, for the peers that reach NVIDIA's libraries through it.

PyTorch and CuPy are imported when first used: importing this module costs nothing.
"""

from typing import Any

from workloads.api import Array


def as_tensor(array: Array) -> Any:
    """The `torch.Tensor` that shares a CuPy array's memory; nothing is copied."""
    import torch

    return torch.from_dlpack(array)


def use_current_stream() -> None:
    """Make PyTorch enqueue on the stream that is CuPy's current one. Call it where a variant is prepared."""
    import cupy
    import torch

    torch.cuda.set_stream(torch.cuda.ExternalStream(cupy.cuda.get_current_stream().ptr))
