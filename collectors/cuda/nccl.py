"""NCCL between the GPUs of the ranks that share a case, and inputs that the ranks gather from one another."""

from typing import Any, Final

import numpy as np
from cupy.cuda import runtime

from warpladder.collectors.core.bench import BenchCommunicator, Unavailable
from warpladder.workloads.api import Array

_PIECE_BYTES: Final = 256  # pieces are multiples of it, so that each is aligned for vector copies


def nccl_module() -> Any:
    """Return CuPy's NCCL module."""
    from cupy.cuda import nccl  # imported here: it warns if NCCL is missing, which a single GPU does not need

    return nccl


_nccl: list[Any] = []  # the process's communicator, after the first call


def nccl_of(communicator: BenchCommunicator) -> Any:
    """Return NCCL's communicator of these ranks, made once per process. All ranks call it.

    Raises:
        Unavailable: NCCL is not installed.
    """
    if _nccl:
        return _nccl[0]
    nccl = nccl_module()
    if not nccl.available:
        raise Unavailable("needs NCCL, which CuPy does not find; pip install nvidia-nccl-cu13, or -cu12 for CUDA 12")
    number = communicator.broadcast(nccl.get_unique_id() if communicator.rank == 0 else None)
    _nccl.append(nccl.NcclCommunicator(communicator.size, number, communicator.rank))
    return _nccl[0]


class Gathered:
    """An input that is the same on all ranks. Each rank copies one piece from its host, and gets the others from other GPUs.

    Args:
        to: contiguous array on this rank's GPU.
        source: the whole input in page-locked memory.
        communicator: communicator of the ranks.
    """

    def __init__(self, to: Array, source: np.ndarray, communicator: BenchCommunicator) -> None:
        self._nccl = nccl_of(communicator)
        self._to, self._source = to, source
        self._piece = source.nbytes // communicator.size // _PIECE_BYTES * _PIECE_BYTES
        self._first = communicator.rank * self._piece
        self._gathered = communicator.size * self._piece  # each rank copies the remainder of an uneven split itself

    def copy(self, stream: Any) -> None:
        """Enqueue the copy of this rank's piece."""
        self._copy(self._first, self._piece, stream)
        self._copy(self._gathered, self._source.nbytes - self._gathered, stream)

    def gather(self, stream: Any) -> None:
        """Enqueue the all-gather of the other pieces, after the copies of all ranks."""
        at = self._to.data.ptr
        if self._piece:
            self._nccl.allGather(at + self._first, at, self._piece, nccl_module().NCCL_INT8, stream.ptr)

    def _copy(self, first: int, nbytes: int, stream: Any) -> None:
        if nbytes:
            to, source = self._to.data.ptr + first, self._source.ctypes.data + first
            runtime.memcpyAsync(to, source, nbytes, runtime.memcpyHostToDevice, stream.ptr)
