"""Compares a variant's outputs with references, and checks inputs and references. Works on NumPy and CuPy arrays."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Final

import numpy as np

from warpladder.workloads.api import Array, Buffer, Buffers, WorkloadError
from warpladder.workloads.small_floats import STORAGE, widened

#: Elements compared at once: few enough for the processor's caches, and enough to keep a device busy.
_HOST_CHUNK: Final = 1 << 16
_DEVICE_CHUNK: Final = 1 << 24


@dataclass(frozen=True)
class Verdict:
    """Outcome of a comparison with the reference.

    Attributes:
        rel_l2_error: norm(out - ref) / norm(ref), over all outputs; NaN if an element is not finite.
        max_rel_error: max |out - ref| / max |ref|, over all outputs; NaN if an element is not finite.
        verified_elements: number of elements compared.
        detail: the fault; empty if there is none.
    """

    ok: bool
    rel_l2_error: float
    max_rel_error: float
    verified_elements: int
    detail: str

    def columns(self, tolerance: float) -> dict[str, Any]:
        """Columns of `results`."""
        return {
            "rel_l2_error": self.rel_l2_error,
            "max_rel_error": self.max_rel_error,
            "tolerance": tolerance,
            "verified_elements": self.verified_elements,
        }


def poison(outputs: Mapping[str, Array], again: bool = False) -> None:
    """Fill outputs so that an element that is never written fails the comparison.

    Args:
        outputs: arrays on the host or the device.
        again: fill with large finite values instead of NaN; this detects code that writes only where it finds NaN.
    """
    for output in outputs.values():
        output.fill(_poison_of(output.dtype, again))


def _poison_of(dtype: np.dtype[Any], again: bool) -> Any:
    """NaN, or the smallest value of an integer type (unsigned: the largest); with `again` the largest (unsigned: half)."""
    if dtype.kind in "fc":
        return np.finfo(dtype).max if again else math.nan
    if dtype.kind == "b":
        return again
    limits = np.iinfo(dtype)
    if dtype.kind == "u":
        return limits.max // 2 if again else limits.max
    return limits.max if again else limits.min


def check_buffers(what: str, arrays: Any, declared: Mapping[str, Buffer]) -> None:
    """Check that arrays match the buffers that a workload declares.

    Args:
        what: the function that returned the arrays, for the message.
        arrays: arrays by name.
        declared: declared inputs or outputs, by name.

    Raises:
        WorkloadError: `arrays` is not a mapping, or a name or a shape differs.
    """
    if not isinstance(arrays, Mapping):
        raise WorkloadError(f"{what} gives {type(arrays).__name__}; make it a dict of arrays by name")
    if set(arrays) != set(declared):
        names = [", ".join(sorted(map(str, each))) or "nothing" for each in (arrays, declared)]
        raise WorkloadError(f"{what} gives {names[0]}, and `buffers` declares {names[1]}; make the names the same")
    for name, buffer in declared.items():
        shape = tuple(np.shape(arrays[name]))
        if shape != buffer.shape:
            raise WorkloadError(f"{what}: {name} has shape {shape}, and `buffers` declares {buffer.shape}")


def check_inputs(inputs: Any, declared: Mapping[str, Buffer]) -> None:
    """Check that inputs match the workload's declaration. Raises WorkloadError."""
    check_buffers("make_inputs", inputs, declared)
    for name, buffer in declared.items():
        if str(inputs[name].dtype) != buffer.storage:
            raise WorkloadError(f"make_inputs: {name} has type {inputs[name].dtype}, and `buffers` declares {buffer.dtype}")


def check_reference(reference: Any, declared: Mapping[str, Buffer], inputs: Buffers) -> None:
    """Check that a reference covers every element of every output.

    Args:
        reference: what the function for it returned.
        declared: outputs by name.
        inputs: that it was computed from.

    Raises:
        WorkloadError: no output is declared, or a reference is missing, has no element, has another shape or kind of type, or
            holds NaN or infinity.
    """
    check_buffers("the reference", reference, declared)
    if not declared:
        raise WorkloadError("`buffers` declares no output, so that nothing can be verified; declare what is computed")
    for name, buffer in declared.items():
        array = reference[name]
        if not array.size:
            raise WorkloadError(f"the reference: {name} has no element, so that nothing can be verified; give the case a size")
        if array.dtype.kind != buffer.kind or array.dtype.itemsize < np.dtype(buffer.storage).itemsize:
            raise WorkloadError(f"the reference: {name} has type {array.dtype}, which cannot verify {buffer.dtype}")
        if not np.isfinite(array).all():
            bad = next(
                (each for each, given in inputs.items() if given.dtype.kind in "fc" and not np.isfinite(given).all()), ""
            )
            why = f"as input {bad} does" if bad else "and no input does"
            raise WorkloadError(
                f"the reference: {name} holds NaN or infinity, {why}, so that nothing can be compared; make finite inputs and outputs"
            )


def doubts_of(reference: Buffers, declared: Mapping[str, Buffer], exact: bool) -> list[str]:
    """What is doubtful about a reference, as sentences.

    Args:
        reference: the right outputs by name.
        declared: outputs by name.
        exact: outputs must be equal to it.
    """
    found = []
    for name, buffer in declared.items():
        array = reference[name]
        if not exact and _is_narrow(array, buffer):
            found.append(
                f"the reference gives {name} with no more digits than the variants, so that its rounding counts as theirs; "
                "compute it in float64"
            )
        if not array.any():
            found.append(
                f"the reference's {name} is 0 everywhere, which a variant that computes nothing gives too; "
                "make inputs whose outputs differ from 0"
            )
    return found


