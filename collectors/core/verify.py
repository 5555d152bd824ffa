"""Checks inputs and references, fills memory so that what is never written shows, and alters inputs. Works on NumPy and CuPy arrays."""

import math
from collections.abc import Callable, Collection, Mapping
from random import Random
from typing import Any, Final

import numpy as np

from warpladder.workloads.api import Array, Buffer, Buffers, WorkloadError
from warpladder.workloads.declare.cases import STORAGE, widened

#: The errors of some elements in a row: sums of squares of errors and of references by tile; the largest error and reference; numbers of
#: elements that are different, lost, not finite, and finite, as `agreement` counts them.
PartOfErrors = tuple[np.ndarray, np.ndarray, tuple[float, float], tuple[int, int, int, int]]
#: Gives them of an output and its reference on a device, with the other arguments of `agreement._errors_of_part`.
ErrorsOnDevice = Callable[[Array, Array, bool, float, float], PartOfErrors]
#: Elements compared at once: few enough for the processor's caches.
_CHUNK: Final = 1 << 16
#: Free blocks of a size that are filled, and bytes below which there are more of them.
_BLOCKS: Final = 3
_SMALL_BLOCKS: Final = 8
_SMALL_BYTES: Final = 1 << 20
#: Bytes of outputs that are copied before they are compared, and parts that each is copied in.
_MOST_COPIED: Final = 1 << 30
_PARTS: Final = 4
#: Outputs of two input sets must differ by this many times the tolerance, for verification to tell one from the other.
TELLS_APART: Final = 8.0


def poison(outputs: Mapping[str, Array], again: bool = False) -> None:
    """Fill outputs so that an element that is never written fails the comparison. `again`: fill with large finite
    values instead of NaN; this detects code that writes only where it finds NaN."""
    for output in outputs.values():
        output.fill(_poison_of(output.dtype, again))


def poison_free_memory(like: Mapping[str, Array], again: bool, allocate: Callable[[Array], Array]) -> None:
    """Fill memory that an allocator will hand out next, so that an output that is allocated and never written fails the comparison.

    Allocators give the block that was freed last. It may hold the right outputs of another variant.

    Args:
        like: outputs by name. Blocks of their sizes are filled.
        again: as for `poison`.
        allocate: gives an uninitialised array of the shape and type of another one.
    """
    for output in like.values():
        # NumPy itself keeps up to seven blocks of a size below 1 KiB.
        blocks = [allocate(output) for _ in range(_SMALL_BLOCKS if output.nbytes < _SMALL_BYTES else _BLOCKS)]
        poison(dict(enumerate(blocks)), again)  # type: ignore[arg-type]


def overwrite(outputs: Mapping[str, Array], inputs: Mapping[str, Array]) -> None:
    """Poison arrays that a variant allocated, before they are freed. Those that share memory with an input, and those that cannot be
    written, are left as they are."""
    for name, array in outputs.items():
        if hasattr(array, "dtype") and getattr(array.flags, "writeable", True) and not overlapping({name: array}, inputs):
            poison({name: array})


