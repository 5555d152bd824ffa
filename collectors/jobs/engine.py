"""Runs the tasks of a job on processes of this machine."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, ProcessPoolExecutor, wait
from contextlib import suppress
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final, TypeVar

TaskT = TypeVar("TaskT")
DoneT = TypeVar("DoneT")

#: Memory of a worker: about so many times the text of its profile, and this much more.
_TIMES_TEXT: Final = 4
_OWN_BYTES: Final = 150 << 20
#: Bytes of text for one of a compressed trace.
_UNZIPPED: Final = 13
_SHARE_OF_MEMORY: Final = 0.8
#: Why nothing became of a task whose worker died.
KILLED: Final = "its process was killed twice, as of a lack of memory; give fewer --workers"


def text_bytes(path: Path) -> int:
    """About how many bytes of text a profile has."""
    size = path.stat().st_size
    return size * _UNZIPPED if path.suffix == ".gz" else size


def worker_count(paths: Sequence[Path]) -> int:
    """How many workers fit this machine's cores and memory."""
    need = _TIMES_TEXT * max(map(text_bytes, paths), default=0) + _OWN_BYTES
    fitting = int(_SHARE_OF_MEMORY * _free_memory() / need)
    return max(1, min(len(os.sched_getaffinity(0)), fitting, len(paths)))


def _free_memory() -> int:
    """Memory in bytes that processes can still take, within the limit of a container."""
    with suppress(OSError, ValueError, IndexError, StopIteration):
        lines = Path("/proc/meminfo").read_text().splitlines()
        free = next(int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable"))
        with suppress(OSError, ValueError):
            limit, used = (int(Path(f"/sys/fs/cgroup/memory.{name}").read_text()) for name in ("max", "current"))
            free = min(free, limit - used)
        return free
    return 4 << 30


def run_all(
    function: Callable[[TaskT], DoneT], tasks: Sequence[TaskT], workers: int, lost: Callable[[TaskT], DoneT]
) -> Iterator[DoneT]:
    """Yield what becomes of each task, in the order in which they end.

    A worker that dies breaks its pool. One of the first tasks that are left killed it, so each of these gets a pool of its own.

    Args:
        function: takes a task; a function of a module, since it travels to the workers.
        lost: the result of a task whose worker died each time that it was tried.
    """
    left = list(tasks)
    while left:
        ended = set()
        for place, result in _pooled(function, left, workers):
            ended.add(place)
            yield result
        left = [task for place, task in enumerate(left) if place not in ended]
        suspects, left = left[: workers + 1], left[workers + 1 :]  # a pool hands out one task more than it has workers
        for task in suspects:
            results = [result for _, result in _pooled(function, [task], 1)]
            yield results[0] if results else lost(task)


def _pooled(function: Callable[[TaskT], DoneT], tasks: Sequence[TaskT], workers: int) -> Iterator[tuple[int, DoneT]]:
    """The places and results of the tasks that end before a worker dies, in the order in which they end."""
    pool = ProcessPoolExecutor(min(workers, len(tasks)), mp_context=get_context("spawn"))
    futures: dict[Future[DoneT], int] = {}
    try:
        with suppress(BrokenExecutor):
            for place, task in enumerate(tasks):
                futures[pool.submit(function, task)] = place
        for future in _as_ended(futures):
            try:
                result = future.result()
            except BrokenExecutor:
                continue
            yield futures[future], result
    finally:
        pool.shutdown(cancel_futures=True)  # an interrupted import waits for the ranks under way alone


def _as_ended(futures: Mapping["Future[Any]", Any]) -> Iterator["Future[Any]"]:
    pending = set(futures)
    while pending:
        ended, pending = wait(pending, return_when=FIRST_COMPLETED)
        yield from ended
