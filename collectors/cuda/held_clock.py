"""The clock that the multiprocessors held between two readings of cycles and nanoseconds."""

import numpy as np


def mean_clock_mhz(first: np.ndarray, last: np.ndarray) -> float | None:
    """Mean clock of the multiprocessors between two readings, each with a row of cycles and nanoseconds for every multiprocessor.

    A multiprocessor that a reading lacks has a row of zeros there, and is left out. None if all are.
    """
    read = (first > 0).all(axis=1) & (last > 0).all(axis=1)
    cycles, ns = (last[read] - first[read]).sum(axis=0).tolist()
    return round(1e3 * cycles / ns, 1) if ns else None
