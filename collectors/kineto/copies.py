"""Kinds, memories and sizes of copies."""

import re
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from warpladder.data.arrays import NONE, Int64s, Launches, integers

#: Names of a copy, with the letters of its direction: `Memcpy HtoD (Pinned -> Device)`, `MemcpyD2H`, and `Memcpy M2D` of an XPU.
_LETTERS: Final = re.compile(r"(?<![A-Z])([HDAPMS])(?:to|2)([HDAPMS])(?![A-Za-z])")
#: `CopyHostToDevice` of roctracer, `MEMORY_COPY_HOST_TO_DEVICE` of rocprofiler, `hipMemcpyHostToDevice`.
_WORDS: Final = re.compile(r"(?i)(host|device|peer)_?to_?(host|device|peer)")
_MEMORY_PAIR: Final = re.compile(r"([\w ]+) ?-> ?([\w ]+)")
_MEMORY_DETAILS: Final = re.compile(r"kind_src:(\w+) kind_dst:(\w+)")
#: Kinds of copies by letters: host, device, array, peer, `M` for memory of the host that CUDA or an XPU does not know, `S` for what the host
#: shares with the device.
_KINDS: Final = {
    **dict.fromkeys(("HD", "HA", "MD", "MS", "HS"), "h2d"),
    **dict.fromkeys(("DH", "AH", "DM", "SM", "SH"), "d2h"),
    **dict.fromkeys(("DD", "AA", "AD", "DA", "DS", "SD", "SS"), "d2d"),
    **dict.fromkeys(("HH", "MH", "HM", "MM"), "h2h"),
    "PP": "p2p",
}
#: Memories by the words of traces, with their letter.
_MEMORIES: Final = {
    "pageable": ("pageable", "H"),
    "pinned": ("pinned", "H"),
    "device": ("device", "D"),
    "array": ("array", "A"),
    "managed": ("managed", "S"),
    "memory": ("pageable", "H"),
    "shared": ("managed", "S"),
}
_UNKNOWN: Final = (None, "")


class Copy(NamedTuple):
    """The kind of a copy, and the memories that it is from and to. None where it is not known."""

    kind: str | None
    source: str | None = None
    target: str | None = None


def copy_of(name: str, details: str = "") -> Copy:
    """A copy from its name, or from the details in its arguments."""
    pair = _MEMORY_PAIR.search(name.partition("(")[2]) or _MEMORY_DETAILS.search(details)
    (source, begin), (target, end) = (
        _MEMORIES.get(pair[side].strip().lower(), _UNKNOWN) if pair else _UNKNOWN for side in (1, 2)
    )
    for text in (name, details):
        found = _LETTERS.search(text) or _WORDS.search(text)
        if found:
            return Copy(_KINDS.get(f"{found[1][0]}{found[2][0]}".upper()), source, target)
    return Copy(_KINDS.get(begin + end), source, target)


class Sizes:
    """The sizes of copies and sets that a call names, as those of HIP do."""

    def __init__(self) -> None:
        self._parts: list[tuple[Int64s, Int64s, Int64s]] = []

    def gather(self, process: Int64s, correlation: pa.Array, size: pa.Array) -> None:
        """Add calls: codes of their processes, correlations and sizes, which are null where the call has none."""
        if size.null_count == len(size):
            return
        known = size.is_valid().to_numpy(zero_copy_only=False) & correlation.is_valid().to_numpy(zero_copy_only=False)
        columns = (integers(correlation), integers(size))
        self._parts.append((process[known], *(np.asarray(column[known], np.int64) for column in columns)))

    def filled(self, size: pa.Array, process: Int64s, correlation: pa.Array) -> pa.Array:
        """Sizes with the nulls replaced by those of the calls with the same correlation. Null stays null without such a call.

        Args:
            size: of copies or sets.
            process: code of the process of each.
            correlation: of each.
        """
        if not self._parts or not size.null_count:
            return size
        of_process, wanted, known = map(np.concatenate, zip(*self._parts, strict=True))
        found = np.append(known, NONE)[Launches(of_process, wanted).of(process, integers(correlation))]
        return pa.compute.if_else(size.is_null(), pa.array(found, mask=found < 0), size.cast(pa.int64()))
