"""Ratios of times as losses in percent."""

import math
from collections.abc import Sequence

import numpy as np

from warpladder.dashboard.core.estimate import Estimate


def loss_of(ratio: Estimate) -> Estimate:
    """A ratio of times as a loss in percent: 3 for 1.03."""
    return Estimate(*(100 * (end - 1) for end in (ratio.value, ratio.low, ratio.high)))


def mean_loss(ratios: Sequence[Estimate]) -> Estimate:
    """The geometric mean of ratios as a loss in percent.

    Cases are measured apart from each other, so the halves of their intervals are added in quadrature, in logarithms.
    """
    if not ratios:
        return Estimate.unknown()
    middle, low, high = np.log([(each.value, max(each.low, 1e-12), each.high) for each in ratios]).T
    down, up = (math.sqrt(float(np.sum(half**2))) / len(ratios) for half in (middle - low, high - middle))
    mean = float(middle.mean())
    return Estimate(*(100 * math.expm1(end) for end in (mean, mean - down, mean + up)))
