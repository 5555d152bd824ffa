"""What a round did to all cells of a case alike, taken out of their samples.

Every variant of a case runs once in each round, so a neighbour that takes the processor, a clock that falls, or a process whose memory
lies badly lengthens several samples of the round. The common part of a round is the median, over the other cells, of how far each is
from its own median. A cell has no part in what is taken out of it, so that its own change cannot hide itself.
"""

from collections.abc import Hashable, Iterable, Sequence

import numpy as np
import numpy.typing as npt

from warpladder.data.arrays import Floats, Int64s


def steadied(durations: Floats, n: Int64s, rounds: npt.NDArray[np.integer], groups: Sequence[Hashable]) -> Floats:
    """Samples without the common part of their round, in their unit; as they are where that part is smaller than their own scatter.

    Args:
        durations: the samples of the first cell, then the samples of the second, and so on; below 1 counts as 1.
        n: samples of each cell.
        rounds: the round of each sample.
        groups: cells with equal values here are sampled in the same rounds.
    """
    steady = durations.copy()
    ends = np.cumsum(n)
    for cells in places_by(groups):
        if len(cells) > 1:
            places = np.concatenate([np.arange(ends[cell] - n[cell], ends[cell]) for cell in cells])
            column = np.repeat(np.arange(len(cells)), n[cells])
            row = np.unique(rounds[places], return_inverse=True)[1]
            apart = np.full((int(row.max()) + 1, len(cells)), np.nan)
            apart[row, column] = np.log(np.maximum(durations[places], 1.0))
            apart -= medians_of_columns(apart)
            common = np.nan_to_num(median_of_others(apart))
            if _scatter(apart - common) < _scatter(apart):
                steady[places] *= np.exp(-common[row, column])
    return steady


def _scatter(apart: Floats) -> float:
    """The median distance from 0 of the typical cell."""
    return float(np.median(medians_of_columns(np.abs(apart))))


def medians_of_columns(values: Floats) -> Floats:
    """The median of each column, where NaN is no value and a column without one has NaN; `np.nanmedian` takes ten times as long for small arrays."""
    count, columns = np.isfinite(values).sum(axis=0), np.arange(values.shape[1])
    ordered = np.sort(values, axis=0)  # NaN last
    medians: Floats = (ordered[(count - 1) // 2, columns] + ordered[count // 2, columns]) / 2
    return medians


def median_of_others(values: Floats) -> Floats:
    """For each value the median of the other values of its row; NaN where there is no other. NaN is no value."""
    order = np.argsort(values, axis=1, kind="stable")  # NaN last
    ordered = np.take_along_axis(values, order, axis=1)
    place = np.empty_like(order)
    np.put_along_axis(place, order, np.broadcast_to(np.arange(values.shape[1]), order.shape), axis=1)
    others = np.isfinite(values).sum(axis=1, keepdims=True) - np.isfinite(values)
    middle = []
    for rank in ((others - 1) // 2, others // 2):
        # Behind the value itself, the other values are one place further.
        found = np.clip(rank + (rank >= place), 0, values.shape[1] - 1)
        middle.append(np.take_along_axis(ordered, found, axis=1))
    medians: Floats = np.where(others > 0, (middle[0] + middle[1]) / 2, np.nan)
    return medians


def places_by(groups: Iterable[Hashable]) -> Iterable[list[int]]:
    """The places of each group, in the order in which the groups first occur."""
    places: dict[Hashable, list[int]] = {}
    for place, group in enumerate(groups):
        places.setdefault(group, []).append(place)
    return places.values()
