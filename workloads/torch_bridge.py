"""PyTorch on CuPy's arrays and CuPy's stream, for the peers that reach NVIDIA's libraries through it.

PyTorch and CuPy are imported when first used: importing this module costs nothing.
"""

import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Final

from warpladder.workloads.api import Array
from warpladder.workloads.communication import Communicator

#: Modules that `compile_for_graph` takes, as a variant's `requires` names them.
COMPILER: Final = ("torch._inductor.compile_fx", "triton")
#: Calls before a compiled function may be captured in a CUDA graph: PyTorch compiles at the first, and its libraries settle.
_WARM_UPS: Final = 3
#: Whether cuDNN times its algorithms for each new shape and keeps the fastest; off where a variant runs only to be compiled.
time_algorithms = True


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


def compile_for_graph(function: Callable[[], object], *, allow_tf32: bool = False) -> Callable[[], None]:
    """What `torch.compile` makes of a function without arguments, warmed up, to be captured in a CUDA graph by `graph=True`.

    Args:
        function: reads and writes tensors that it closes over; it is compiled for their shapes alone.
        allow_tf32: let products and convolutions have TensorFloat-32.
    """
    import torch

    # Each case has another closure and other shapes of the same code, which is no sign of anything wrong.
    torch._dynamo.config.recompile_limit = torch._dynamo.config.accumulated_recompile_limit = 1 << 20
    compiled = torch.compile(function, fullgraph=True, dynamic=False)

    def operation() -> None:
        with tf32(allow_tf32):
            compiled()

    for _ in range(_WARM_UPS):
        operation()
    torch.cuda.current_stream().synchronize()
    return operation


def join_ranks(communicator: Communicator) -> None:
    """Let PyTorch's processes know of one another, with NCCL between their GPUs. Every rank calls it; once is enough."""
    import cupy
    import torch
    from torch import distributed

    if distributed.is_initialized():
        return
    rank, size = communicator.rank, communicator.size
    here = distributed.TCPStore("0.0.0.0", 0, size, is_master=True, wait_for_workers=False) if rank == 0 else None
    host, port = communicator.broadcast((socket.gethostname(), here.port) if here else None)
    store = here or distributed.TCPStore(host, port, size, is_master=False)
    device = torch.device("cuda", cupy.cuda.Device().id)
    distributed.init_process_group("nccl", store=store, rank=rank, world_size=size, device_id=device)


@contextmanager
def tf32(allowed: bool) -> Any:
    """Allow TensorFloat-32 in products and convolutions, or forbid it, and let cuDNN time its algorithms (`time_algorithms`); as it was afterwards."""
    import torch

    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    before = matmul.allow_tf32, cudnn.allow_tf32, cudnn.benchmark
    matmul.allow_tf32, cudnn.allow_tf32, cudnn.benchmark = allowed, allowed, time_algorithms
    try:
        yield
    finally:
        matmul.allow_tf32, cudnn.allow_tf32, cudnn.benchmark = before


def memory_of_a_graph() -> tuple[object, AbstractContextManager[Any]]:
    """A pool of memory, and the context in which PyTorch allocates from it alone; nothing where PyTorch has not been imported.

    A CUDA graph writes at each launch where memory was allocated during its capture, so that nobody else may be given it.
    """
    if "torch" not in sys.modules:
        return None, nullcontext()
    import torch

    pool = torch.cuda.MemPool()
    return pool, torch.cuda.use_mem_pool(pool)
