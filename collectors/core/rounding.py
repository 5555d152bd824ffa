"""The errors that rounding explains: another run of the reference, in another precision, shows the error that a computation can have.

The reference in float32 differs from the one in float64 by the rounding errors of this computation on these inputs: those of a sum of
many terms, of a number that is rounded to the next integer, of an element that cancels out.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np

#: Unit roundoff of float32.
_SINGLE: Final = 2.0**-24
#: So many times the error of the other run passes: a variant may add in another order.
_FACTOR: Final = 4.0
#: A run that is off by more tells nothing.
_ALIEN: Final = 0.1
#: Of whole numbers, the other run may differ from the reference by this part in all. Else it tells nothing.
_ALIKE: Final = 1e-3
#: An element is lost if it is so many times larger than the error that it can have, and is off by half so many times that error.
_CLEAR: Final = 128.0
#: Fewer lost elements than so many may be lost by chance.
LEAST_LOST: Final = 3
#: The part of the errors of a tile that the error of an element counts as at least: a single one may be small by chance.
_QUANTILE: Final = 0.1
#: The part of all elements that may have lost some of their digits, if not all: where only absolute errors count, such are rare.
_MANY: Final = 1 / 32
#: The part of all elements that may be off by a last digit of the input element in their place: `log(1 + exp(x))` and `x * (1 + erf(x))`
#: have a number as large as the input that cancels out. A variant that leaves so many elements out gains at most 1.14 times.
_MANY_OF_INPUTS: Final = 1 / 8
#: A run whose error is this part of the unit roundoff did not round, and tells nothing of rounding.
_EXACT: Final = 1 / 16


@dataclass(frozen=True)
class Rounding:
    """Another run of a reference, whose differences from the first are rounding errors of float32.

    Attributes:
        outputs: of that run by name, in float64 or an exact type, in host memory.
        roundoff: unit roundoff of the type that a variant accumulates in.
        coarsest: of its inputs, outputs or products, whichever is the largest.
        nudged: gives such a run on inputs that are off by a last digit, which shows how ill-conditioned the computation is; None if it fails.
        growth: so many times the error of this run may be, beside `_FACTOR`.
        inputs: of the computation by name, in host memory.
    """

    outputs: Mapping[str, np.ndarray]
    roundoff: float
    coarsest: float
    nudged: "Callable[[], Rounding | None]" = lambda: None
    growth: float = 1.0
    inputs: Mapping[str, np.ndarray] = field(default_factory=dict)

    def tolerance(self, own_error: float) -> float:
        """The relative error that passes, from the error of the other run; at most half of the digits of the variant's type. 0 where the
        other run is no computation of the same any more: its numbers overflowed, or its inputs are ill-conditioned."""
        if not own_error <= _ALIEN:
            return 0.0
        return min(_FACTOR * self.growth * own_error * self.roundoff / _SINGLE, math.sqrt(self.roundoff))

    def explains(self, name: str, output: np.ndarray, reference: np.ndarray) -> bool:
        """Whether whole numbers differ from the reference no more than rounding explains.

        Each is equal to one of the two runs, or is among at most four times as many as the two runs differ in, and is off by no more
        than these do.
        """
        other = self.outputs.get(name)
        if other is None or other.shape != reference.shape or self.roundoff < _SINGLE:
            return False
        values, others, right = (each.astype(np.float64) for each in (output, other, reference))
        between = abs(others - right)
        if not 0 < between.sum() <= _ALIKE * abs(right).sum():
            return False
        errors = abs(values - right)[(output != reference) & (output != other)]
        most = _FACTOR * (between > 0).sum() * self.coarsest / _SINGLE
        return bool(errors.size <= most and errors.max(initial=0.0) <= between.max())

    def lost(self, name: str, output: np.ndarray, reference: np.ndarray, tile: int, lost_at: float) -> str:
        """The fault of an output in which many elements have lost digits that rounding leaves them; empty if there is none.

        Args:
            tile: number of neighbours whose errors are of one size.
            lost_at: the part of itself by which such an element is off.
        """
        other = self.outputs.get(name)
        if other is None or other.shape != reference.shape:
            return ""
        wide = np.complex128 if reference.dtype.kind == "c" else np.float64
        actual, others, right = (each.reshape(-1).astype(wide) for each in (output, other, reference))
        with np.errstate(invalid="ignore", over="ignore"):
            size: np.ndarray = abs(right)
            error = abs(actual - right)
            possible = _possible_errors(abs(others - right), size, tile) * (self.coarsest / _SINGLE)
            least = np.finfo(output.dtype).tiny
            is_lost = (error > lost_at * size) & (error > _CLEAR / 2 * possible) & (size > _CLEAR * possible) & (size > least)
        of_inputs = is_lost & (error <= self.coarsest * self._largest_inputs(reference.shape))
        if int(of_inputs.sum()) <= size.size * _MANY_OF_INPUTS:
            is_lost &= ~of_inputs
        count, without = int(is_lost.sum()), int((is_lost & (error > 0.5 * size)).sum())
        if without < max(LEAST_LOST, size.size / tile) and count < max(LEAST_LOST, size.size * _MANY):
            return ""
        first = int(is_lost.argmax())
        return (
            f"{count} of {size.size} small elements of {name} have too few right digits: {name}[{first}] is {actual[first]:.8g}, not "
            f"{right[first]:.8g}; where only absolute errors count, declare compare=warpladder.compare.allclose(atol=...)"
        )

    def _largest_inputs(self, shape: tuple[int, ...]) -> np.ndarray:
        """The largest element of the real inputs in the place of each element of an output of this shape; 0 where there is none."""
        sizes = [
            abs(each.reshape(-1).astype(np.float64))
            for each in self.inputs.values()
            if each.shape == shape and each.dtype.kind == "f"
        ]
        largest: np.ndarray = np.max(sizes, axis=0) if sizes else np.zeros(1)
        return np.where(np.isfinite(largest), largest, 0.0)


def _possible_errors(errors: np.ndarray, size: np.ndarray, tile: int) -> np.ndarray:
    """The error that each element can have, from the errors of the other run."""
    finite = np.isfinite(errors) & np.isfinite(size)
    errors, size = np.where(finite, errors, np.inf), np.where(finite, size, 0.0)
    largest = size.max(initial=0.0)
    is_exact = not (errors[finite] / (largest or 1.0)).max(initial=0.0) > _EXACT * _SINGLE
    starts = range(0, size.size, tile)
    parts = [slice(start, start + tile) for start in starts]
    if is_exact:
        least = [_SINGLE * size[part].max() for part in parts]
    else:
        least = [float(np.quantile(errors[part], _QUANTILE)) for part in parts]
    possible: np.ndarray = np.maximum(errors, np.repeat(least, tile)[: size.size])
    return possible


def nudged(inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Inputs whose real numbers, as float32, are one step larger or smaller, at random. Zeros stay."""
    chance, others = np.random.default_rng(0), dict(inputs)
    for name, array in inputs.items():
        if array.dtype.kind == "f" and array.itemsize >= 4:
            single = array.astype(np.float32)
            steps = np.where(chance.random(array.shape) < 0.5, -np.inf, np.inf).astype(np.float32)
            others[name] = np.where(single == 0, single, np.nextafter(single, steps)).astype(array.dtype)
    return others
