"""Inputs that no code of the user has seen: an input set whose real numbers are multiplied by a factor just below 1.

About a quarter of the timed executions on a host read them. Order, symmetry, signs, zeros, and branches that depend on the numbers, stay as
they are, so that a function takes as long as on the set itself. One that kept the results of the set, or part of them, or finds
them where the function for the inputs, the reference or another variant left them, takes longer.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from statistics import median
from typing import Final

import numpy as np

#: The part of the timed executions whose inputs are altered.
SHARE: Final = 0.25
#: A number is made smaller by this part of itself to twice as much, and by at least so many units of its last place: more than
#: functions that compare within a tolerance, such as `numpy.allclose`, take for equal.
_PART: Final = 2.0**-13
_LAST_PLACES: Final = 4
#: Elements that tell whether an array holds whole numbers alone, such as labels, which are left as they are.
_LOOKED_AT: Final = 4096
#: A cell keeps results if it takes so many times as long with altered inputs.
FACTOR: Final = 1.15
#: Standard deviations of the rank sum: of the samples, for a suspicion, and of `PAIRS` further pairs of executions, for proof.
_SUSPICIOUS: Final = 1.5
_PROVEN: Final = 3.3
PAIRS: Final = 12


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
    """Inputs with other last digits; those that hold whole numbers alone are the same arrays."""
    others, part = dict(inputs), part_of(chance, True)
    for name in alterable(inputs):
        others[name] = inputs[name].copy()
        multiply(others[name], part)
    return others


@dataclass
class Durations:
    """Durations of a cell in one pass, in ns, with the inputs of the sets and with altered ones."""

    usual: list[int] = field(default_factory=list)
    altered: list[int] = field(default_factory=list)

    @property
    def ratio(self) -> float:
        """How many times as long it takes with altered inputs; NaN where this is not known."""
        return median(self.altered) / max(median(self.usual), 1) if self.altered and self.usual else math.nan

    def is_longer(self, deviations: float, others: Sequence[float]) -> bool:
        """Whether it takes longer with altered inputs, and by more than all of the others do.

        Args:
            deviations: standard deviations of the rank sum beyond which the difference is not by chance.
            others: ratios of the other cells of the case.
        """
        least = max(1.0, min((each for each in others if not math.isnan(each)), default=1.0))
        return self.ratio >= FACTOR * least and _deviations(self.altered, self.usual) >= deviations

    @property
    def is_suspicious(self) -> bool:
        return self.is_longer(_SUSPICIOUS, ())

    def proves(self, others: Sequence[float]) -> bool:
        """Whether these pairs prove what the samples made suspicious."""
        return self.is_longer(_PROVEN, others)

    def text(self, timing: str) -> str:
        """The finding."""
        new, usual = (f"{float(f'{median(each) / 1e3:.3g}'):,g} us" for each in (self.altered, self.usual))
        return (
            f"{timing}: takes {new} where the inputs differ in their last digits from those that other code has seen, and {usual} for "
            "those: it keeps results, or finds kept ones"
        )


def _deviations(larger: Sequence[int], others: Sequence[int]) -> float:
    """Mann and Whitney's statistic: by how many standard deviations the first numbers rank above the others."""
    counts = np.sign(np.subtract.outer(np.asarray(larger, float), np.asarray(others, float)))
    m, n = counts.shape
    return float(counts.sum() / 2 / math.sqrt(m * n * (m + n + 1) / 12))
