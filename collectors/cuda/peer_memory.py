"""Scratch on the GPU of each rank that kernels of the other ranks write into: memory that processes of one host share (CUDA IPC)."""

import math
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import cupy
import numpy as np
from cupy.cuda import runtime

from warpladder.collectors.core.bench import BenchCommunicator, Unavailable
from warpladder.workloads.api import Array, Buffer, Buffers, Launch, WorkloadError
from warpladder.workloads.declare.launches import MOST_RANKS, PeerMemory

#: `PeerMemory` of `workloads/peer_memory.cuh`.
_STRUCTURE: Final = np.dtype([("of", np.uint64, (MOST_RANKS,)), ("rank", np.int32), ("ranks", np.int32)])
#: CUDA shares whole pages: smaller allocations would share one.
_PAGE_BYTES: Final = 2 << 20


@dataclass(frozen=True)
class _Shared:
    """Memory that all ranks may write. It stays until the process ends, as the others cannot tell when they are done with it."""

    array: Array
    argument: np.ndarray


_shared: Final[dict[int, _Shared]] = {}  # by address


def argument(array: Array) -> np.ndarray:
    """The structure that a kernel takes for an array; of a single process, unless `shared` has made it."""
    address = array.data.ptr
    return _shared[address].argument if address in _shared else _structure([address], 0)


def shared(launches: Sequence[Launch], declared: Mapping[str, Buffer], communicator: BenchCommunicator) -> Buffers:
    """Allocate the scratch that launches take as `PeerMemory`, once for each rank; nothing in a single process. All ranks call it.

    Raises:
        Unavailable: the GPUs cannot write each other's memory, or there are too many.
    """
    if communicator.size == 1:
        return {}
    names = dict.fromkeys(value.buffer for launch in launches for value in launch.args if isinstance(value, PeerMemory))
    return {name: _share(name, declared[name], communicator) for name in names}


def _share(name: str, buffer: Buffer, communicator: BenchCommunicator) -> Array:
    if not buffer.zeroed:
        raise WorkloadError(f"scratch {name} is written by all ranks; declare it zeroed")
    if communicator.size > MOST_RANKS:
        raise Unavailable(f"exchanges through memory of at most {MOST_RANKS} GPUs, and {communicator.size} share the case")
    shape = (communicator.size, *buffer.shape)
    array = cupy.ndarray(shape, buffer.storage, memptr=_pages(communicator.size * buffer.nbytes))
    own = socket.gethostname(), runtime.ipcGetMemHandle(array.data.ptr)
    addresses = []
    for rank, (host, handle) in enumerate(communicator.of_all(own)):  # no rank has written before all have zeroed theirs
        addresses.append(array.data.ptr if rank == communicator.rank else _opened(rank, host == own[0], handle))
    made = _shared[array.data.ptr] = _Shared(array, _structure(addresses, communicator.rank))
    return made.array


def _pages(nbytes: int) -> Any:
    """Zeroed memory of its own, of whole pages."""
    pages = math.ceil(nbytes / _PAGE_BYTES) * _PAGE_BYTES
    pointer = cupy.cuda.MemoryPointer(cupy.cuda.Memory(pages), 0)
    runtime.memset(pointer.ptr, 0, pages)
    runtime.deviceSynchronize()
    return pointer


def _opened(rank: int, is_here: bool, handle: bytes) -> int:
    if not is_here:
        raise Unavailable(f"writes the memory of other GPUs, and that of rank {rank} is on another host")
    try:
        return int(runtime.ipcOpenMemHandle(handle))
    except runtime.CUDARuntimeError as error:
        raise Unavailable(f"writes the memory of other GPUs, and CUDA does not open that of rank {rank}: {error}") from error


def _structure(addresses: Sequence[int], rank: int) -> np.ndarray:
    """An array without axes, which CuPy passes to a kernel by value."""
    structure = np.zeros((), _STRUCTURE)
    structure["of"][: len(addresses)] = addresses
    structure["rank"], structure["ranks"] = rank, len(addresses)
    return structure
