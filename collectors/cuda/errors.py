"""The errors of outputs in the memory of a device, found in one launch of a kernel."""

import math
from functools import cache
from pathlib import Path
from typing import Any, Final

import cupy
import numpy as np

from warpladder.collectors.core.agreement import TILE
from warpladder.collectors.core.verify import PartOfErrors
from warpladder.collectors.cuda.compiler import compile_variant
from warpladder.collectors.cuda.launch import load
from warpladder.workloads.api import Array, CudaVariant

_SOURCE: Final = Path(__file__).parent / "kernels" / "errors.cu"
#: Kind and bytes of a number -> its type in C++.
_TYPES: Final = {
    "f4": "float", "f8": "double", "b1": "unsigned char",
    "i1": "signed char", "i2": "short", "i4": "int", "i8": "long long",
    "u1": "unsigned char", "u2": "unsigned short", "u4": "unsigned int", "u8": "unsigned long long",
}  # fmt: skip
_THREADS: Final = 256
_BLOCKS: Final = 4096


def kernel_of(actual: np.dtype[Any], right: np.dtype[Any]) -> str:
    """The kernel for outputs and references of these types, as NVRTC names it."""
    parts = 2 if actual.kind == "c" else 1
    types = (_TYPES[f"{'f' if parts == 2 else each.kind}{each.itemsize // parts}"] for each in (actual, right))
    return f"errors<{', '.join(types)}, {parts}, {TILE}>"


def first_infinite(dtype: np.dtype[Any]) -> float:
    """The least number that rounds to infinity in a type."""
    if dtype.kind not in "fc":
        return math.inf
    largest = np.finfo(dtype).max
    return float(largest) + float(largest - np.nextafter(largest, 0, dtype=largest.dtype)) / 2


def errors_of(arch: str, actual: Array, right: Array, exact: bool, lost_at: float, scale: float) -> PartOfErrors:
    """Return the errors of an output against its reference, on the device.

    Args:
        arch: of the current device, such as `sm_90`.
        actual, right: contiguous or not, of one dimension and the same size, which is not 0.
        exact: count what is different, else what is lost.
        lost_at: the part of itself by which an element is off that has lost its digits.
        scale: a power of two that all numbers are multiplied by.
    """
    infinite = first_infinite(actual.dtype)
    if actual.dtype == np.float16:
        actual = actual.astype(np.float32)
    tiles = -(-actual.size // TILE)
    squares, totals = cupy.empty((2, tiles)), cupy.zeros(7, np.uint64)
    kernel = _loaded(arch, kernel_of(actual.dtype, right.dtype))
    arguments = (
        np.uint64(actual.size),
        np.float64(infinite),
        np.float64(scale),
        np.float64(lost_at),
        *squares,
        totals,
        totals[2:],
    )
    kernel((min(tiles, _BLOCKS),), (_THREADS,), (cupy.ascontiguousarray(actual), cupy.ascontiguousarray(right), *arguments))
    found = totals.get()
    largest_error, largest_reference = found[:2].view(np.float64).tolist()
    different, alike, lost, not_finite, finite = found[2:].tolist()
    counts = (different - alike if exact else 0, 0 if exact else lost, not_finite, finite)
    error_squared, reference_squared = squares.get()
    return error_squared, reference_squared, (largest_error / scale, largest_reference / scale), counts


@cache
def _loaded(arch: str, kernel: str) -> Any:
    variant = CudaVariant("errors", "errors", "ceiling", source=_SOURCE)
    return load(compile_variant(variant, (kernel,), arch))[kernel]
