"""Ready comparisons for outputs that need not be equal to the reference, number for number: ties, quantised numbers, free signs.

NumPy's functions are taken when this module is imported, so that a variant that replaces them does not change what is compared.
"""

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from reprlib import repr as shortened
from typing import Any

import numpy as np

from warpladder.workloads.declare.functions.arguments import called_with_axes
from warpladder.workloads.declare.functions.calls import place_of, raised_by
from warpladder.workloads.declare.workloads import WorkloadError

#: A fault, which is empty where outputs agree; or an output and its reference, to be compared within the tolerance.
Verdict = str | tuple[np.ndarray, np.ndarray]
_take, _sort, _lexsort, _cumsum, _expand = np.take_along_axis, np.sort, np.lexsort, np.cumsum, np.expand_dims
_isnan, _where, _errstate = np.isnan, np.where, np.errstate


@dataclass(frozen=True)
class Comparison:
    """How an output is compared with the reference.

    Attributes:
        text: how it is declared, for messages.
        verdict: takes the output, the reference and the inputs by name, as the reference takes them.
        function: the user's own, if it is one.
    """

    text: str
    verdict: Callable[[np.ndarray, np.ndarray, Mapping[str, Any]], Verdict]
    function: Callable[..., Any] | None = None

    def __repr__(self) -> str:
        return self.text


def allclose(*, rtol: float = 0.0, atol: float = 0.0) -> Comparison:
    """Each element is off by at most `atol`, and `rtol` times the reference's. NaN and infinity are equal to
    themselves. Raises WorkloadError: neither is above 0."""
    if not (rtol >= 0 and atol >= 0 and 0 < rtol + atol < math.inf):
        raise WorkloadError(f"allclose(rtol={rtol!r}, atol={atol!r}): give one of them a number above 0")

    def verdict(output: np.ndarray, reference: np.ndarray, inputs: Mapping[str, Any]) -> Verdict:
        if fault := _other_shape(output, reference):
            return fault
        with _errstate(invalid="ignore", over="ignore"):
            wide = output.astype(reference.dtype)
            error: np.ndarray = abs(wide - reference)
            close = (error <= atol + rtol * abs(reference)) | (wide == reference) | (_isnan(wide) & _isnan(reference))
        return _elements(~close, output, reference, f"are off by more than {atol:g} and {rtol:g} of the reference")

    return Comparison(f"allclose(rtol={rtol:g}, atol={atol:g})", verdict)


def off_by(most: int = 1, *, share: float = 1e-3) -> Comparison:
    """Whole numbers may be off by `most`, in at most this share of the elements: numbers that are rounded to the next
    integer. Raises WorkloadError: `most` is no positive whole number, or the share is not between 0 and 1."""
    if not (isinstance(most, int) and most > 0):
        raise WorkloadError(f"off_by({most!r}): give a whole number above 0")
    _check_share("off_by: share", share)

    def verdict(output: np.ndarray, reference: np.ndarray, inputs: Mapping[str, Any]) -> Verdict:
        if fault := _other_shape(output, reference) or _not_whole(output):
            return fault
        error = _distances(output, reference)
        if fault := _elements(error > most, output, reference, f"are off by more than {most}"):
            return fault
        allowed = max(1, int(share * error.size))
        return _elements(error > 0, output, reference, f"are off, where at most {allowed} may be", allowed)

    return Comparison(f"off_by({most}, share={share:g})", verdict)


def bins(*, moved: float = 1e-5) -> Comparison:
    """Counts along the last axis of which this share of all may be in a neighbouring bin. Their sum must be right.
    Raises WorkloadError: the share is not between 0 and 1."""
    _check_share("bins: moved", moved)

    def verdict(output: np.ndarray, reference: np.ndarray, inputs: Mapping[str, Any]) -> Verdict:
        if fault := _other_shape(output, reference) or _not_whole(output):
            return fault
        if not reference.size:
            return ""
        differences = output.astype(np.int64) - reference.astype(np.int64)
        total = reference.sum(axis=-1, dtype=np.int64)
        if wrong := int((differences.sum(axis=-1) != 0).sum()):
            return f"the sum of the counts is wrong in {wrong} of {total.size}"
        crossed = abs(_cumsum(differences, axis=-1)).max(axis=-1)
        allowed = (moved * abs(total)).clip(1).astype(np.int64)
        worst = int((crossed - allowed).argmax())
        if crossed.flat[worst] > allowed.flat[worst]:
            return f"{crossed.flat[worst]} numbers are on the other side of an edge, where at most {allowed.flat[worst]} may be"
        return ""

    return Comparison(f"bins(moved={moved:g})", verdict)


def order_of(values: str | Callable[..., Any], *, axis: int = -1) -> Comparison:
    """Indices that pick the same numbers as the reference's, in the same order: `argsort`, `argmax` and `topk`, whose
    ties may be broken in any way. No index may be there twice. Raises WorkloadError: `values` is neither a name nor
    a function.

    Args:
        values: the input that the indices count in, by name; or a function of the inputs that gives the array.
        axis: the axis of that array that they count along.
    """
    if not (isinstance(values, str) or callable(values)):
        raise WorkloadError(f"order_of({shortened(values)}): give the name of an input, or a function of the inputs")

    def verdict(output: np.ndarray, reference: np.ndarray, inputs: Mapping[str, Any]) -> Verdict:
        if fault := _other_shape(output, reference) or _not_whole(output):
            return fault
        picked_from = np.asarray(_named(values, inputs))
        if picked_from.ndim == output.ndim + 1:
            output, reference = (_expand(each, axis) for each in (output, reference))
        if picked_from.ndim != output.ndim:
            raise WorkloadError(
                f"order_of: the values have {picked_from.ndim} axes, and the indices {output.ndim}; give others"
            )
        count = picked_from.shape[axis]
        if fault := _elements((output < 0) | (output >= count), output, reference, f"are no index of {count} values"):
            return fault
        ordered = _sort(output, axis=axis)
        steps = ordered.take(range(1, ordered.shape[axis]), axis) == ordered.take(range(ordered.shape[axis] - 1), axis)
        if steps.any():
            return f"{int(steps.sum())} indices are there twice"
        picked, right = (_take(picked_from, each.astype(np.int64), axis) for each in (output, reference))
        return _elements(~((picked == right) | (picked != picked) & (right != right)), picked, right, "are other values")

    return Comparison(f"order_of({values if isinstance(values, str) else place_of(values)})", verdict)


