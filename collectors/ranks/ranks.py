"""The process that the MPI launcher starts as every rank. Rank 0 answers the recorder; the other ranks execute its commands.

Waiting ranks sleep, except at the barrier before a sample. If a command raises on a rank, the rank reports it to rank 0. Rank 0
cannot receive the report while it waits for that rank in a collective operation; then the rank makes the launcher end all
ranks.
"""

import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from multiprocessing.connection import Connection
from operator import methodcaller
from pathlib import Path
from typing import Any, Final

import numpy as np
from mpi4py import MPI
from threadpoolctl import threadpool_limits

from warpladder.collectors.core.bench import MakeBench, classify
from warpladder.collectors.core.collector import Collector
from warpladder.collectors.core.messages import Refused
from warpladder.collectors.core.plan import Job
from warpladder.collectors.core.worker import serve
from warpladder.collectors.ranks.launchers import (
    FOLDER_VARIABLE,
    ISSUED,
    MARK,
    PROGRESS_FILE,
    RANKS,
    SOCKET_FILE,
    Started,
    problem_of,
    processors_of,
)
from warpladder.collectors.ranks.mpi import MpiCommunicator
from warpladder.collectors.ranks.ranked_bench import Command, Failure, Local, RankedBench, answers_of, attempt, name_ranks

_COMMAND, _ANSWER = 1, 2
_SHORTEST_PAUSE_S: Final = 50e-6
_LONGEST_PAUSE_S: Final = 5e-3
#: Seconds that other ranks may go on after one has failed; they may wait for it without end.
_GRACE_S: Final = 3.0
_FORWARDED_S: Final = 0.5  # seconds for the launcher to forward a rank's output


class World:
    """The connection between ranks, on each of them. On rank 0 it is the `Ranks` of a RankedBench."""

    def __init__(self, comm: MPI.Comm, makes: Mapping[str, MakeBench]) -> None:
        self._comm, self.rank, self.size = comm, comm.rank, comm.size
        self._local = Local(makes, MpiCommunicator(comm))
        self.progress: Any = np.zeros(RANKS + comm.size, np.int64)

    def all_do(self, commands: Sequence[Command]) -> list[Any]:
        """On rank 0: see `Ranks`."""
        self.progress[ISSUED] += 1
        for rank in range(1, self.size):
            self._comm.send(commands[rank], rank, _COMMAND)
        answers: dict[int, Any] = {}
        deadline = float("inf")
        while len(answers) < self.size:
            rank, answer = (
                self._receive(MPI.ANY_SOURCE, _ANSWER, deadline) if answers else (0, attempt(commands[0], self._local))
            )
            if rank < 0:
                self.abort(*next((rank, each) for rank, each in answers.items() if isinstance(each, Failure)))
            answers[rank] = answer
            self.progress[RANKS + rank] = self.progress[ISSUED]
            if isinstance(answer, Failure):
                deadline = min(deadline, time.monotonic() + _GRACE_S)
        return [answers[rank] for rank in range(self.size)]

    def follow(self) -> None:
        """On the other ranks: execute the commands of rank 0 until there is none."""
        watch = None
        while True:
            _, command = self._receive(0, _COMMAND)
            if watch:
                watch.cancel()
            if command is None:
                return
            answer = attempt(command, self._local)
            self._comm.send(answer, 0, _ANSWER)
            if isinstance(answer, Failure):
                watch = threading.Timer(_GRACE_S, self.abort, (self.rank, answer))
                watch.daemon = True
                watch.start()

    def allreduce_ceiling(self, nbytes: int) -> dict[str, Any]:
        """On rank 0: measure the row of `ceilings` for an NCCL average of `nbytes` bytes. Raises Failed or Unavailable."""
        from warpladder.collectors.cuda.allreduce import ceiling_row

        answers = answers_of(self, [methodcaller("time_all_reduce", nbytes)] * self.size)
        return ceiling_row([times for times, _ in answers], answers[0][1], nbytes)

    def dismiss(self) -> None:
        """On rank 0: let the others leave."""
        for rank in range(1, self.size):
            self._comm.send(None, rank, _COMMAND)

    def _receive(self, source: int, tag: int, deadline: float = float("inf")) -> tuple[int, Any]:
        """Return the next message and its rank; rank -1 if none arrives in time."""
        began, status = time.monotonic(), MPI.Status()
        while (message := self._comm.improbe(source, tag, status)) is None:
            now = time.monotonic()
            if now > deadline:
                return -1, None
            time.sleep(min(_LONGEST_PAUSE_S, max(_SHORTEST_PAUSE_S, (now - began) / 20)))
        return status.Get_source(), message.recv()

    def abort(self, rank: int, failure: Failure) -> None:
        """End all ranks. The recorder reads the reason in the output that the launcher forwards."""
        print(f"{MARK}{failure.status} {name_ranks([rank])}: {failure.detail}", file=sys.stderr, flush=True)
        time.sleep(_FORWARDED_S)
        self._comm.Abort(1)


