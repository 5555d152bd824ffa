"""MPI launchers, and the recorder's view of the ranks that one has started."""

import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final

import numpy as np

from warpladder.collectors.core.children import (
    ENTRY,
    POLL_S,
    START_TIMEOUT_S,
    STOP_TIMEOUT_S,
    Child,
    ChildLost,
    Guarded,
    never,
    of_signal,
)
from warpladder.collectors.core.environment import has_module
from warpladder.collectors.core.messages import CELL, Refused
from warpladder.collectors.core.plan import PlanError
from warpladder.collectors.ranks.programs import LAUNCHERS, TOGETHER, launcher_program
from warpladder.collectors.ranks.ranked_bench import name_ranks
from warpladder.installation import IMPORT_ROOT, how_to_install

#: Environment variable that names a folder for rank 0, and the files in it.
FOLDER_VARIABLE: Final = "WARPLADDER_RANKS"
SOCKET_FILE: Final = "socket"
PROGRESS_FILE: Final = "progress"
_OUTPUT_FILE: Final = "output"
#: Indices in the progress array, after CELL and STEP: the number of commands that rank 0 has sent, and from RANKS on the number
#: that each rank has done.
ISSUED, RANKS = 2, 3
#: Prefix of the line that a failing rank prints before it ends: status, rank and detail.
MARK: Final = "warpladder: "

#: Without this option, Slurm lets the other ranks wait for a dead one.
_OPTIONS: Final = {"srun": ("--kill-on-bad-exit=1",)}
#: By default Open MPI 4 and 5 bind each rank to one core, which all threads of a host variant would share.
_UNBOUND: Final = {"OMPI_MCA_hwloc_base_binding_policy": "none", "PRTE_MCA_hwloc_default_binding_policy": "none"}
_LAST_WORDS: Final = 300
# MPICH prints the process id, Open MPI and Slurm the rank.
_DEAD_PROCESS: Final = re.compile(r"PID (\d+) RUNNING AT (\S+)")
_DEAD_RANK: Final = re.compile(r"process rank (\d+) with PID|\btasks? (\d+)[-,\d]*:")
# For a process on another host, MPICH reports the signal as exit code, plus 128 if it dumped core.
_DEADLY: Final = {signal.SIGILL, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM}
_SIGNAL: Final = re.compile(r"\(signal (\d+)\)|on\s+signal (\d+)|KILLED BY SIGNAL: (\d+)")
_EXIT_CODE: Final = re.compile(r"(?:EXIT CODE: |[Ee]xit(?:ed with exit)? code:? *)(\d+)")


@dataclass(frozen=True)
class Started:
    """A rank that has started.

    Attributes:
        host, pid: host name and process id.
        gpu: PCI bus number of its GPU; empty if it needs none.
        problem: why the rank cannot take part; empty if it can.
    """

    host: str
    pid: int
    gpu: str = ""
    problem: str = ""


