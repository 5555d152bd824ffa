"""PyTorch on CuPy's arrays and CuPy's stream, for the peers that reach NVIDIA's libraries through it.

PyTorch and CuPy are imported at the first use, so importing this module is fast.
"""

import gc
import socket
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import Any, Final

from warpladder.workloads.api import Array
from warpladder.workloads.declare.launches import Communicator

#: Modules that `compile_for_graph` takes, as a variant's `requires` names them.
COMPILER: Final = ("torch._inductor.compile_fx", "triton")
#: Modes of `torch.compile` that use no graphs of their own, as a variant's configs: the default, and the one that times more kernels.
COMPILE_MODES: Final = ({"mode": "default"}, {"mode": "max-autotune-no-cudagraphs"})
#: Calls before a compiled function is captured in a CUDA graph. PyTorch compiles at the first, and its libraries choose
#: algorithms.
_WARM_UPS: Final = 3
#: Mode of `torch.compile`; see `compile_mode`.
_mode = "default"
#: Whether cuDNN times its algorithms for each new shape and keeps the fastest. It is off while a variant runs only to be
#: compiled.
time_algorithms = True


def as_tensor(array: Array) -> Any:
    """The `torch.Tensor` that shares a CuPy array's memory; nothing is copied."""
    import torch

    return torch.from_dlpack(array)


def as_values(array: Array) -> Any:
    """The same; unsigned integers of 16 bits, which hold BF16 where CuPy lacks it, are BF16."""
    import torch

    tensor = as_tensor(array)
    return tensor.view(torch.bfloat16) if tensor.dtype == torch.uint16 else tensor


def use_current_stream() -> None:
    """Make PyTorch enqueue on the stream that is CuPy's current one. Call it where a variant is prepared."""
    import cupy
    import torch

    torch.cuda.set_stream(torch.cuda.ExternalStream(cupy.cuda.get_current_stream().ptr))


def use_current_stream_if_on_gpu() -> None:
    """The same, if PyTorch has used the GPU."""
    if is_on_gpu():
        use_current_stream()


def current_stream() -> int | None:
    """Address of the stream that PyTorch enqueues on, 0 for the default one; None if PyTorch does not use the GPU yet."""
    return int(sys.modules["torch"].cuda.current_stream().cuda_stream) if is_on_gpu() else None


@contextmanager
def own_choice_of_stream() -> Iterator[None]:
    """A block in which a variant is prepared. PyTorch enqueues on its default stream there, unless the variant chooses another.

    After the block it enqueues on CuPy's current stream. So no variant depends on the stream that another one chose.
    """
    if is_on_gpu():
        torch = sys.modules["torch"]
        torch.cuda.set_stream(torch.cuda.default_stream())
    try:
        yield
    finally:
        use_current_stream_if_on_gpu()


def free_memory() -> None:
    """Give the GPU memory back that PyTorch keeps for later tensors. Does nothing after an error that left the GPU unusable."""
    with suppress(RuntimeError):
        if is_on_gpu():
            sys.modules["torch"].cuda.empty_cache()


def forget_compiled() -> None:
    """Forget what torch.compile has compiled, so that each case is compiled as if it were the only one.

    A user's file is loaded again for each case. A compiled function of a library stays: its code for a second size takes any size
    and can be slower, and it runs uncompiled after eight sizes if each is compiled for itself (PyTorch's `recompile_limit`).
    """
    if dynamo := sys.modules.get("torch._dynamo"):
        dynamo.reset()


def is_on_gpu() -> bool:
    """Whether PyTorch has been imported and has used the GPU. The check itself must not initialise it."""
    torch = sys.modules.get("torch")
    return torch is not None and bool(torch.cuda.is_initialized())


