"""The communicator of ranks that an MPI launcher started."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from mpi4py import MPI


class MpiCommunicator:
    """See `warpladder.collectors.core.bench.BenchCommunicator`.

    Args:
        comm: communicator of all ranks. Collectives use a duplicate of it, which all ranks make at the same time.
    """

    def __init__(self, comm: MPI.Comm) -> None:
        self._comm = comm.Dup()
        self.rank, self.size = comm.rank, comm.size

    def wait(self) -> None:
        self._comm.Barrier()

    def largest(self, value: int) -> int:
        return int(self._comm.allreduce(value, MPI.MAX))

    def of_all(self, value: Any) -> list[Any]:
        return list(self._comm.allgather(value))

    def broadcast(self, value: Any) -> Any:
        return self._comm.bcast(value)

    def average(self, arrays: Sequence[np.ndarray]) -> None:
        for array in arrays:
            self._comm.Allreduce(MPI.IN_PLACE, array)
            array /= self.size
