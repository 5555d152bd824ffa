"""The layer on the host: the variants of `cnn_conv` on inputs that are widened to float32, and results that are rounded."""

from collections.abc import Callable
from functools import wraps

import numpy as np

from warpladder.workloads.api import Buffers, Case
from warpladder.workloads.cnn_conv import host
from warpladder.workloads.cnn_conv_bf16.problem import in_float32
from warpladder.workloads.declare.cases import narrowed

_Run = Callable[[Case, Buffers, Buffers], None]


def _in_single(run: _Run) -> _Run:
    """The same on BF16, by way of float32."""

    @wraps(run)
    def converted(case: Case, inputs: Buffers, outputs: Buffers) -> None:
        y = np.zeros(outputs["y"].shape, np.float32)
        run(case, in_float32(inputs), {"y": y})
        outputs["y"][...] = narrowed(y, "bfloat16")

    return converted


numpy_unrolled = _in_single(host.numpy_unrolled)
numba_serial = _in_single(host.numba_serial)
numba_parallel = _in_single(host.numba_parallel)
