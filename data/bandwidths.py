"""The least time in which a memory moves the bytes of a case, from measured ceilings: floors and checks share this rule.

A memory moves fewer bytes per second when reads and writes are mixed than when it only reads or only writes. So a case has the
time of its own mix. Between two measured mixes, the time for as many bytes is interpolated linearly by the share of them that are
read, because a kernel that first does the one mix and then the other takes exactly that time.

The L2 serves reads of what it holds, and keeps writes that have not reached the memory when the clock stops. So the time of a mix
is not in proportion to its bytes. Where a run measured it by size, it is that of the case's size (`Curve`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from warpladder.data.names import Ceiling, found_by_size

_Floats = npt.NDArray[np.float64]
#: Ceilings of device memory -> the share of their bytes that are read, rising.
DEVICE_MIXES: Final[Mapping[str, float]] = {
    Ceiling.DEVICE_WRITE: 0.0,
    Ceiling.DEVICE_1_TO_8: 1 / 9,
    Ceiling.DEVICE_1_TO_2: 1 / 3,
    Ceiling.DEVICE_COPY: 1 / 2,
    Ceiling.DEVICE_2_TO_1: 2 / 3,
    Ceiling.DEVICE_8_TO_1: 8 / 9,
    Ceiling.DEVICE_READ: 1.0,
}
#: The same of the processor's memory.
HOST_MIXES: Final[Mapping[str, float]] = {Ceiling.HOST_COPY: 1 / 2}
#: Bytes read and written by the copy whose rate is measured on the processor. Its caches may hold fewer.
HOST_COPY_BYTES: Final = 1 << 28
#: Shares of reads that differ by no more than this are one mix.
_SAME_MIX: Final = 0.005
_NS_PER_US: Final = 1000.0
#: In the names that `Memory.named` gives by curves.
BY_SIZE: Final = " by size"


@dataclass(frozen=True)
class Curve:
    """The least time of one mix, measured at some sizes.

    Attributes:
        sizes: bytes read and written, rising; at least one.
        times_ns: times at these sizes.
        ns_per_byte: of bytes beyond the largest size.
        empty_ns: of no bytes: an empty kernel.
    """

    sizes: tuple[float, ...]
    times_ns: tuple[float, ...]
    ns_per_byte: float
    empty_ns: float = 0.0

    def time_ns(self, nbytes: npt.ArrayLike) -> _Floats:
        """The least time in ns for so many bytes.

        Below the smallest size it is on the line from that of no bytes, and beyond the largest one `ns_per_byte` is added for each.
        Between two sizes it is on the line through them, or on the continued line of the sizes before or after where that is lower: where
        the bytes begin to exceed a cache, the curve bends below the line.
        """
        sizes, nbytes = np.asarray(self.sizes), np.asarray(nbytes, float)
        # Fewer bytes take no longer than more.
        times = np.minimum.accumulate(self.times_ns[::-1])[::-1]
        slopes = np.diff(times, append=np.nan) / np.diff(sizes, append=np.inf)
        at = np.clip(np.searchsorted(sizes, nbytes) - 1, 0, max(len(sizes) - 2, 0))
        after = np.minimum(at + 1, len(sizes) - 1)
        line = times[at] + slopes[at] * (nbytes - sizes[at])
        before = times[at] + np.where(at > 0, slopes[at - 1], np.nan) * (nbytes - sizes[at])
        behind = times[after] - slopes[after] * (sizes[after] - nbytes)
        # A continued line above the line between the sizes bounds nothing: the curve bends the other way there. So does none.
        bends = before <= line, behind <= line
        cases = [bends[0] & bends[1], *bends]
        between = np.maximum(np.select(cases, [np.maximum(before, behind), before, behind], line), times[at])
        beyond = times[-1] + self.ns_per_byte * (nbytes - sizes[-1])
        empty = min(self.empty_ns, times[0])
        below = empty + (times[0] - empty) * nbytes / sizes[0]
        return np.asarray(np.where(nbytes <= sizes[0], below, np.where(nbytes >= sizes[-1], beyond, between)))


@dataclass(frozen=True)
class Memory:
    """What one memory was measured to do.

    Attributes:
        names, shares, ns_per_byte: the measured mixes, by rising share of bytes read; empty where none was measured.
        curves: the times of the mixes by size; empty where they were not measured, so that `ns_per_byte` counts at every size.
        cache: of the curves, `cold` or `hot`; empty without curves.
    """

    names: tuple[str, ...]
    shares: tuple[float, ...]
    ns_per_byte: tuple[float, ...]
    curves: tuple[Curve, ...] = ()
    cache: str = ""

    def time_ns(self, read: npt.ArrayLike, written: npt.ArrayLike) -> _Floats:
        """The least time in ns for so many bytes read and written; NaN where no mix was measured."""
        read, written = np.broadcast_arrays(np.asarray(read, float), np.asarray(written, float))
        if not self.names:
            return np.full(read.shape, np.nan)
        total, share = read + written, _share(read, written)
        if not self.curves:
            return np.asarray(total * np.interp(share, self.shares, self.ns_per_byte))
        times = np.array([curve.time_ns(total) for curve in self.curves])
        places = np.interp(share, self.shares, range(len(self.shares)))
        known = np.nan_to_num(places)
        lower = np.floor(known).astype(int)
        upper = np.minimum(lower + 1, len(self.shares) - 1)
        first, second = (np.take_along_axis(times, each[np.newaxis], axis=0)[0] for each in (lower, upper))
        return np.asarray(first + (places - lower) * (second - first))

    def named(self, read: npt.ArrayLike, written: npt.ArrayLike) -> npt.NDArray[np.object_]:
        """The ceilings that `time_ns` comes from.

        `device_copy`, or `device_copy and device_2_to_1` between two mixes; by curves `device_copy by size (cold)`.
        """
        read, written = np.broadcast_arrays(np.asarray(read, float), np.asarray(written, float))
        shares, of = np.unique(_share(read, written), return_inverse=True)
        return np.array([self._names_at(float(share)) for share in shares], dtype=object)[of.ravel()].reshape(read.shape)

    def _names_at(self, share: float) -> str:
        if not self.names or np.isnan(share):
            return ""
        how = f"{BY_SIZE} ({self.cache})" if self.curves else ""
        nearest = int(np.argmin([abs(each - share) for each in self.shares]))
        if abs(self.shares[nearest] - share) <= _SAME_MIX or not self.shares[0] < share < self.shares[-1]:
            return f"{self.names[nearest]}{how}"
        above = int(np.searchsorted(self.shares, share))
        return f"{self.names[above - 1]} and {self.names[above]}{how}"


def device_memory(ceilings: Mapping[str, float], cache: str = "") -> Memory:
    """The GPU's memory, of ceilings by name in their units.

    Args:
        cache: `cold` or `hot`, for the times by size with such an L2. Without it, and in runs that did not measure them for each of
            their mixes, the memory has rates alone.
    """
    return _with_curves(_memory(ceilings, DEVICE_MIXES), ceilings, cache)


def empty_kernel_ns(ceilings: Mapping[str, float]) -> float:
    """The time in ns of a GPU's empty kernel, which no kernel falls below; 0 where it was not measured."""
    return _NS_PER_US * ceilings.get(Ceiling.GRAPH_NODE, 0.0)


