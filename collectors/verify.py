"""Whether a variant's outputs are right. Works on NumPy and CuPy arrays alike."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Final

import numpy as np

from workloads.api import Array

_CHUNK: Final = 1 << 24


@dataclass(frozen=True)
class Verdict:
    """Outcome of a comparison with the reference.

    Attributes:
        rel_l2_error: norm(out - ref) / norm(ref), over all outputs; NaN where an element is not finite.
        max_rel_error: max |out - ref| / max |ref|, likewise.
        verified_elements: elements compared.
        detail: what is wrong; empty where nothing is.
    """

    ok: bool
    rel_l2_error: float
    max_rel_error: float
    verified_elements: int
    detail: str


def poison(outputs: Mapping[str, Array]) -> None:
    """Fill outputs so that an element nobody writes shows: NaN, or the least value of an integer type."""
    for output in outputs.values():
        output.fill(math.nan if output.dtype.kind == "f" else np.iinfo(output.dtype).min)


def compare(outputs: Mapping[str, Array], references: Mapping[str, Array], tolerance: float) -> Verdict:
    """Compare every element of every output with its reference.

    Args:
        outputs: what the variant wrote, by name; arrays of the host or of the device.
        references: what is right, float64 or exact, on the same side as the outputs.
        tolerance: largest rel_l2_error that passes; 0 asks for equality.
    """
    error_squared = reference_squared = largest_error = largest_reference = 0.0
    elements, faults = 0, []
    for name, reference in references.items():
        output = outputs.get(name)
        if output is None:
            return _wrong(f"output {name} is missing")
        if tuple(output.shape) != tuple(reference.shape):
            return _wrong(f"output {name} has shape {tuple(output.shape)}, not {tuple(reference.shape)}")
        if output.dtype.kind != reference.dtype.kind or output.dtype.itemsize > reference.dtype.itemsize:
            return _wrong(f"output {name} has type {output.dtype}, which is not that of the reference, {reference.dtype}")
        xp = _module_of(output)
        flat, expected = output.reshape(-1), reference.reshape(-1)
        not_finite = 0
        for start in range(0, flat.size, _CHUNK):
            part = expected[start : start + _CHUNK].astype(xp.float64)
            difference = flat[start : start + _CHUNK].astype(xp.float64) - part
            not_finite += int(xp.count_nonzero(~xp.isfinite(difference)))
            error_squared += float(xp.vdot(difference, difference))
            reference_squared += float(xp.vdot(part, part))
            largest_error = max(largest_error, float(xp.abs(difference).max()))
            largest_reference = max(largest_reference, float(xp.abs(part).max()))
        elements += flat.size
        if not_finite:
            faults.append(
                f"{not_finite} of {flat.size} elements of {name} are not finite: never written, or computed from such"
            )
    if faults:
        return Verdict(False, math.nan, math.nan, elements, "; ".join(faults))
    rel_l2_error = math.sqrt(error_squared) / math.sqrt(reference_squared) if reference_squared else math.sqrt(error_squared)
    max_rel_error = largest_error / largest_reference if largest_reference else largest_error
    ok = rel_l2_error <= tolerance
    detail = "" if ok else f"relative L2 error {rel_l2_error:.2g} is above the tolerance {tolerance:.2g}"
    return Verdict(ok, rel_l2_error, max_rel_error, elements, detail)


def _wrong(detail: str) -> Verdict:
    return Verdict(False, math.nan, math.nan, 0, detail)


def _module_of(array: Array) -> ModuleType | Any:
    if isinstance(array, np.ndarray):
        return np
    import cupy

    return cupy.get_array_module(array)