def _is_narrow(array: np.ndarray, buffer: Buffer) -> bool:
    """Whether a reference of real or complex numbers has the precision of the output that it verifies, and not that of float64."""
    if array.dtype.kind not in "fc" or array.dtype.itemsize >= (8 if array.dtype.kind == "f" else 16):
        return False
    if buffer.dtype in STORAGE:  # whose values are given in float32, with the lower half of the bits 0
        return array.dtype.itemsize < 4 or not (array.view(np.uint32) & 0xFFFF).any()
    return array.dtype.itemsize <= np.dtype(buffer.storage).itemsize


def overlapping(outputs: Buffers, inputs: Buffers) -> tuple[str, str] | None:
    """Return the names of an output and an input that share memory; None if none do."""
    for output, first in outputs.items():
        for name, second in inputs.items():
            (start, end), (other_start, other_end) = _span(first), _span(second)
            if start < other_end and other_start < end:
                return output, name
    return None


def _span(array: Array) -> tuple[int, int]:
    """Return the addresses of an array's first byte and of the byte after its last; 0, 0 for an empty array."""
    if not array.size:
        return 0, 0
    address = array.ctypes.data if isinstance(array, np.ndarray) else array.data.ptr
    steps = [(length - 1) * stride for length, stride in zip(array.shape, array.strides, strict=True)]
    return address + sum(step for step in steps if step < 0), address + sum(step for step in steps if step > 0) + array.itemsize


def widened_outputs(outputs: Buffers, declared: Mapping[str, Buffer]) -> dict[str, Array]:
    """Return the outputs with the values of types that NumPy lacks in float32, and the others as they are."""
    return {name: widened(array, declared[name].dtype) if name in declared else array for name, array in outputs.items()}


def compare(outputs: Mapping[str, Array], references: Mapping[str, Array], tolerance: float) -> Verdict:
    """Compare every element of every output with its reference. Whole numbers and truth values must be equal.

    Args:
        outputs: the variant's outputs by name; arrays on the host or the device.
        references: reference outputs by name, of the same shapes, in float64 or an exact type, on the same device.
        tolerance: largest rel_l2_error that passes; 0 requires equality.

    Returns:
        The verdict. Its errors are those of the outputs that need not be equal, where there are some.
    """
    error_squared = reference_squared = largest_error = largest_reference = 0.0
    elements, different, faults = 0, 0, []
    exact = {name for name, reference in references.items() if tolerance == 0 or reference.dtype.kind in "iub"}
    for name, reference in references.items():
        output = outputs.get(name)
        if output is None:
            return _wrong(f"output {name} is missing")
        if tuple(output.shape) != tuple(reference.shape):
            return _wrong(f"output {name} has shape {tuple(output.shape)}, not {tuple(reference.shape)}")
        if output.dtype.kind != reference.dtype.kind or output.dtype.itemsize > reference.dtype.itemsize:
            return _wrong(f"output {name} has type {output.dtype}, and the reference {reference.dtype}")
        xp = _module_of(output)
        flat, expected = output.reshape(-1), reference.reshape(-1)
        wide = xp.complex128 if output.dtype.kind == "c" else xp.float64
        chunk = _HOST_CHUNK if xp is np else _DEVICE_CHUNK
        not_finite = 0
        for start in range(0, flat.size, chunk):
            found, right = flat[start : start + chunk], expected[start : start + chunk]
            if name in exact:
                different += int(xp.count_nonzero(found != right))
            part = right.astype(wide, copy=False)
            error, size = xp.abs(found.astype(wide) - part), xp.abs(part)
            with np.errstate(over="ignore"):  # the square of a large error may overflow to infinity, which fails the comparison
                squared = float(xp.square(error).sum())
            if not math.isfinite(squared):
                not_finite += int(xp.count_nonzero(~xp.isfinite(error)))
            if name in exact and len(exact) < len(references):
                continue
            error_squared += squared
            reference_squared += float(xp.square(size).sum())
            largest_error = max(largest_error, float(error.max()))
            largest_reference = max(largest_reference, float(size.max()))
        elements += flat.size
        if not_finite:
            faults.append(
                f"{not_finite} of {flat.size} elements of {name} are not finite: never written, or computed from others that are not"
            )
    if faults:
        return Verdict(False, math.nan, math.nan, elements, "; ".join(faults))
    rel_l2_error = math.sqrt(error_squared) / math.sqrt(reference_squared) if reference_squared else math.sqrt(error_squared)
    max_rel_error = largest_error / largest_reference if largest_reference else largest_error
    if not rel_l2_error <= tolerance:
        detail = f"relative L2 error {rel_l2_error:.2g} is above the tolerance {tolerance:.2g}"
    elif different:  # float64 cannot represent all differences of large integers
        of_what = "and the tolerance is 0" if tolerance == 0 else "and whole numbers must be"
        detail = f"{different} of {elements} elements are not equal to the reference, {of_what}"
    else:
        detail = ""
    return Verdict(not detail, rel_l2_error, max_rel_error, elements, detail)


def _wrong(detail: str) -> Verdict:
    return Verdict(False, math.nan, math.nan, 0, detail)


def _module_of(array: Array) -> ModuleType | Any:
    if isinstance(array, np.ndarray):
        return np
    import cupy

    return cupy.get_array_module(array)
