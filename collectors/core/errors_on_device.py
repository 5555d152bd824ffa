"""What a device tells of an output and its reference there: who measures hands it to who compares."""

from collections.abc import Callable

import numpy as np

from warpladder.workloads.api import Array

#: The errors of some elements in a row: sums of squares of errors and of references by tile; the largest error and reference; numbers of
#: elements that are different, lost, not finite, and finite, as `agreement` counts them.
PartOfErrors = tuple[np.ndarray, np.ndarray, tuple[float, float], tuple[int, int, int, int]]
#: Gives them of an output and its reference on a device, with the other arguments of `agreement._errors_of_part`.
ErrorsOnDevice = Callable[[Array, Array, bool, float, float], PartOfErrors]
