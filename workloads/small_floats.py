"""Floating-point types that NumPy and CuPy lack: bfloat16, and the two of 8 bits. A bench holds their bits as whole numbers."""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

#: Type, by the name that PyTorch and JAX give it -> the unsigned integers that hold its bits.
STORAGE: Final[Mapping[str, str]] = {"bfloat16": "uint16", "float8_e4m3fn": "uint8", "float8_e5m2": "uint8"}


def widened(bits: Any, dtype: str) -> Any:
    """The values of an array in float32, which holds all of them exactly. Another type's array is returned as it is.

    Formats: bfloat16 is the upper half of IEEE binary32, and E5M2 that of binary16. E4M3 has a bias of 7, no infinity, and NaN
    where all bits but the sign are set (Micikevicius et al., "FP8 Formats for Deep Learning", 2022).

    Args:
        bits: a NumPy or CuPy array of the type's `STORAGE`.
        dtype: name of the type.
    """
    match dtype:
        case "bfloat16":
            return (bits.astype(np.uint32) << 16).view(np.float32)
        case "float8_e5m2":
            return (bits.astype(np.uint16) << 8).view(np.float16).astype(np.float32)
        case "float8_e4m3fn":
            exponent, mantissa = (bits >> 3) & 15, (bits & 7).astype(np.float32)
            size = np.ldexp(mantissa + np.float32(8) * (exponent > 0), np.maximum(exponent, 1).astype(np.int32) - 10)
            size = np.where((bits & 127) == 127, np.float32(np.nan), size)
            return np.where(bits >> 7, -size, size)
    return bits