def snapshot(outputs: Mapping[str, Array]) -> Mapping[str, Array]:
    """Copies of outputs in host memory, so that a thread that a variant left behind cannot write ahead of the comparison. The last elements
    are copied first. Outputs on a device, and of more than 1 GiB, are compared as they are."""
    arrays = [array for array in outputs.values() if isinstance(array, np.ndarray)]
    if len(arrays) < len(outputs) or sum(array.nbytes for array in arrays) > _MOST_COPIED:
        return outputs
    copies = {name: np.empty(array.shape, array.dtype) for name, array in outputs.items()}
    for name, array in reversed(list(outputs.items())):
        copy = copies[name]
        if array.ndim and len(array) > _PARTS:
            for part in range(_PARTS - 1, -1, -1):
                rows = slice(part * len(array) // _PARTS, (part + 1) * len(array) // _PARTS)
                copy[rows] = array[rows]
        else:
            copy[...] = array
    return copies


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
    """Check that arrays match the buffers that a workload declares. Raises WorkloadError: `arrays` is not a mapping, or
    a name or a shape differs. `what`: the function that returned the arrays, for the message."""
    if not isinstance(arrays, Mapping):
        raise WorkloadError(f"{what} gives {type(arrays).__name__}; make it a dict of arrays by name")
    if set(arrays) != set(declared):
        names = [", ".join(sorted(map(str, each))) or "nothing" for each in (arrays, declared)]
        raise WorkloadError(f"{what} gives {names[0]}, and `buffers` declares {names[1]}; make the names the same")
    for name, buffer in declared.items():
        shape = tuple(np.shape(arrays[name]))
        if shape != buffer.shape and not (buffer.varies and len(shape) == len(buffer.shape)):
            raise WorkloadError(f"{what}: {name} has shape {shape}, and `buffers` declares {buffer.shape}")


def check_inputs(inputs: Any, declared: Mapping[str, Buffer]) -> None:
    """Check that inputs match the workload's declaration. Raises WorkloadError."""
    check_buffers("make_inputs", inputs, declared)
    for name, buffer in declared.items():
        if str(inputs[name].dtype) != buffer.storage:
            raise WorkloadError(f"make_inputs: {name} has type {inputs[name].dtype}, and `buffers` declares {buffer.dtype}")


def check_reference(reference: Any, declared: Mapping[str, Buffer], inputs: Buffers) -> None:
    """Check that a reference covers every element of every output. Raises WorkloadError: no output is declared, or a
    reference is missing, has another shape or kind of type, or has no finite element.

    Args:
        reference: what the function for it returned.
    """
    check_buffers("the reference", reference, declared)
    if not declared:
        raise WorkloadError("`buffers` declares no output, so that nothing can be verified; declare what is computed")
    for name, buffer in declared.items():
        array = reference[name]
        if array.dtype.kind != buffer.kind or array.dtype.itemsize < np.dtype(buffer.storage).itemsize:
            raise WorkloadError(f"the reference: {name} has type {array.dtype}, which cannot verify {buffer.dtype}")
        if array.size and array.dtype.kind in "fc" and not np.isfinite(array).any():
            bad = next(
                (each for each, values in inputs.items() if values.dtype.kind in "fc" and not np.isfinite(values).all()), ""
            )
            why = f"and input {bad} has such elements too" if bad else "and no input is"
            raise WorkloadError(
                f"the reference: {name} is NaN or infinite in every element, {why}, so that nothing can be compared; make finite outputs"
            )


def doubts_of(reference: Buffers, declared: Mapping[str, Buffer], exact: Collection[str]) -> list[str]:
    """The doubts about a reference, as sentences. `exact`: the outputs that must be equal to it."""
    doubts = []
    for name, buffer in declared.items():
        array = reference[name]
        if not array.size:
            doubts.append(
                f"the reference's {name} has no element, so that only its shape and type are compared; give the case a size"
            )
            continue
        if name not in exact and _is_narrow(array, buffer):
            doubts.append(
                f"the reference gives {name} with no more digits than the variants, so that its rounding counts as theirs; "
                "compute it in float64"
            )
        if not array.any() and (array.size > 1 or array.dtype.kind in "fc"):
            doubts.append(
                f"the reference's {name} is 0 everywhere, which a variant that computes nothing gives too; "
                "make inputs whose outputs differ from 0"
            )
    return doubts


def same_for_all_inputs(first: Buffers, distances: Mapping[str, float], tolerances: Mapping[str, float]) -> list[str]:
    """The outputs that are nearly the same for two sets of inputs, by name. Verification cannot tell whether a variant reads its inputs.

    They are the outputs of real numbers whose two references differ by less than `TELLS_APART` times the tolerance, in the relative L2
    norm. Outputs of whole numbers, a single one such as a sign, and those without an element are among them only if no other output differs.

    Args:
        first: reference of one of the sets, by name.
        distances: of the other reference from it, by name, as `distances` gives them.
        tolerances: of the variants, by output.
    """
    alike = [name for name in first if distances[name] <= TELLS_APART * tolerances[name]]
    exact = all(name in alike for name in first)
    return [name for name in alike if exact or not _tells_little(first[name])]


def _tells_little(output: np.ndarray) -> bool:
    """Whether an output may be the same for two sets of inputs by chance."""
    return output.dtype.kind not in "fc" or not output.size or (output.size == 1 and bool(output == np.rint(output)))


def distances(first: Buffers, second: Buffers) -> dict[str, float]:
    """The relative L2 distance of two references, by output."""
    return {name: _distance(first[name], second[name]) for name in first}


def _distance(first: np.ndarray, second: np.ndarray) -> float:
    """norm(second - first) / norm(first), of the elements that are finite in both; infinite for two shapes, or where others differ."""
    if first.shape != second.shape or not np.array_equal(np.isfinite(first), np.isfinite(second)):
        return math.inf
    wide = np.complex128 if first.dtype.kind == "c" else np.float64
    difference, size = 0.0, 0.0
    finite = np.isfinite(first)
    flat, other = (each.reshape(-1) if finite.all() else each[finite] for each in (first, second))
    chunks = [slice(start, start + _CHUNK) for start in range(0, flat.size, _CHUNK)]
    largest = max((float(np.abs(each[chunk]).max()) for each in (flat, other) for chunk in chunks), default=0.0)
    scale = math.ldexp(1.0, -math.frexp(largest)[1])
    for chunk in chunks:
        part, same = (each[chunk].astype(wide) * scale for each in (flat, other))
        same -= part
        difference += float(np.vdot(same, same).real)
        size += float(np.vdot(part, part).real)
    return math.sqrt(difference) / (math.sqrt(size) or 1.0)


def _is_narrow(array: np.ndarray, buffer: Buffer) -> bool:
    """Whether a reference of real or complex numbers has only the precision of the output that it verifies, and not the precision
    of float64."""
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


# -- altered inputs -------------------------------------------------------------------------------------------------------------
#
# About a quarter of the timed executions on a host read inputs that no code of the user has seen: real numbers are multiplied by a factor just
# below 1. Order, symmetry, signs, zeros, and branches that depend on the numbers, stay as they are, so that a function takes as long as on the
# set itself. One that kept the results of the set, or part of them, or finds them where the function for the inputs, the reference or another
# variant left them, takes longer.

#: The part of the timed executions whose inputs are altered.
SHARE: Final = 0.25
#: A number is made smaller by this part of itself to twice as much, and by at least so many units of its last place: more than
#: functions that compare within a tolerance, such as `numpy.allclose`, take for equal.
_PART: Final = 2.0**-13
_LAST_PLACES: Final = 4
#: Elements that tell whether an array holds only whole numbers, such as labels, which stay as they are.
_LOOKED_AT: Final = 4096


def part_of(chance: Random, is_altered: bool) -> float:
    """The part of itself by which a number is made smaller; 0 where inputs stay as they are."""
    return _PART * (1 + chance.random()) if is_altered else 0.0


def alterable(inputs: Mapping[str, np.ndarray]) -> tuple[str, ...]:
    """The names of the inputs that hold real numbers which are not all whole."""
    return tuple(name for name, array in inputs.items() if array.dtype.kind in "fc" and array.size and not _is_whole(array))


def _is_whole(array: np.ndarray) -> bool:
    flat = array.reshape(-1)
    some = flat[:: max(flat.size // _LOOKED_AT, 1)]
    with np.errstate(invalid="ignore"):
        return bool((np.isfinite(some) <= (some == np.rint(some))).all())


def multiply(array: np.ndarray, part: float) -> None:
    """Make the numbers of an array smaller by a part of themselves. With 0 they are written as they were, in the same time."""
    if part:
        part = max(part, _LAST_PLACES * float(np.finfo(array.dtype).eps))
    with np.errstate(all="ignore"):
        np.multiply(array, array.dtype.type(1.0 - part), out=array)


def altered(inputs: Mapping[str, np.ndarray], chance: Random) -> dict[str, np.ndarray]:
    """Inputs with other last digits. Arrays of whole numbers stay as they are."""
    others, part = dict(inputs), part_of(chance, True)
    for name in alterable(inputs):
        others[name] = inputs[name].copy()
        multiply(others[name], part)
    return others
