"""What the MPI launcher starts as every rank. Rank 0 answers the recorder, as a child process alone does; the others follow it.

Ranks wait for one another without a processor's time, except at the barrier before a sample. A rank whose code raises says so to rank
0; where rank 0 does not hear it, as it waits for that very rank in some collective, the rank tells the launcher and ends all.
"""

import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final

import numpy as np
from mpi4py import MPI
from threadpoolctl import threadpool_limits

from warpladder.collectors.core.bench import MakeBench
from warpladder.collectors.core.collector import Collector
from warpladder.collectors.core.jobs import Job
from warpladder.collectors.core.measure import classify
from warpladder.collectors.core.messages import DescribeAllReduce, Refused
from warpladder.collectors.core.worker import serve
from warpladder.collectors.ranks.launchers import (
    FOLDER_VARIABLE,
    ISSUED,
    MARK,
    PROGRESS_FILE,
    RANKS,
    SOCKET_FILE,
    RanksStarted,
    Started,
    problem_of,
    processors_of,
)
from warpladder.collectors.ranks.mpi import MpiCommunicator
from warpladder.collectors.ranks.ranked_bench import Command, Failure, Local, RankedBench, answers_of, attempt, name_ranks

_COMMAND, _ANSWER = 1, 2
_SHORTEST_PAUSE_S: Final = 50e-6
_LONGEST_PAUSE_S: Final = 5e-3
#: How long ranks may be at work after one of them failed: they may wait for it for ever.
_GRACE_S: Final = 3.0
_FORWARDED_S: Final = 0.5  # for the launcher to pass on what a rank printed


@dataclass(frozen=True)
class Leave:
    """The last command."""

    def do(self, local: Local) -> None: ...


@dataclass(frozen=True)
class TimeAllReduce:
    """Time NCCL's average of so many bytes. Gives the times on this rank, in ns, and what the events around them take."""

    nbytes: int

    def do(self, local: Local) -> tuple[list[int], float]:
        from warpladder.collectors.cuda.allreduce import allreduce_ns
        from warpladder.collectors.cuda.device import current_device

        device = current_device()
        return allreduce_ns(device, local.communicator, self.nbytes), device.empty_kernels.event_overhead_ns


class World:
    """Every rank's end of what joins them; on rank 0 it is the `Ranks` of a RankedBench."""

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
            rank, answer = self._answer(deadline) if answers else (0, attempt(commands[0], self._local))
            if rank < 0:
                self.abort(*next((rank, each) for rank, each in answers.items() if isinstance(each, Failure)))
            answers[rank] = answer
            self.progress[RANKS + rank] = self.progress[ISSUED]
            if isinstance(answer, Failure):
                deadline = min(deadline, time.monotonic() + _GRACE_S)
        return [answers[rank] for rank in range(self.size)]

    def _answer(self, deadline: float) -> tuple[int, Any]:
        """The next answer and whose it is; rank -1 when none came in time."""
        return self._receive(MPI.ANY_SOURCE, _ANSWER, deadline)

    def follow(self) -> None:
        """On the other ranks: do what rank 0 says, until it says Leave."""
        watch = None
        while True:
            _, command = self._receive(0, _COMMAND)
            if watch:
                watch.cancel()
            if isinstance(command, Leave):
                return
            answer = attempt(command, self._local)
            self._comm.send(answer, 0, _ANSWER)
            if isinstance(answer, Failure):
                watch = threading.Timer(_GRACE_S, self.abort, (self.rank, answer))
                watch.daemon = True
                watch.start()

    def allreduce_ceiling(self, nbytes: int) -> dict[str, Any]:
        """On rank 0: the row of `ceilings` of an average of so many bytes by NCCL alone. Raises Failed or Unavailable."""
        from warpladder.collectors.cuda.allreduce import ceiling_row

        answers = answers_of(self, [TimeAllReduce(nbytes)] * self.size)
        return ceiling_row([times for times, _ in answers], answers[0][1], nbytes)

    def dismiss(self) -> None:
        """On rank 0: let the others leave."""
        for rank in range(1, self.size):
            self._comm.send(Leave(), rank, _COMMAND)

    def _receive(self, source: int, tag: int, deadline: float = float("inf")) -> tuple[int, Any]:
        began, status = time.monotonic(), MPI.Status()
        while (message := self._comm.improbe(source, tag, status)) is None:
            now = time.monotonic()
            if now > deadline:
                return -1, None
            time.sleep(min(_LONGEST_PAUSE_S, max(_SHORTEST_PAUSE_S, (now - began) / 20)))
        return status.Get_source(), message.recv()

    def abort(self, rank: int, failure: Failure) -> None:
        """End all ranks; the recorder reads why in what the launcher passes on."""
        print(f"{MARK}{failure.status} {name_ranks([rank])}: {failure.detail}", file=sys.stderr, flush=True)
        time.sleep(_FORWARDED_S)
        self._comm.Abort(1)


