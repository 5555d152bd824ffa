"""The generator on the host: the variants of `gan_tconv` on inputs that are widened to float32, and images that are rounded."""

from collections.abc import Callable
from functools import wraps

import numpy as np

from warpladder.workloads.api import Buffers, Case
from warpladder.workloads.declare.cases import narrowed
from warpladder.workloads.gan_tconv import host
from warpladder.workloads.gan_tconv_bf16.problem import in_float32

_Run = Callable[[Case, Buffers, Buffers], None]


def _in_single(run: _Run) -> _Run:
    """The same on BF16, by way of float32."""

    @wraps(run)
    def converted(case: Case, inputs: Buffers, outputs: Buffers) -> None:
        images = np.empty(outputs["images"].shape, np.float32)
        run(case, in_float32(case, inputs), {"images": images})
        outputs["images"][...] = narrowed(images, "bfloat16")

    return converted


numpy_scattered = _in_single(host.numpy_scattered)
numba_serial = _in_single(host.numba_serial)
numba_parallel = _in_single(host.numba_parallel)
