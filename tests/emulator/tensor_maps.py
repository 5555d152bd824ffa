"""Tensor maps as the emulator takes them, with what the driver refuses when it encodes one."""

import math
from typing import Final

import numpy as np

from tests.emulator.translation import EmulationError
from warpladder.workloads.api import TensorMap

_BYTES: Final = 128  # of the kernel's parameter
_TYPES: Final = ("float32", "uint16", "uint8")  # as Buffer.storage has BF16 and FP8
_PIECE: Final = 16  # bytes that the TMA copies at a time
_MOST_OF_BOX: Final = 256
_MOST_AXES: Final = 5


def argument_of_tensor_map(tensor_map: TensorMap, array: np.ndarray, number: int) -> str:
    """The words of a job for a tensor map of a buffer: its number, the swizzle, whether it rounds to TF32, bytes of an element, then extent
    and box of each axis, the innermost first.

    Raises:
        EmulationError: the driver would refuse the map, or the emulator lacks it.
    """
    axes = tensor_map.shape or array.shape
    if problem := _problem(tensor_map, axes, array):
        raise EmulationError(
            f"tensor map of {tensor_map.buffer}: boxes of {tensor_map.box} in axes of {tuple(axes)}: {problem}"
        )
    pairs = (word for pair in zip(reversed(axes), reversed(tensor_map.box), strict=True) for word in pair)
    of_map = (tensor_map.swizzle_bytes, int(tensor_map.tf32), array.itemsize)
    return " ".join(map(str, ("t", _BYTES, number, *of_map, len(axes), *pairs)))


def _problem(tensor_map: TensorMap, axes: tuple[int, ...], array: np.ndarray) -> str:
    """Why there is no such map; empty if there is one."""
    row, span = tensor_map.box[-1] * array.itemsize, tensor_map.swizzle_bytes
    if array.dtype.name not in (*_TYPES, "float16") or (tensor_map.tf32 and array.dtype != np.float32):
        return f"the buffer is of {array.dtype}; tensor maps are of {', '.join(_TYPES)} and float16, those of TF32 of float32"
    if not 1 <= len(axes) <= _MOST_AXES or len(tensor_map.box) != len(axes):
        return f"a map has 1 to {_MOST_AXES} axes, and a box as many"
    if math.prod(axes) > array.size:
        return f"the buffer has {array.size} elements"
    if len(axes) > 1 and axes[-1] * array.itemsize % _PIECE:
        return f"inner rows are a multiple of {_PIECE} bytes"
    if any(not 1 <= extent <= _MOST_OF_BOX for extent in tensor_map.box) or row % _PIECE:
        return f"a box has 1 to {_MOST_OF_BOX} elements along an axis, and inner rows of a multiple of {_PIECE} bytes"
    if span not in (0, 32, 64, 128) or (span and row > span):
        return "a swizzle spans 32, 64 or 128 bytes, and the inner row of a box is no longer"
    if span and row != span:
        return "the emulator takes swizzled boxes only whose inner row is as long as the swizzle"
    return ""
