"""PyTorch on CuPy's arrays and CuPy's stream, for the peers that reach NVIDIA's libraries through it.

PyTorch and CuPy are imported when first used: importing this module costs nothing.
"""

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
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


def current_stream() -> int | None:
    """Address of the stream that PyTorch enqueues on, 0 for the default one; None where PyTorch does not use the GPU yet."""
    return int(sys.modules["torch"].cuda.current_stream().cuda_stream) if _on_gpu() else None


@contextmanager
def own_choice_of_stream() -> Iterator[None]:
    """A block in which a variant is prepared: PyTorch enqueues on its default stream unless the variant says otherwise.

    Afterwards it enqueues on CuPy's current stream. So no variant depends on the stream that another one chose.
    """
    if _on_gpu():
        torch = sys.modules["torch"]
        torch.cuda.set_stream(torch.cuda.default_stream())
    try:
        yield
    finally:
        if _on_gpu():
            use_current_stream()


def _on_gpu() -> bool:
    """Whether PyTorch has been imported and has used the GPU. A look at it must start nothing."""
    torch = sys.modules.get("torch")
    return torch is not None and bool(torch.cuda.is_initialized())


def memory_of_a_graph() -> tuple[object, AbstractContextManager[Any]]:
    """A pool of memory, and the context in which PyTorch allocates from it alone; nothing where PyTorch has not been imported.

    A CUDA graph writes at each launch where memory was allocated during its capture, so that nobody else may be given it.
    """
    if "torch" not in sys.modules:
        return None, nullcontext()
    import torch

    pool = torch.cuda.MemPool()
    return pool, torch.cuda.use_mem_pool(pool)
