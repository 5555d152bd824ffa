"""Outputs that were found right, kept so that those of later samples are compared with them byte for byte, which takes little time."""

import ctypes
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from warpladder.collectors.core.cells import Cell

#: Bytes of all outputs that are kept.
_MOST_BYTES: Final = 1 << 28
#: A cell that was right so often with other bytes, such as one that adds in any order, is compared in this way no more.
_DIFFERENT: Final = 4
_memcmp: Final = ctypes.CDLL(None).memcmp
_memcmp.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]


class KnownOutputs:
    """Right outputs of the cells of a case in host memory, by input set."""

    def __init__(self) -> None:
        self._kept: dict[tuple[Cell, int], Mapping[str, np.ndarray]] = {}
        self._bytes = 0
        self._differed: Counter[Cell] = Counter()

    def has(self, cell: Cell, number: int) -> bool:
        """Whether the cell's outputs for an input set are known, and are the same each time."""
        return (cell, number) in self._kept and self._differed[cell] < _DIFFERENT

    def are(self, cell: Cell, number: int, outputs: Any) -> bool:
        """Whether outputs are those that are known, byte for byte. The last output is compared first, so that no thread keeps ahead."""
        known = self._kept.get((cell, number), {})
        if not isinstance(outputs, Mapping) or outputs.keys() != known.keys():
            return False
        return all(_is_equal(outputs[name], known[name]) for name in reversed(list(known)))

    def keep(self, cell: Cell, number: int, outputs: Any) -> None:
        """Keep right outputs, if they are plain arrays and there is room; or count that they differ from the known ones."""
        if (cell, number) in self._kept:
            self._differed[cell] += not self.are(cell, number, outputs)
            return
        if not isinstance(outputs, Mapping) or not all(type(each) is np.ndarray for each in outputs.values()):
            return
        size = sum(array.nbytes for array in outputs.values())
        if self._bytes + size <= _MOST_BYTES:
            self._bytes += size
            self._kept[cell, number] = {name: array.copy(order="K") for name, array in outputs.items()}


def _is_equal(array: Any, known: np.ndarray) -> bool:
    if type(array) is not np.ndarray or array.dtype != known.dtype or array.shape != known.shape:
        return False
    if array.strides != known.strides or not (array.flags.c_contiguous or array.flags.f_contiguous):
        return bool(np.array_equal(array, known))
    half = known.nbytes // 2
    places = array.ctypes.data, known.ctypes.data
    return not (_memcmp(places[0] + half, places[1] + half, known.nbytes - half) or _memcmp(*places, half))
