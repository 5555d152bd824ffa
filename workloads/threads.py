"""Work of a reference in parts, on all cores."""

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

_Part = TypeVar("_Part")


def in_threads(do: Callable[[_Part], object], parts: Iterable[_Part]) -> None:
    """Do each part in one of as many threads as the BLAS has, which computes the products of a part in that thread.

    One part after another on all threads of the BLAS takes longer: what lies between the products has one core, and small products
    are slow on many. Raises what the first part that fails raises.
    """
    from threadpoolctl import ThreadpoolController

    waiting = list(parts)
    blas = ThreadpoolController().select(user_api="blas")
    threads = max((library.num_threads for library in blas.lib_controllers), default=len(os.sched_getaffinity(0)))
    if min(threads, len(waiting)) < 2:
        for part in waiting:
            do(part)
        return
    with blas.limit(limits=1), ThreadPoolExecutor(min(threads, len(waiting))) as pool:
        for _ in pool.map(do, waiting):
            pass


def slices(length: int, step: int) -> Iterator[slice]:
    """The parts of `length` elements that have `step` each, and the rest."""
    return (slice(first, min(first + step, length)) for first in range(0, length, max(step, 1)))
