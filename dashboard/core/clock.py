"""The systematic error of the clock that took device times. No number of samples makes it smaller, so that intervals include it."""

from collections.abc import Mapping
from typing import Final

import numpy as np
import numpy.typing as npt

from warpladder.data.names import Ceiling

Floats = npt.NDArray[np.float64]
#: The collector whose device times are read between two events.
BY_EVENTS: Final = "cuda_events"
#: Collectors whose device times are those of a trace. Both read the same records of the driver.
BY_TRACE: Final = frozenset({"cupti", "nsight_systems"})
#: The error in ns of a run by events that did not measure it: how much more they read than CUPTI, in the median of 74 cold cells below
#: 20 us of two runs that ship (`h200-by-cuda-events` and `h200-by-cupti`).
UNMEASURED_NS: Final = 400.0
#: The least error in ns, whatever one run measured. The cold times of 102 cells below 5 us in two runs of one H200, with what events add
#: measured for each case, were at most 0.38 us apart in 95 % of the cells, which is 0.27 us for each run.
LEAST_NS: Final = 270.0


def error_ns(collector: object, ceilings: Mapping[str, float]) -> float:
    """The error of one device time between two events, in ns: the ceiling `event_uncertainty`, and at least that between two runs; 0
    where no events took the times.

    Args:
        collector: of the run.
        ceilings: values by name in their units.
    """
    if collector != BY_EVENTS:
        return 0.0
    measured = ceilings.get(Ceiling.EVENT_UNCERTAINTY)
    return UNMEASURED_NS if measured is None else max(1000 * measured, LEAST_NS)


def widened(low_ns: Floats, high_ns: Floats, error_ns: float, single: npt.NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """The ends of intervals with the error of the clock, in ns.

    Args:
        low_ns, high_ns: the ends without it.
        single: whether the samples are single executions or means of such: cold device times. A hot sample divides the error among its
            batch, so that it does not count there.
    """
    error = np.where(single, error_ns, 0.0)
    return np.maximum(low_ns - error, np.minimum(low_ns, 1.0)), high_ns + error


def is_single(scope: str, cache: str) -> bool:
    """Whether samples of this timing are single executions on the device; see `widened`."""
    return scope == "device" and cache == "cold"


def differ(a: object, b: object) -> bool:
    """Whether two collectors take device times of different spans: one between two events, the other from a trace.

    Events include what a kernel needs to start with a cold device, and tracing lengthens some kernels up to twofold, so that no margin
    makes the two alike; docs/collectors.md has the figures.
    """
    return (a == BY_EVENTS and b in BY_TRACE) or (b == BY_EVENTS and a in BY_TRACE)