def up_to_sign(*, axis: int = -2) -> Comparison:
    """Vectors that may be multiplied by -1, or by a complex number of absolute value 1: eigenvectors and singular vectors. They are compared
    within the tolerance.

    Args:
        axis: along which a vector lies: -2 for the columns of `eigh` and of the U of `svd`, -1 for the rows of its Vh.
    """

    def verdict(output: np.ndarray, reference: np.ndarray, inputs: Mapping[str, Any]) -> Verdict:
        if fault := _other_shape(output, reference):
            return fault
        along = (output.conj() * reference).sum(axis=axis, keepdims=True)
        size = abs(along)
        return output * _where(size > 0, along / _where(size > 0, size, 1), 1).astype(output.dtype), reference

    return Comparison(f"up_to_sign(axis={axis})", verdict)


def any_order() -> Comparison:
    """Numbers of one axis, or rows of two, in any order: a set, or eigenvalues. Sorted, they are compared within the tolerance."""

    def verdict(output: np.ndarray, reference: np.ndarray, inputs: Mapping[str, Any]) -> Verdict:
        if fault := _other_shape(output, reference):
            return fault
        if output.ndim > 2:
            raise WorkloadError(f"any_order: the output has {output.ndim} axes; give one or two")
        return _in_order(output), _in_order(reference)

    return Comparison("any_order()", verdict)


def own(function: Callable[..., Any]) -> Comparison:
    """A comparison by a user's function of the output and the reference, and of the inputs if it takes three arguments. It gives whether they
    agree, or the fault as a text that is empty where they do."""

    def verdict(output: np.ndarray, reference: np.ndarray, inputs: Mapping[str, Any]) -> Verdict:
        try:
            count = len(inspect.signature(function).parameters)
            found = function(output, reference, dict(inputs)) if count > 2 else function(output, reference)
        except Exception as error:
            raise raised_by(function, "compare", error) from error
        if isinstance(found, str):
            return found
        if isinstance(found, bool | np.bool_):
            return "" if found else f"{place_of(function)} gives False"
        raise WorkloadError(f"{place_of(function)} gives {shortened(found)}; return True or False, or the fault as a text")

    return Comparison(place_of(function), verdict, function)


def comparisons(compare: Any) -> Comparison | Mapping[str, Comparison] | None:
    """Comparisons of all outputs, or by output, from what a user gave. Raises WorkloadError."""
    if isinstance(compare, Mapping):
        return {str(name): found for name, each in compare.items() if (found := _one(f"compare of {name}", each))}
    return _one("compare", compare)


def _one(what: str, compare: Any) -> Comparison | None:
    if compare is None or isinstance(compare, Comparison):
        return compare
    if inspect.isfunction(compare) and compare.__module__ == __name__:
        raise WorkloadError(f"{what} is {compare.__name__}; call it: {compare.__name__}(...)")
    if callable(compare):
        return own(compare)
    raise WorkloadError(
        f"{what} is {shortened(compare)}; give one of warpladder.compare, such as off_by(1), or a function of output and reference"
    )


def _named(values: str | Callable[..., Any], inputs: Mapping[str, Any]) -> Any:
    if callable(values):
        try:
            return called_with_axes(values, inputs)
        except Exception as error:
            raise raised_by(values, "order_of", error) from error
    if values not in inputs:
        raise WorkloadError(f"order_of: {values} is no input; name one of {', '.join(inputs)}")
    return inputs[values]


def _check_share(what: str, share: Any) -> None:
    if not (isinstance(share, int | float) and 0 < share <= 1):
        raise WorkloadError(f"{what} is {shortened(share)}; give a number above 0, of at most 1")


def _other_shape(output: np.ndarray, reference: np.ndarray) -> str:
    return "" if output.shape == reference.shape else f"has shape {output.shape}, and the reference's has {reference.shape}"


def _not_whole(output: np.ndarray) -> str:
    return "" if output.dtype.kind in "iub" else f"holds {output.dtype}, and no whole numbers"


def _distances(output: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """|out - ref| of whole numbers, without overflow."""
    larger: np.ndarray = _where(output > reference, output, reference).astype(np.float64)
    smaller: np.ndarray = _where(output > reference, reference, output).astype(np.float64)
    distances: np.ndarray = larger - smaller
    return distances


def _elements(wrong: np.ndarray, output: np.ndarray, reference: np.ndarray, what: str, allowed: int = 0) -> str:
    """The fault if more elements than allowed are wrong, with the first of them."""
    count = int(wrong.sum())
    if count <= allowed:
        return ""
    first = int(wrong.reshape(-1).argmax())
    return f"{count} of {wrong.size} elements {what}: element {first} is {output.reshape(-1)[first]}, not {reference.reshape(-1)[first]}"


def _in_order(array: np.ndarray) -> np.ndarray:
    if array.ndim < 2:
        ordered: np.ndarray = _sort(array.reshape(-1))
        return ordered
    rows: np.ndarray = array[_lexsort(array.T[::-1])]
    return rows