def empty_like(array: Array) -> Array:
    """An uninitialised CuPy array like another one, in memory that PyTorch allocates."""
    import cupy
    import torch

    memory = torch.empty(max(array.nbytes, 1), dtype=torch.uint8, device="cuda")
    owner = cupy.cuda.UnownedMemory(memory.data_ptr(), memory.numel(), memory)
    return cupy.ndarray(array.shape, array.dtype, cupy.cuda.MemoryPointer(owner, 0))


@contextmanager
def compile_mode(mode: str) -> Iterator[None]:
    """A block in which `compile_for_graph` compiles in another mode of `torch.compile`, one without graphs of its own."""
    global _mode
    before, _mode = _mode, mode
    try:
        yield
    finally:
        _mode = before


def compile_for_graph(function: Callable[[], object], *, allow_tf32: bool = False) -> Callable[[], None]:
    """Compiles a function without arguments by `torch.compile`, and warms it up for the CUDA graph of `graph=True`.

    Args:
        function: reads and writes tensors that it closes over. It is compiled for their shapes only.
        allow_tf32: let products and convolutions use TensorFloat-32.
    """
    import torch

    # Each case compiles the same code for another closure and other shapes. That is no error, so the limit is raised.
    torch._dynamo.config.recompile_limit = torch._dynamo.config.accumulated_recompile_limit = 1 << 20
    compiled = torch.compile(function, fullgraph=True, dynamic=False, mode=_mode)

    def operation() -> None:
        with tf32(allow_tf32):
            compiled()

    with warnings.catch_warnings():
        # The precision is that of the variant: float32 is meant where it is not TensorFloat-32.
        warnings.filterwarnings("ignore", "TensorFloat32 tensor cores", UserWarning)
        for _ in range(_WARM_UPS):
            operation()
    torch.cuda.current_stream().synchronize()
    return operation


def join_ranks(communicator: Communicator) -> None:
    """Joins PyTorch's processes, with NCCL between their GPUs. Every rank calls it; further calls do nothing."""
    import cupy
    import torch
    from torch import distributed

    if distributed.is_initialized():
        return
    rank, size = communicator.rank, communicator.size
    own_store = distributed.TCPStore("0.0.0.0", 0, size, is_master=True, wait_for_workers=False) if rank == 0 else None
    host, port = communicator.broadcast((socket.gethostname(), own_store.port) if own_store else None)
    store = own_store or distributed.TCPStore(host, port, size, is_master=False)
    device = torch.device("cuda", cupy.cuda.Device().id)
    distributed.init_process_group("nccl", store=store, rank=rank, world_size=size, device_id=device)


@contextmanager
def tf32(allowed: bool) -> Any:
    """Allows or forbids TensorFloat-32 in products and convolutions, and lets cuDNN time its algorithms if `time_algorithms`,
    until the block ends."""
    import torch

    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    before = matmul.allow_tf32, cudnn.allow_tf32, cudnn.benchmark
    matmul.allow_tf32, cudnn.allow_tf32, cudnn.benchmark = allowed, allowed, time_algorithms
    try:
        yield
    finally:
        matmul.allow_tf32, cudnn.allow_tf32, cudnn.benchmark = before


def memory_of_a_graph() -> tuple[object, AbstractContextManager[Any]]:
    """A pool of memory, and the context in which PyTorch allocates from this pool only; an empty context if PyTorch has not
    been imported.

    Each launch of a CUDA graph writes to the memory that was allocated during its capture, so nothing else may use that memory.
    """
    if "torch" not in sys.modules:
        return None, nullcontext()
    import torch

    pool = torch.cuda.MemPool()
    return pool, _allocating_from(pool)


@contextmanager
def _allocating_from(pool: object) -> Iterator[None]:
    """PyTorch allocates from this pool. No garbage is collected: a pool of an earlier graph that is freed here aborts the process."""
    torch = sys.modules["torch"]
    collects = gc.isenabled()
    gc.disable()
    try:
        with torch.cuda.use_mem_pool(pool):
            yield
    finally:
        if collects:
            gc.enable()
