"""Measures the ceilings of this machine's processor: copy bandwidth and FMA rate."""

import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import numpy as np

from warpladder.collectors.host.host_clock import median_duration_ns
from warpladder.data.names import Ceiling

#: If this environment variable is set, the sizes are small. For tests, which check the rows and not the figures.
SMALL_VARIABLE: Final = "WARPLADDER_SMALL_CEILINGS"
_REPETITIONS: Final = 7


def host_ceilings() -> list[dict[str, Any]]:
    """Rows of `ceilings` for the processor: GB/s and TFLOP/s."""
    threads = len(os.sched_getaffinity(0))
    copied_bytes, side = (1 << 20, 64) if os.environ.get(SMALL_VARIABLE) else (1 << 27, 1024)
    median = f"median of {_REPETITIONS}"
    return [
        {
            "name": Ceiling.HOST_COPY,
            "device": "cpu",
            "value": 2 * copied_bytes / _copy_ns(copied_bytes, threads),
            "unit": "GB/s",
            "method": f"copy of {copied_bytes >> 20} MiB by {threads} threads, bytes read and written, {median}",
        },
        {
            "name": Ceiling.HOST_FMA,
            "device": "cpu",
            "value": 2 * side**3 / _product_ns(side) / 1000,
            "unit": "TFLOP/s",
            "method": f"single-precision product of {side} x {side} matrices by NumPy's BLAS, {median}",
        },
    ]


def _copy_ns(copied_bytes: int, threads: int) -> float:
    source, target = np.ones(copied_bytes, np.uint8), np.zeros(copied_bytes, np.uint8)
    parts = list(zip(np.array_split(target, threads), np.array_split(source, threads), strict=True))
    with ThreadPoolExecutor(threads) as pool:
        return median_duration_ns(lambda: list(pool.map(lambda part: np.copyto(*part), parts)), _REPETITIONS)


def _product_ns(side: int) -> float:
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((side, side), dtype=np.float32) for _ in range(2))
    return median_duration_ns(lambda: a @ b, _REPETITIONS)