def host_memory(ceilings: Mapping[str, float]) -> Memory:
    """The processor's memory, of ceilings by name in their units. Its operations are timed with warm caches alone."""
    return _with_curves(_memory(ceilings, HOST_MIXES), ceilings, "hot")


def _with_curves(memory: Memory, ceilings: Mapping[str, float], cache: str) -> Memory:
    """The memory with the times by size of each of its mixes, where all of them were measured."""
    found: dict[str, dict[int, float]] = {name: {} for name in memory.names}
    for name, value in ceilings.items():
        of = found_by_size(name)
        if of and of[0] in found and of[1] == cache and value > 0:
            found[of[0]][of[2]] = value
    if not found or not all(found.values()):
        return memory
    empty_ns = empty_kernel_ns(ceilings) if memory.names[0] in DEVICE_MIXES else 0.0
    curves = [
        Curve(
            tuple(map(float, sorted(by_size))),
            tuple(_NS_PER_US * by_size[size] for size in sorted(by_size)),
            ns_per_byte,
            empty_ns,
        )
        for by_size, ns_per_byte in zip(found.values(), memory.ns_per_byte, strict=True)
    ]
    return Memory(memory.names, memory.shares, memory.ns_per_byte, tuple(curves), cache)


def reads_and_writes(cases: Mapping[Any, Any] | pd.DataFrame) -> tuple[_Floats, _Floats]:
    """The bytes of `min_bytes` that are read, and those that are written.

    Inputs are read and outputs written, so that `h2d_bytes` and `d2h_bytes` tell the mix. Where both are 0 or null, half is read.
    Inputs that are resident on the device are in neither, so that such a case counts as reading less than it does.

    Args:
        cases: columns `min_bytes`, `h2d_bytes`, `d2h_bytes` of cases; a frame, or a mapping of arrays or of one case's values.
    """
    least, inputs, outputs = (np.asarray(cases[name], float) for name in ("min_bytes", "h2d_bytes", "d2h_bytes"))
    share = _share(np.nan_to_num(inputs), np.nan_to_num(outputs))
    return least * share, least - least * share


def _memory(ceilings: Mapping[str, float], mixes: Mapping[str, float]) -> Memory:
    found = {name: share for name, share in mixes.items() if ceilings.get(name, np.nan) > 0}
    # One GB/s is one byte a nanosecond.
    return Memory(tuple(found), tuple(found.values()), tuple(1 / ceilings[name] for name in found))


def _share(read: _Floats, written: _Floats) -> _Floats:
    """The share of the bytes that is read; a half where there are none."""
    total = read + written
    return np.divide(read, total, out=np.where(np.isnan(total), np.nan, 0.5), where=total > 0)
