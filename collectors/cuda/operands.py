"""Random operands of tensor cores, as bytes."""

from typing import Any

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]


def random_operands(kind: str, nbytes: int, seed: int = 0) -> Bytes:
    """Bytes of normally distributed numbers of a kind. Whole numbers have a standard deviation of 32."""
    size = 1 if kind in ("Fp8", "Int8") else 2 if kind in ("Fp16", "Bf16") else 4 if kind == "Tf32" else 8
    values = np.random.default_rng(seed).standard_normal(nbytes // size)
    found: npt.NDArray[Any]
    match kind:
        case "Bf16":
            found = (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
        case "Fp8":
            found = e4m3(values)
        case "Int8":
            found = np.clip(np.rint(32 * values), -127, 127).astype(np.int8)
        case _:
            found = values.astype({2: np.float16, 4: np.float32, 8: np.float64}[size])
    return found.view(np.uint8)


def e4m3(values: npt.NDArray[np.float64]) -> npt.NDArray[np.uint8]:
    """Numbers up to 448 as codes of E4M3: a sign, four bits of exponent and three of mantissa."""
    magnitude = np.minimum(np.abs(values), 448.0)
    mantissa, exponent = np.frexp(magnitude)
    normal = ((exponent + 6) << 3) + np.rint((2 * mantissa - 1) * 8).astype(np.int64)
    code = np.where(magnitude >= 2.0**-6, normal, np.rint(magnitude * 512).astype(np.int64))
    return np.asarray(code | (np.signbit(values) << 7), np.uint8)