def _limit_threads(count: int) -> None:
    """Let BLAS and Numba, at work in host variants, take so many threads."""
    threadpool_limits(count)
    os.environ.setdefault("NUMBA_NUM_THREADS", str(count))


def _place(comm: MPI.Comm, collector: str) -> Started:
    """Take this rank's GPU and processors, by its number on its host."""
    started = Started(socket.gethostname(), os.getpid())
    here = comm.Split_type(MPI.COMM_TYPE_SHARED)
    number = here.rank
    _limit_threads(processors_of(number, here.allgather(os.sched_getaffinity(0))))
    if collector == "host_clock":
        return started
    try:
        import cupy
        from cupy.cuda import runtime

        count = runtime.getDeviceCount()
        device = number if count > 1 else 0  # a scheduler may show each rank only its own
        if device >= count:
            return replace(started, problem=f"{started.host} has {count} GPUs, fewer than ranks")
        cupy.cuda.Device(device).use()
        return replace(started, gpu=runtime.deviceGetPCIBusId(device))
    except Exception as error:
        return replace(started, problem=classify(error)[1])


def _connect(folder: Path, ranks: int) -> tuple[Connection, Any]:
    """The way to the recorder, and the progress shared with it."""
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(folder / SOCKET_FILE))
        connection = Connection(client.detach())
    return connection, np.memmap(folder / PROGRESS_FILE, np.int64, "r+", shape=(RANKS + ranks,))


def _lead(world: World, collector: Collector, started: Sequence[Started]) -> None:
    """Rank 0: answer the recorder until it wants no more."""
    folder = Path(os.environ.get(FOLDER_VARIABLE, ""))
    if not (folder / SOCKET_FILE).exists():
        text = f"runs on {started[0].host}, and the recorder on another host; name the recorder's first to the launcher"
        world.abort(0, Failure("launch_error", text))
    connection, world.progress = _connect(folder, world.size)
    problem = problem_of(started)
    connection.send(Refused(problem) if problem else RanksStarted(started))
    if problem:
        return
    makes = collector.make_benches()

    def benches_of(job: Job) -> Mapping[str, MakeBench]:
        ranked = {make: partial(RankedBench, world, job.workload, kind) for kind, make in makes.items()}
        return {kind: ranked[make] for kind, make in makes.items()}

    def ceilings_of(question: DescribeAllReduce) -> list[dict[str, Any]]:
        return [world.allreduce_ceiling(nbytes) for nbytes in question.sizes]

    serve(connection, world.progress, collector, benches_of=benches_of, ceilings_of=ceilings_of)


def main(collector: Collector) -> None:
    """Be one rank, until rank 0 is told to leave."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ.setdefault(
        "NCCL_NVLS_ENABLE", "0"
    )  # NVLink multicast is not to be had everywhere, and where it is half there NCCL hangs
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
    except BaseException as error:  # an exit too: the launcher would wait for the others, and they for this rank
        world.abort(comm.rank, Failure(*classify(error)))


def end() -> None:
    """End the process, once `main` has returned."""
    MPI.Finalize()
    # Past the destructors: NCCL's waits for all ranks, and for every CUDA graph that holds one of its kernels.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
