"""The least time in which a memory moves the bytes of a case, from measured ceilings: floors and checks share this rule.

A memory moves fewer bytes per second when reads and writes are mixed than when it only reads or only writes. So a case has the
rate of its own mix. Between two measured mixes, the time per byte is interpolated linearly by the share of bytes that are read,
because a kernel that first does the one mix and then the other takes exactly that time.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from warpladder.data.names import Ceiling

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
#: Shares of reads that differ by no more than this are one mix.
_SAME_MIX: Final = 0.005
_MEGA: Final = 1e6
#: The share of the L2 that may hold writes, in runs that did not measure it. In runs on an H200 with an L2 of 62.9 MB, no case
#: with a cold L2 was faster than without 22.1 MB of its writes.
_KEPT_SHARE: Final = 0.5


@dataclass(frozen=True)
class Memory:
    """The measured rates of one memory.

    Attributes:
        names, shares, ns_per_byte: the measured mixes, by rising share of bytes read; empty where none was measured.
        kept_bytes: bytes that a kernel writes and that need not have reached the memory when its clock stops, because the L2
            holds them.
    """

    names: tuple[str, ...]
    shares: tuple[float, ...]
    ns_per_byte: tuple[float, ...]
    kept_bytes: float = 0.0

    def keeping_at_most(self, kept_bytes: float) -> "Memory":
        """The same memory, where no more than so many bytes of writes may stay in the L2."""
        return replace(self, kept_bytes=min(self.kept_bytes, kept_bytes))

    def time_ns(self, read: npt.ArrayLike, written: npt.ArrayLike) -> _Floats:
        """The least time in ns for so many bytes read and written; NaN where no mix was measured.

        Reads come from the memory. Of the writes, `kept_bytes` may stay in the L2.
        """
        read, written = self._moved(read, written)
        if not self.names:
            return np.full(read.shape, np.nan)
        return (read + written) * np.interp(_share(read, written), self.shares, self.ns_per_byte)

    def named(self, read: npt.ArrayLike, written: npt.ArrayLike) -> npt.NDArray[np.object_]:
        """The ceilings that `time_ns` comes from: `device_copy`, or `device_copy and device_2_to_1` between two mixes."""
        shares = _share(*self._moved(read, written))
        return np.array([self._names_at(float(share)) for share in shares.ravel()], dtype=object).reshape(shares.shape)

    def _moved(self, read: npt.ArrayLike, written: npt.ArrayLike) -> tuple[_Floats, _Floats]:
        read, written = np.broadcast_arrays(np.asarray(read, float), np.asarray(written, float))
        return read, np.maximum(written - self.kept_bytes, 0)

    def _names_at(self, share: float) -> str:
        if not self.names or np.isnan(share):
            return ""
        nearest = int(np.argmin([abs(each - share) for each in self.shares]))
        if abs(self.shares[nearest] - share) <= _SAME_MIX or not self.shares[0] < share < self.shares[-1]:
            return self.names[nearest]
        above = int(np.searchsorted(self.shares, share))
        return f"{self.names[above - 1]} and {self.names[above]}"


def device_memory(ceilings: Mapping[str, float], l2_bytes: float | None) -> Memory:
    """The GPU's memory, of ceilings by name in their units.

    Args:
        l2_bytes: the size of the L2; None where it is not known. Half of it counts as kept where `l2_kept` was not measured.
    """
    kept = ceilings.get(Ceiling.L2_KEPT, np.nan)
    if not np.isnan(kept):
        return _memory(ceilings, DEVICE_MIXES, _MEGA * kept)
    return _memory(ceilings, DEVICE_MIXES, _KEPT_SHARE * float(np.nan_to_num(np.float64(l2_bytes or 0))))


def host_memory(ceilings: Mapping[str, float]) -> Memory:
    """The processor's memory, of ceilings by name in their units."""
    return _memory(ceilings, HOST_MIXES, 0.0)


def reads_and_writes(cases: Mapping[Any, Any] | pd.DataFrame) -> tuple[_Floats, _Floats]:
    """The bytes of `min_bytes` that are read, and those that are written.

    Inputs are read and outputs written, so that `h2d_bytes` and `d2h_bytes` tell the mix. Where both are 0 or null, half is read.

    Args:
        cases: columns `min_bytes`, `h2d_bytes`, `d2h_bytes` of cases; a frame, or a mapping of arrays or of one case's values.
    """
    least, inputs, outputs = (np.asarray(cases[name], float) for name in ("min_bytes", "h2d_bytes", "d2h_bytes"))
    share = _share(np.nan_to_num(inputs), np.nan_to_num(outputs))
    return least * share, least - least * share


def _memory(ceilings: Mapping[str, float], mixes: Mapping[str, float], kept_bytes: float) -> Memory:
    found = {name: share for name, share in mixes.items() if ceilings.get(name, np.nan) > 0}
    # One GB/s is one byte a nanosecond.
    return Memory(tuple(found), tuple(found.values()), tuple(1 / ceilings[name] for name in found), kept_bytes)


def _share(read: _Floats, written: _Floats) -> _Floats:
    """The share of the bytes that is read; a half where there are none."""
    total = read + written
    return np.divide(read, total, out=np.where(np.isnan(total), np.nan, 0.5), where=total > 0)