@dataclass(frozen=True)
class Launcher:
    """A program that starts ranks.

    Attributes:
        name: `local` for this host alone, `mpirun`, or `srun`.
        arguments: further arguments of the launcher.
    """

    name: str = "local"
    arguments: tuple[str, ...] = ()

    @classmethod
    def parse(cls, name: str, arguments: str) -> "Launcher":
        """Make a launcher from the values of `--launcher` and `--launcher-args`. Raises PlanError."""
        if name not in LAUNCHERS:
            raise PlanError(f"{name}: no such launcher; choose {', '.join(LAUNCHERS)}")
        try:
            return cls(name, tuple(shlex.split(arguments)))
        except ValueError as error:
            raise PlanError(f"--launcher-args {arguments}: {error}; close it") from error

    @property
    def program(self) -> str | None:
        """Path of the launcher, on PATH or next to Python's executable (MPICH's package); None if it is missing."""
        return launcher_program(self.name)

    def command(self, ranks: int, collector: str) -> list[str]:
        """Return the command line that starts this number of ranks."""
        program = self.program or LAUNCHERS[self.name]
        options = _OPTIONS.get(self.name, ())
        return [program, "-n", str(ranks), *options, *self.arguments, sys.executable, "-m", ENTRY, "rank", collector]

    def start(self, collector: str, ranks: int, check: Callable[[], None]) -> "RankedChild":
        """Start this number of ranks; see `RankedChild`."""
        return RankedChild(self, collector, ranks, check)

    def check(self, ranks: int, collector: str) -> None:
        """Raise PlanError if several ranks cannot be started here. The message says what to do."""
        option = "--ranks" if collector == "host_clock" else "--gpus"
        if collector not in TOGETHER:
            raise PlanError(
                f"--collector {collector}: sees only one process; with {option} {ranks} choose {' or '.join(TOGETHER)}"
            )
        if not has_module("mpi4py"):
            raise PlanError(f"{option} {ranks}: mpi4py is not installed; {how_to_install('mpi')}")
        if self.program is None:
            raise PlanError(
                f"--launcher {self.name}: {LAUNCHERS[self.name]} is not on PATH; {how_to_install('mpi')}, "
                "or load your cluster's MPI"
            )
        if collector != "host_clock" and self.name == "local" and (gpu_count := gpus_here()) < ranks:
            raise PlanError(
                f"--gpus {ranks}: this host has {gpu_count}; ask for as many, or name more hosts with --launcher mpirun"
            )


def gpus_here() -> int:
    """Return the number of GPUs of this host that a process started here may use. Creates no CUDA context."""
    import pynvml

    pynvml.nvmlInit()
    count: int = pynvml.nvmlDeviceGetCount()
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    return count if visible is None else min(count, len([word for word in visible.split(",") if word.strip()]))


def problem_of(ranks: Sequence[Started]) -> str:
    """Return why these ranks cannot work together (one has no GPU, or two have the same one); empty if they can."""
    users: dict[tuple[str, str], int] = {}
    for rank, started in enumerate(ranks):
        if started.problem:
            return f"{name_ranks([rank])}: {started.problem}"
        if started.gpu:
            other = users.setdefault((started.host, started.gpu), rank)
            if other != rank:
                return f"ranks {other}, {rank} have the same GPU of {started.host}; start as many on each host as it has GPUs"
    return ""