def _place(comm: MPI.Comm, collector: str) -> Started:
    """Select this rank's GPU and processors by its number on its host."""
    started = Started(socket.gethostname(), os.getpid())
    host_ranks = comm.Split_type(MPI.COMM_TYPE_SHARED)
    number = host_ranks.rank
    threads = processors_of(number, host_ranks.allgather(os.sched_getaffinity(0)))
    threadpool_limits(threads)  # of BLAS and Numba, which host variants use
    os.environ.setdefault("NUMBA_NUM_THREADS", str(threads))
    if collector == "host_clock":
        return started
    try:
        import cupy
        from cupy.cuda import runtime

        count = runtime.getDeviceCount()
        device = number if count > 1 else 0  # a scheduler may hide the other ranks' GPUs
        if device >= count:
            return replace(started, problem=f"{started.host} has {count} GPUs, fewer than ranks")
        cupy.cuda.Device(device).use()
        return replace(started, gpu=runtime.deviceGetPCIBusId(device))
    except Exception as error:
        return replace(started, problem=classify(error)[1])


def _lead(world: World, collector: Collector, started: Sequence[Started]) -> None:
    """Rank 0: answer the recorder until it closes the connection."""
    folder = Path(os.environ.get(FOLDER_VARIABLE, ""))
    if not (folder / SOCKET_FILE).exists():
        text = f"runs on {started[0].host}, and the recorder on another host; name the recorder's first to the launcher"
        world.abort(0, Failure("launch_error", text))
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(folder / SOCKET_FILE))
        connection = Connection(client.detach())
    world.progress = np.memmap(folder / PROGRESS_FILE, np.int64, "r+", shape=(RANKS + world.size,))
    problem = problem_of(started)
    connection.send(Refused(problem) if problem else list(started))
    if problem:
        return
    makes = collector.make_benches()

    def benches_of(job: Job) -> Mapping[str, MakeBench]:
        ranked = {make: partial(RankedBench, world, job.workload, kind) for kind, make in makes.items()}
        return {kind: ranked[make] for kind, make in makes.items()}

    def ceilings_of(sizes: Sequence[int]) -> list[dict[str, Any]]:
        return [world.allreduce_ceiling(nbytes) for nbytes in sizes]

    serve(connection, world.progress, collector, benches_of=benches_of, ceilings_of=ceilings_of)


def main(collector: Collector) -> None:
    """Run one rank until the recorder ends rank 0."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # NVLink multicast is not available everywhere, and NCCL hangs if only part of it is.
    os.environ.setdefault("NCCL_NVLS_ENABLE", "0")
    comm = MPI.COMM_WORLD
    world = World(comm, collector.make_benches())
    try:
        started = comm.gather(_place(comm, collector.name))
        if started is None:
            world.follow()
        else:
            try:
                _lead(world, collector, started)
            finally:
                world.dismiss()
    except BaseException as error:  # SystemExit too: otherwise launcher and ranks wait for ever
        world.abort(comm.rank, Failure(*classify(error)))


def end() -> None:
    """End the process, once `main` has returned."""
    MPI.Finalize()
    # Skip the destructors: NCCL's waits for all ranks, and for every CUDA graph that holds one of its kernels.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
