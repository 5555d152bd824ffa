"""Makes descriptors of the tensor memory accelerator (TMA), which kernels take as arguments."""

import ctypes
import itertools
from collections.abc import Sequence

import numpy as np
from cuda.bindings import driver

from warpladder.workloads.api import TensorMap

_BYTES = 128
_SWIZZLES = {
    0: driver.CUtensorMapSwizzle.CU_TENSOR_MAP_SWIZZLE_NONE,
    32: driver.CUtensorMapSwizzle.CU_TENSOR_MAP_SWIZZLE_32B,
    64: driver.CUtensorMapSwizzle.CU_TENSOR_MAP_SWIZZLE_64B,
    128: driver.CUtensorMapSwizzle.CU_TENSOR_MAP_SWIZZLE_128B,
}
#: By the type of the array that holds the buffer: copies take bits as they are, but for TF32.
_TYPES = {
    "float32": driver.CUtensorMapDataType.CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
    "float16": driver.CUtensorMapDataType.CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
    "uint16": driver.CUtensorMapDataType.CU_TENSOR_MAP_DATA_TYPE_UINT16,
    "uint8": driver.CUtensorMapDataType.CU_TENSOR_MAP_DATA_TYPE_UINT8,
}
_TF32 = driver.CUtensorMapDataType.CU_TENSOR_MAP_DATA_TYPE_TFLOAT32


class TensorMapError(Exception):
    """The driver rejects a tensor map. The message says which one and why."""


def encode(tensor_map: TensorMap, shape: Sequence[int], address: int, dtype: str = "float32") -> np.ndarray:
    """Encode the descriptor of a contiguous buffer. Returns an array of one element of 128 bytes, which CuPy passes to
    the kernel by value. Raises TensorMapError: the driver rejects it.

    Args:
        tensor_map: gives the box.
        shape: the buffer's shape, the innermost axis last.
        address: its address on the device; a multiple of 16 bytes.
        dtype: type of the array that holds it.
    """
    axes = [int(extent) for extent in (tensor_map.shape or shape)]
    # The driver counts axes from the innermost one, and takes the strides of all other axes.
    strides = [np.dtype(dtype).itemsize * step for step in itertools.accumulate(axes[:0:-1], lambda a, b: a * b)]
    status, encoded = driver.cuTensorMapEncodeTiled(
        _TF32 if tensor_map.tf32 else _TYPES[dtype],
        len(axes),
        address,
        [driver.cuuint64_t(extent) for extent in reversed(axes)],
        [driver.cuuint64_t(stride) for stride in strides],
        [driver.cuuint32_t(extent) for extent in reversed(tensor_map.box)],
        [driver.cuuint32_t(1)] * len(axes),
        driver.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
        _SWIZZLES[tensor_map.swizzle_bytes],
        driver.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
        driver.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
    )
    if status != driver.CUresult.CUDA_SUCCESS:
        raise TensorMapError(
            f"tensor map of {tensor_map.buffer}: boxes of {tensor_map.box} in axes of {tuple(axes)} are refused ({status.name}); "
            "inner rows want a multiple of 16 bytes, boxes at most 256 along an axis and an inner row no longer than the swizzle"
        )
    return np.frombuffer(ctypes.string_at(encoded.getPtr(), _BYTES), np.dtype(f"V{_BYTES}")).reshape(())
