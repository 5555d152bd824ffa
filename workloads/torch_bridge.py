"""PyTorch on CuPy's arrays and CuPy's stream, for the peers that reach NVIDIA's libraries through it.

PyTorch and CuPy are imported when first used: importing this module costs nothing.
"""

import sys
from contextlib import AbstractContextManager, nullcontext
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


def memory_of_a_graph() -> tuple[object, AbstractContextManager[Any]]:
    """A pool of memory, and the context in which PyTorch allocates from it alone; nothing where PyTorch has not been imported.

    A CUDA graph writes at each launch where memory was allocated during its capture, so that nobody else may be given it.
    """
    if "torch" not in sys.modules:
        return None, nullcontext()
    import torch

    pool = torch.cuda.MemPool()
    return pool, torch.cuda.use_mem_pool(pool)
