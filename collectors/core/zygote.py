"""A process that imports what variants need once, and forks the processes that measure.

PyTorch or Numba take seconds to import. The zygote imports them and runs no variant. Each process that measures is a copy of it as it was
after the imports. What a copy would not work with keeps it from copying: threads, other than those of OpenBLAS and pyarrow, which prepare for
it, and a GPU in use. Then it starts processes that import everything themselves.

Copies have the same addresses, and times differ between processes because addresses do. So each copy first puts a gap of random size
before the memory that it will get.
"""

import atexit
import mmap
import os
import pickle
import random
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from warpladder.collectors.core import guard

#: Bytes of the pickled modules and workloads, and of a request to fork.
MOST_BYTES: Final = 1 << 20
#: File descriptors of a request: the pipe to the recorder, the memory shared with it, the guard's lifeline, and where its exit code goes.
DESCRIPTORS: Final = 4
#: The thread with which the allocator of pyarrow gives memory back. It ends before a fork (jemalloc, background_thread.c).
_OF_JEMALLOC: Final = "jemalloc_bg_thd"
_THREAD_VARIABLES: Final = ("OPENBLAS_NUM_THREADS", "GOTO_NUM_THREADS", "OMP_NUM_THREADS")
_TASKS, _MAPS, _OPEN_FILES = Path("/proc/self/task"), Path("/proc/self/maps"), Path("/proc/self/fd")
#: Pages of the largest gap: large blocks are aligned to 2 MiB where the system gives pages of that size.
_MOST_PAGES: Final = 4096
_gaps: Final[list[Any]] = []


def main(requests: int, measure: Callable[[int, int], None], command: Callable[[int, int], Sequence[str]]) -> None:
    """Import what the first message names, and fork a process for each further one, until the recorder closes the socket.

    Args:
        measure: answers the recorder's questions; its arguments are the first two descriptors of a request.
        command: what starts a process that imports everything itself.
    """
    with socket.socket(fileno=requests) as connection:
        modules, workloads = pickle.loads(connection.recv(MOST_BYTES))  # noqa: S301 - the recorder sent it
        _import(modules, workloads)
        copies = not why_not()
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # guards tell the recorder themselves how their process ended
        while True:
            message, descriptors, *_ = socket.recv_fds(connection, 1, DESCRIPTORS)
            if not message:
                return
            if os.fork() == 0:
                connection.detach()
                os.close(requests)
                _guarded(descriptors, measure, command if not copies else None)
            for each in descriptors:
                os.close(each)


def _import(modules: Sequence[str], workloads: Sequence[Any]) -> None:
    """Import modules and load workloads. What fails fails again where it is used."""
    for step in [*(lambda name=name: import_module(name) for name in modules), *(each.load for each in workloads)]:
        with suppress(BaseException):
            step()
    if numba := sys.modules.get("numba"):
        with suppress(Exception):  # what takes longest in the first call of a function
            numba.core.registry.cpu_target.typing_context.refresh()
            numba.core.registry.cpu_target.target_context.refresh()


def why_not() -> str:
    """Why this process cannot be copied; empty if it can."""
    if not _TASKS.is_dir():
        return "the system does not tell of its threads"
    libraries = {line.split()[-1] for line in _MAPS.read_text().splitlines() if "openblas" in line}
    asked = next((value for name in _THREAD_VARIABLES if (value := os.environ.get(name, "")).isdigit()), "")
    of_blas = len(libraries) * max(int(asked or os.cpu_count() or 1) - 1, 0)
    threads = 0
    for each in _TASKS.iterdir():
        with suppress(OSError):  # it has ended
            threads += (each / "comm").read_text().strip() != _OF_JEMALLOC
    if threads > 1 + of_blas:
        return "it has threads"
    for number in _OPEN_FILES.iterdir():
        with suppress(OSError):
            if str(number.readlink()).startswith("/dev/nvidia"):
                return "it uses a GPU"
    return ""


def _guarded(
    descriptors: Sequence[int], measure: Callable[[int, int], None], command: Callable[[int, int], Sequence[str]] | None
) -> None:
    """Fork a process that measures, and guard it; see `guard`. Never returns."""
    code = 1
    try:
        connection, progress, lifeline, told = descriptors
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.set_inheritable(told, False)
        guard_process = os.getpid()
        guard.be_subreaper()
        woken = guard.wake_on_signals()
        child = os.fork()
        if child == 0:
            os.setpgid(0, 0)
            guard.die_with(guard_process)
            for each in (lifeline, told, *woken):
                os.close(each)
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            code = _measured(connection, progress, measure, command)
        else:
            with suppress(OSError):
                os.setpgid(child, child)
            guard.keep_open(lifeline, told, *woken)
            code = guard.watch_over(child, lifeline, woken[0])
            os.write(told, f"{code}".encode())
            code = 0
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException as error:
        sys.excepthook(type(error), error, error.__traceback__)
    finally:
        os._exit(code)


def _measured(
    connection: int, progress: int, measure: Callable[[int, int], None], command: Callable[[int, int], Sequence[str]] | None
) -> int:
    """Measure in this process. Returns its exit code."""
    if command:
        for each in (connection, progress):
            os.set_inheritable(each, True)
        words = command(connection, progress)
        os.execv(words[0], list(words))
    _gaps.append(mmap.mmap(-1, mmap.PAGESIZE * random.SystemRandom().randint(1, _MOST_PAGES)))
    measure(connection, progress)
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    return 0
