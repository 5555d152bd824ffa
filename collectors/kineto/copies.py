"""Directions, memories and sizes of copies."""

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
#: CUpti_ActivityMemcpyKind by letters. `M` is memory of the host that CUDA or an XPU does not know, `S` is shared with the device.
_CODES: Final = {
    "HD": 1, "DH": 2, "HA": 3, "AH": 4, "AA": 5, "AD": 6, "DA": 7, "DD": 8, "HH": 9, "PP": 10,
    "MD": 1, "MS": 1, "HS": 1, "DM": 2, "SM": 2, "SH": 2, "MH": 9, "HM": 9, "MM": 9, "DS": 8, "SD": 8, "SS": 8,
}  # fmt: skip
UNKNOWN: Final = 0
#: ENUM_CUDA_MEM_KIND by the words of memories.
_MEMORIES: Final = {"pageable": 0, "pinned": 1, "device": 2, "array": 3, "managed": 4, "memory": 0, "shared": 4}
_LETTER_OF: Final = {0: "H", 1: "H", 2: "D", 3: "A", 4: "S"}


class Copy(NamedTuple):
    """Codes of Nsight Systems for a copy's direction, and for the memories that it is from and to."""

    direction: int
    source: int | None = None
    target: int | None = None


def codes_of_copy(name: str, kind: str = "") -> Copy:
    """The codes of a copy from its name, or from the kind in its arguments. Another direction than those known is `UNKNOWN`."""
    pair = _MEMORY_PAIR.search(name.partition("(")[2]) or _MEMORY_DETAILS.search(kind)
    source, target = (_MEMORIES.get(pair[side].strip().lower()) for side in (1, 2)) if pair else (None, None)
    for text in (name, kind):
        if letters := _LETTERS.search(text):
            return Copy(_CODES.get(letters[1] + letters[2], UNKNOWN), source, target)
        if words := _WORDS.search(text):
            return Copy(_CODES.get((words[1][0] + words[2][0]).upper(), UNKNOWN), source, target)
    if source is not None and target is not None:
        return Copy(_CODES.get(_LETTER_OF[source] + _LETTER_OF[target], UNKNOWN), source, target)
    return Copy(UNKNOWN, source, target)


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
