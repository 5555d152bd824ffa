"""The NVTX ranges of a report as columns, and the process in Nsight's global ids."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from warpladder.data.arrays import Int64s


@dataclass(frozen=True)
class Ranges:
    """Columns of all ranges; the index of a range is its `range_id`.

    `thread` is Nsight's global thread id. The `end` of a range that was never closed is far in the future. `text` and `domain`
    are indices into `texts` and `domains`; `style` is an index into `schema.RANGE_STYLES`.
    """

    thread: Int64s
    start: Int64s
    end: Int64s
    closed: npt.NDArray[np.bool_]
    text: Int64s
    texts: list[str]
    domain: Int64s
    domains: list[str]
    parent: Int64s
    depth: Int64s
    style: Int64s

    def __len__(self) -> int:
        return len(self.start)


def process_of(global_id: Int64s) -> Int64s:
    """Extract the process id from a global thread or process id (8 bits hardware, 8 VM, 24 process, 24 thread)."""
    return (global_id >> 24) & 0xFF_FFFF


def thread_of(global_id: Int64s) -> Int64s:
    return global_id & 0xFF_FFFF