def processors_of(rank: int, may_use: Sequence[set[int]]) -> int:
    """Return the number of processors for a rank, such that ranks with common processors divide them.

    Args:
        rank: the rank's number on its host.
        may_use: for each rank on that host, the numbers of the processors that it may use.
    """
    own_processors = may_use[rank]
    sharing = sum(bool(own_processors & others) for others in may_use)
    return max(1, len(own_processors) // sharing)


class RankedChild(Child):
    """The ranks that share cases, under their launcher. Rank 0 answers. Raises ChildLost: the ranks did not start.
    `check`: called while they start; an exception that it raises ends the wait."""

    def __init__(self, launcher: Launcher, collector: str, ranks: int, check: Callable[[], None]) -> None:
        self._ranks: Sequence[Started] = ()
        # Only its owner may enter the folder, so that only our ranks can connect.
        self._folder = tempfile.TemporaryDirectory(prefix="warpladder-", ignore_cleanup_errors=True)
        folder = Path(self._folder.name)
        self._output = folder / _OUTPUT_FILE
        self.progress = np.memmap(folder / PROGRESS_FILE, np.int64, "w+", shape=(RANKS + ranks,))
        self.progress[CELL] = -1
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(folder / SOCKET_FILE))
            listener.listen(1)
            listener.settimeout(POLL_S)
            with self._output.open("wb") as output:
                self._process = Guarded(
                    launcher.command(ranks, collector),
                    cwd=IMPORT_ROOT,
                    env={**_UNBOUND, **os.environ, FOLDER_VARIABLE: str(folder)},
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                )
            try:
                self.connection = self._accept(listener, check)
                while not self.connection.poll(POLL_S):
                    check()
                answer: Sequence[Started] | Refused = self.connection.recv()
            except BaseException as error:
                lost = isinstance(error, EOFError | ConnectionError)
                why = self.why_dead() if lost else ("", "")
                self.stop()
                if lost:
                    raise ChildLost(None, *why) from error
                raise
        if isinstance(answer, Refused):
            self.stop()
            raise ChildLost(None, "launch_error", answer.why)
        self._ranks = answer

    def _accept(self, listener: socket.socket, check: Callable[[], None]) -> Connection:
        """Accept the connection of rank 0."""
        deadline = time.monotonic() + START_TIMEOUT_S
        while True:
            check()
            try:
                accepted, _ = listener.accept()
                return Connection(accepted.detach())
            except TimeoutError:
                if self._process.process.poll() is not None:
                    raise ConnectionError from None
                if time.monotonic() > deadline:
                    raise ChildLost(None, "timeout", f"the ranks did not start within {START_TIMEOUT_S:g} s") from None

    def where_it_hangs(self) -> str:
        issued, finished = int(self.progress[ISSUED]), [int(number) for number in self.progress[RANKS:]]
        if finished[0] < issued:  # rank 0 hangs itself, and does not see the others' progress
            return "rank 0: "
        behind = [rank for rank, number in enumerate(finished) if number < issued]
        return f"{name_ranks(behind)}: " if behind else ""

    def why_dead(self) -> tuple[str, str]:
        self._process.wait(STOP_TIMEOUT_S)
        return why_ended(self._output.read_text(errors="replace"), self._ranks, self._process.process.returncode)

    def dismiss(self) -> None:
        if hasattr(self, "connection"):
            self.connection.close()

    def stop(self, patience_s: float = 0.0, hurry: Callable[[], bool] = never) -> None:
        self.dismiss()
        if not self._process.wait(patience_s, hurry):
            self._process.tell(signal.SIGTERM)  # the launcher forwards it, to other hosts too
            self._process.wait(STOP_TIMEOUT_S, hurry)
        self._process.end()
        self._folder.cleanup()


def why_ended(output: str, ranks: Sequence[Started], exit_code: int | None) -> tuple[str, str]:
    """Find out from the launcher's output why the ranks ended. Returns status and detail for the cell at work.

    Args:
        output: output of the launcher and the ranks.
        ranks: host and process id of each rank; MPICH's messages name these.
    """
    marked = [line.split(MARK, 1)[1] for line in output.splitlines() if MARK in line]
    if marked:
        status, _, detail = marked[0].partition(" ")
        return status, detail
    process, dead_rank = _DEAD_PROCESS.search(output), _DEAD_RANK.search(output)
    rank = None
    if process:
        pid, host = int(process[1]), process[2]
        candidates = [rank for rank, started in enumerate(ranks) if started.pid == pid]
        rank = next(
            (rank for rank in candidates if ranks[rank].host.split(".")[0] == host.split(".")[0]), next(iter(candidates), None)
        )
    elif dead_rank:
        rank = int(dead_rank[1] or dead_rank[2])
    by_signal, code = _SIGNAL.search(output), _EXIT_CODE.search(output)
    if by_signal:
        status, text = of_signal(-int(next(filter(None, by_signal.groups()))))
    elif re.search(r"tasks? [-,\d]+: Killed", output):
        status, text = of_signal(-signal.SIGKILL)
    elif code:
        number = int(code[1])
        status, text = of_signal(-(number & 0x7F) if process and number & 0x7F in _DEADLY else number)
    else:
        words = " ".join(output.split())[-_LAST_WORDS:]
        return "launch_error", f"the ranks ended with exit code {exit_code}: {words or 'nothing was said'}"
    return status, text if rank is None else f"rank {rank}: {text}"
