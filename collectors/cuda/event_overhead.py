"""The time that two events add to the work between them."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True)
class EventOverhead:
    """The time that two events add to a kernel between them, in ns.

    Attributes:
        ns: the median over kernels of known length.
        uncertainty_ns: the largest distance of a kernel from it.
    """

    ns: float
    uncertainty_ns: float

    @classmethod
    def of(cls, added_ns: Sequence[float]) -> Self:
        """The overhead from what the events add to each kernel."""
        middle = statistics.median(added_ns)
        return cls(middle, max(abs(each - middle) for each in added_ns))
