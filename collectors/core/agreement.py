"""Compares a variant's outputs with references, element for element, in host memory or, with a function of the bench, on a device.

NumPy's functions are taken when this module is imported, which is before a user's file is. So a variant that replaces them does not
change what is compared.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType, SimpleNamespace
from typing import Any, Final

import numpy as np

from warpladder.collectors.core.rounding import LEAST_LOST, Rounding
from warpladder.collectors.core.verify import ErrorsOnDevice, PartOfErrors
from warpladder.workloads.api import Array, Compared

#: Elements compared at once: few enough for the processor's caches.
_CHUNK: Final = 1 << 16
#: Elements of a tile: neighbours in the order of the output. Chunks are whole tiles. The root mean square of so many independent rounding
#: errors is within a tenth of the error of all, and an error that is the same for a whole row is at most a few times as large.
TILE: Final = 1024
#: Significant digits of an element that is wrong, and more where its text would be that of the right one.
_DIGITS: Final = (6, 9, 17)
#: How many times the tolerance the error of a tile may be, and the largest error over the largest element. Of all shipped results
#: the latter was at most 3.3 times the tolerance.
TILE_FACTOR: Final = 6.0
LARGEST_FACTOR: Final = 8.0
#: See `_lost_at`.
_LOST: Final = 4096.0
#: A reference this many times smaller than the largest one may be 0: float64 rounds at 1e-16 of what cancels out.
_ZERO: Final = 1e-10
#: Squares of numbers outside of this range are not numbers of float64.
_SQUARES: Final = (1e-140, 1e140)
_NAMES: Final = (
    "abs", "complex128", "concatenate", "count_nonzero", "float64", "isfinite", "isnan", "square", "where",
)  # fmt: skip
_NUMPY: Final = SimpleNamespace(**{name: getattr(np, name) for name in _NAMES})
_errstate: Final = np.errstate


@dataclass(frozen=True)
class Agreement:
    """Result of a comparison of outputs with the reference.

    Attributes:
        rel_l2_error: norm(out - ref) / norm(ref), of the output with the largest; NaN if an element is not finite.
        max_rel_error: max |out - ref| / max |ref|, of the output with the largest; NaN if an element is not finite.
        verified_elements: number of elements compared.
        detail: the fault; empty if there is none.
        tolerance: largest rel_l2_error that passes, of the output with the largest.
    """

    ok: bool
    rel_l2_error: float
    max_rel_error: float
    verified_elements: int
    detail: str
    tolerance: float = math.nan

    @property
    def columns(self) -> dict[str, Any]:
        """Columns of `results`."""
        return {
            "rel_l2_error": self.rel_l2_error,
            "max_rel_error": self.max_rel_error,
            "tolerance": self.tolerance,
            "verified_elements": self.verified_elements,
        }


def wrong(detail: str) -> Agreement:
    """The agreement of outputs that cannot be compared."""
    return Agreement(False, math.nan, math.nan, 0, detail)


@dataclass
class _Errors:
    """The errors of one output against its reference.

    Attributes:
        error_squared, reference_squared: sums of squares, one for each tile, of numbers that were multiplied by `scale`.
        largest_error, largest_reference: maxima of |out - ref| and |ref|.
        different: elements that are not equal, where they must be.
        lost: elements that have lost their digits, where they need not be equal; see `_lost_at`.
        not_finite: elements that are NaN or infinite where the reference is not.
        finite: elements that are not as in the reference, which is NaN or infinite there.
    """

    error_squared: np.ndarray
    reference_squared: np.ndarray
    elements: np.ndarray
    largest_error: float
    largest_reference: float
    different: int
    lost: int
    not_finite: int
    finite: int
    scale: float

    @property
    def count(self) -> int:
        return int(self.elements.sum())

    @property
    def reference_rms(self) -> float:
        return math.sqrt(self.reference_squared.sum() / max(self.count, 1)) / self.scale

    def _least(self, least_rms: float) -> float:
        return max(self.reference_rms, least_rms) * self.scale or 1.0

    def rel_l2(self, least_rms: float) -> float:
        """norm(out - ref) / norm(ref). The reference counts as one of at least this root mean square; 1 stands for 0."""
        return math.sqrt(self.error_squared.sum() / max(self.count, 1)) / self._least(least_rms)

    def of_tiles(self, least_rms: float) -> np.ndarray:
        """The same of each tile, whose reference counts as one of at least the root mean square of the whole output."""
        error, reference = ((each / self.elements) ** 0.5 for each in (self.error_squared, self.reference_squared))
        relative: np.ndarray = error / reference.clip(self._least(least_rms))
        return relative

    def max_rel(self, least_rms: float) -> float:
        """max |out - ref| / max |ref|, the latter at least `least_rms`."""
        return self.largest_error / (max(self.largest_reference, least_rms) or 1.0)

    def tolerated(self) -> float:
        """The least tolerance within which these errors are."""
        worst = float(self.of_tiles(0.0).max(initial=0.0))
        return max(self.rel_l2(0.0), worst / TILE_FACTOR, self.max_rel(0.0) / LARGEST_FACTOR)


def compare(
    outputs: Mapping[str, Array],
    references: Mapping[str, Array],
    tolerance: float | Mapping[str, float],
    rounding: Callable[[], Rounding | None] = lambda: None,
    comparisons: Mapping[str, Compared] = MappingProxyType({}),
    on_device: ErrorsOnDevice | None = None,
) -> Agreement:
    """Compare every element of every output with its reference. Whole numbers and truth values must be equal.

    Each output is judged by itself, in three ways: its relative L2 error must be within the tolerance, the error of each tile of
    `TILE` elements within `TILE_FACTOR` times the tolerance, and its largest error, over the largest element of the reference, within
    `LARGEST_FACTOR` times the tolerance. So an error in a few rows cannot hide in the norm of all. The error of a tile counts relative to
    the tile or to the whole output, whichever is larger: elements that cancel out are small, and their rounding errors are not.
    An element of which the reference is NaN or infinite must be the same.

    Where this finds a fault, or many elements without a right digit, another run of the reference tells what rounding explains.

    Args:
        outputs: the variant's outputs by name; arrays on the host or the device.
        references: reference outputs by name, of the same shapes, in float64 or an exact type, on the same device.
        tolerance: largest rel_l2_error that passes, of all outputs or by name; 0 requires equality.

    Returns:
        Whether the outputs agree, and their errors: the errors of the outputs that need not be equal, where there are some. NaN where
        all are compared in another way.
    """
    if comparisons:
        return _compared_otherwise(outputs, references, tolerance, rounding, comparisons, on_device)
    limits = {name: tolerance[name] if isinstance(tolerance, Mapping) else tolerance for name in references}
    exact = {name for name, reference in references.items() if limits[name] == 0 or reference.dtype.kind in "iub"}
    errors: dict[str, _Errors] = {}
    for name, reference in references.items():
        if fault := _misfit(name, outputs.get(name), reference):
            return wrong(fault)
        errors[name] = _errors(outputs[name], reference, name in exact, _lost_at(limits[name]), on_device=on_device)
    elements = sum(each.count for each in errors.values())
    if faults := [_not_alike(name, each) for name, each in errors.items() if each.not_finite or each.finite]:
        return Agreement(False, math.nan, math.nan, elements, "; ".join(faults), max(limits.values()))
    judged = {name: each for name, each in errors.items() if name not in exact}
    least = _least_rms(judged, lambda name: _is_zero_but_for_rounding(rounding(), name, references[name]))
    detail = ""
    for name, each in errors.items():
        own = outputs[name], references[name]
        if detail:
            break
        if name in exact:
            if each.different and not ((second := rounding()) and second.explains(name, *map(_on_host, own))):
                detail = _differing(name, *own, each, limits[name])
            continue
        where = f"{name}: " if len(judged) > 1 else ""
        detail = _above(where, each, least[name], limits[name])
        second = rounding() if detail else None
        while detail and second:
            limits[name] = max(limits[name], second.tolerance(_own_error(second, name, own[1])))
            detail = _above(where, each, least[name], limits[name])
            second = second.nudged()
        detail = detail and detail + _worst(name, *own)
        if not detail and each.lost >= max(LEAST_LOST, each.count / TILE) and (second := rounding()):
            detail = second.lost(name, _on_host(own[0]), _on_host(own[1]), TILE, _lost_at(limits[name]))
    told = judged or errors
    return Agreement(
        not detail,
        max(each.rel_l2(least.get(name, 0.0)) for name, each in told.items()),
        max(each.max_rel(least.get(name, 0.0)) for name, each in told.items()),
        elements,
        detail,
        max(limits[name] for name in told),
    )


def _compared_otherwise(
    outputs: Mapping[str, Array],
    references: Mapping[str, Array],
    tolerance: float | Mapping[str, float],
    rounding: Callable[[], Rounding | None],
    comparisons: Mapping[str, Compared],
    on_device: ErrorsOnDevice | None,
) -> Agreement:
    """The agreement of outputs of which some are compared in a way of their own, or brought into another form first."""
    within, right, elements = dict(outputs), dict(references), 0
    for name, comparison in comparisons.items():
        if name not in outputs:
            return wrong(f"output {name} is missing")
        verdict = comparison(_on_host(outputs[name]), _on_host(references[name]))
        if not isinstance(verdict, str):
            within[name], right[name] = verdict
        elif verdict:
            return wrong(f"{name}: {verdict}")
        else:
            elements += math.prod(references[name].shape)
            del right[name]
    if not right:
        return Agreement(True, math.nan, math.nan, elements, "")

    def in_that_form() -> Rounding | None:
        second = rounding()
        if second is None:
            return None
        others = {name: each for name, each in second.outputs.items() if name not in comparisons}
        for name in [name for name in comparisons if name in right and name in second.outputs]:
            verdict = comparisons[name](second.outputs[name], _on_host(references[name]))
            if not isinstance(verdict, str):
                others[name] = verdict[0]
        return replace(second, outputs=others)

    agreement = compare(within, right, tolerance, in_that_form, on_device=on_device)
    return replace(agreement, verified_elements=agreement.verified_elements + elements)


def _least_rms(judged: Mapping[str, _Errors], is_zero: Callable[[str], bool]) -> dict[str, float]:
    """The root mean square that each output counts as having at least: of the largest one for an output that is 0 but for the rounding
    of float64, such as a gradient that cancels out, and else 0."""
    largest = max((each.reference_rms for each in judged.values()), default=0.0)
    small = {name for name, each in judged.items() if each.reference_rms < _ZERO * largest and is_zero(name)}
    return {name: largest if name in small else 0.0 for name in judged}


def _is_zero_but_for_rounding(second: Rounding | None, name: str, reference: Array) -> bool:
    """Whether nothing of a small output is left in the other run. Without one it is taken to be so."""
    return second is None or name not in second.outputs or not _own_error(second, name, reference) < 0.5


def _own_error(second: Rounding, name: str, reference: Array) -> float:
    """The least tolerance within which the other run is; NaN where it tells nothing."""
    other, right = second.outputs.get(name), _on_host(reference)
    if other is None or other.shape != right.shape:
        return math.nan
    errors = _errors(other, right, False)
    return math.nan if errors.not_finite or errors.finite else errors.tolerated()


def _misfit(name: str, output: Array | None, reference: Array) -> str:
    """Why an output cannot be compared with its reference; empty if it can."""
    if output is None:
        return f"output {name} is missing"
    if tuple(output.shape) != tuple(reference.shape):
        cure = "transpose it" if sorted(output.shape) == sorted(reference.shape) else "make them the same"
        return f"output {name} has shape {tuple(output.shape)}, and the reference's has {tuple(reference.shape)}; {cure}"
    if output.dtype.kind != reference.dtype.kind or output.dtype.itemsize > reference.dtype.itemsize:
        return f"output {name} has type {output.dtype}, and the reference {reference.dtype}"
    return ""


def _not_alike(name: str, errors: _Errors) -> str:
    if errors.not_finite:
        counts = f"{errors.not_finite} of {errors.count} elements of {name}"
        return f"{counts} are not finite: never written, or computed from others that are not"
    return f"{errors.finite} of {errors.count} elements of {name} are not NaN or infinite as the reference's are"


def _differing(name: str, output: Array, reference: Array, errors: _Errors, tolerance: float) -> str:
    """Why outputs that must be equal are wrong."""
    actual, right = (_on_host(each).reshape(-1) for each in (output, reference))
    first = int((actual != right).argmax())
    of_what = "and the tolerance is 0" if tolerance == 0 and right.dtype.kind not in "iub" else "and whole numbers must be"
    return (
        f"{errors.different} of {errors.count} elements are not equal to the reference, {of_what}: "
        f"{_element(name, reference, first)} is {actual[first]}, not {right[first]}"
    )


def _worst(name: str, output: Array, reference: Array) -> str:
    """The element with the largest error: `; the most at y[3, 7]: 1.5, not 0.25`."""
    wide = _NUMPY.complex128 if reference.dtype.kind == "c" else _NUMPY.float64
    actual, right = (_on_host(each).reshape(-1) for each in (output, reference))
    most, worst = -1.0, 0
    for first in range(0, actual.size, _CHUNK):
        with _errstate(over="ignore", invalid="ignore"):
            error = _NUMPY.abs(actual[first : first + _CHUNK].astype(wide) - right[first : first + _CHUNK].astype(wide))
        error = _NUMPY.where(_NUMPY.isfinite(error), error, 0.0)
        if float(error.max()) > most:
            most, worst = float(error.max()), first + int(error.argmax())
    is_, not_ = _apart(wide(actual[worst]), wide(right[worst]))
    return f"; the most at {_element(name, reference, worst)}: {is_}, not {not_}"


def _apart(one: Any, other: Any) -> tuple[str, str]:
    """Two numbers, with as many digits as they need to differ."""
    digits = next((digits for digits in _DIGITS if f"{one:.{digits}g}" != f"{other:.{digits}g}"), _DIGITS[-1])
    return f"{one:.{digits}g}", f"{other:.{digits}g}"


def _element(name: str, reference: Array, place: int) -> str:
    """`y[3, 7]`, the element at a place in the order of memory; `y` of a scalar."""
    index = [str(int(each)) for each in np.unravel_index(place, reference.shape)]
    return f"{name}[{', '.join(index)}]" if index else name


def _above(where: str, errors: _Errors, least_rms: float, tolerance: float) -> str:
    """Why the errors of an output are too large; empty if they are not."""
    error = errors.rel_l2(least_rms)
    if not error <= tolerance:
        return f"{where}relative L2 error {error:.2g} is above the tolerance {tolerance:.2g}"
    if not errors.count:
        return ""
    tiles, limit = errors.of_tiles(least_rms), TILE_FACTOR * tolerance
    worst = int(tiles.argmax())
    if not tiles[worst] <= limit:
        count = int((tiles > limit).sum())
        first = worst * TILE
        return (
            f"{where}relative L2 error {tiles[worst]:.2g} of elements {first} to "
            f"{first + int(errors.elements[worst]) - 1} is above "
            f"{limit:.2g}, {TILE_FACTOR:g} times the tolerance, as in {count} of {len(tiles)} tiles of {TILE} elements"
        )
    largest, limit = errors.max_rel(least_rms), LARGEST_FACTOR * tolerance
    if not largest <= limit:
        return f"{where}the largest error, {largest:.2g} of the largest element, is above {limit:.2g}, {LARGEST_FACTOR:g} times the tolerance"
    return ""


def _lost_at(tolerance: float) -> float:
    """The part of itself by which an element is off that has lost its digits: of errors as large as the tolerance allows, evenly spread, fewer
    than 1 in `TILE` are so large."""
    return min(_LOST * tolerance, 0.5)


def _errors(
    output: Array,
    reference: Array,
    exact: bool,
    lost_at: float = 0.5,
    scale: float = 1.0,
    on_device: ErrorsOnDevice | None = None,
) -> _Errors:
    """The errors of an output, of numbers multiplied by a power of two. Where squares would overflow or vanish, another is chosen."""
    flat, expected = output.reshape(-1), reference.reshape(-1)
    of_part, chunk = (_errors_of_part, _CHUNK) if isinstance(flat, np.ndarray) else (on_device, max(flat.size, 1))
    assert of_part, "arrays on a device come from a bench on one"
    pieces = ((flat[at : at + chunk], expected[at : at + chunk]) for at in range(0, flat.size, chunk))
    parts = [of_part(actual, right, exact, lost_at, scale) for actual, right in pieces]
    errors, sizes, maxima, counts = zip(*parts, strict=True) if parts else ((), (), (), ())
    largest_error, largest_reference = (max(each, default=0.0) for each in zip(*maxima, strict=True)) if parts else (0.0, 0.0)
    if scale == 1.0 and largest_reference and not _SQUARES[0] < largest_reference < _SQUARES[1]:
        power_of_two = math.ldexp(1.0, min(-math.frexp(largest_reference)[1], 1000))
        return _errors(output, reference, exact, lost_at, power_of_two, on_device)
    error_tiles, size_tiles = (_NUMPY.concatenate(each) if each else np.empty(0) for each in (errors, sizes))
    full_tiles, rest = divmod(flat.size, TILE)
    elements = np.array([TILE] * full_tiles + [rest] * bool(rest), dtype=float)
    if full_tiles and rest:  # the last tile takes the rest
        error_tiles, size_tiles, elements = (_joined(each) for each in (error_tiles, size_tiles, elements))
    different, lost, not_finite, finite = (sum(each) for each in zip(*counts, strict=True)) if parts else (0, 0, 0, 0)
    return _Errors(
        error_tiles, size_tiles, elements, largest_error, largest_reference, different, lost, not_finite, finite, scale
    )


def _errors_of_part(actual: np.ndarray, right: np.ndarray, exact: bool, lost_at: float, scale: float) -> PartOfErrors:
    """The errors of elements in host memory. `exact`: count what is different, else what is lost."""
    wide = _NUMPY.complex128 if actual.dtype.kind == "c" else _NUMPY.float64
    value, part = (each.astype(wide, copy=False) for each in (actual, right))
    if scale != 1.0:
        value, part = value * scale, part * scale
    different = lost = not_finite = finite = alike = 0
    with _errstate(over="ignore", invalid="ignore"):  # the square of a large error may overflow, which fails the comparison
        error, size = _NUMPY.abs(value - part), _NUMPY.abs(part)
        squared, sizes = _by_tile(error), _by_tile(size)
        if not (bool(_NUMPY.isfinite(squared).all()) and bool(_NUMPY.isfinite(sizes).all())):
            rounded = right.astype(actual.dtype)  # a number that the output's type cannot hold is infinite in it
            given = _NUMPY.isfinite(rounded)
            same = ~given & ((actual == rounded) | (_NUMPY.isnan(actual) & _NUMPY.isnan(rounded)))
            alike = int(_NUMPY.count_nonzero(same & (actual != right)))
            not_finite = int(_NUMPY.count_nonzero(given & ~_NUMPY.isfinite(actual)))
            finite = int(_NUMPY.count_nonzero(~given & ~same))
            error, size = _NUMPY.where(given, error, 0.0), _NUMPY.where(given, size, 0.0)
            squared, sizes = _by_tile(error), _by_tile(size)
        if exact:
            different = int(_NUMPY.count_nonzero(actual != right)) - alike
        else:
            lost = int(_NUMPY.count_nonzero(error > lost_at * size))
    return squared, sizes, (float(error.max()) / scale, float(size.max()) / scale), (different, lost, not_finite, finite)


def _by_tile(values: np.ndarray) -> np.ndarray:
    """Sums of squares of tiles."""
    tiled = values.size // TILE * TILE
    squares = _NUMPY.square(values)
    sums: np.ndarray = squares[:tiled].reshape(-1, TILE).sum(axis=1)
    return sums if tiled == values.size else _NUMPY.concatenate([sums, squares[tiled:].sum(keepdims=True)])


def _joined(values: np.ndarray) -> np.ndarray:
    """The same with the last two added up."""
    joined: np.ndarray = _NUMPY.concatenate([values[:-2], values[-2:].sum(keepdims=True)])
    return joined


def _on_host(array: Array) -> np.ndarray:
    return array if isinstance(array, np.ndarray) else array.get()
