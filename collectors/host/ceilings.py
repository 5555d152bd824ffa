"""Measures the ceilings of this machine's processor: copy bandwidth and FMA rate.

Each is that of the quickest of some executions: other processes of the machine can only make them slower.
"""

import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import numpy as np

from warpladder.collectors.host.host_clock import durations_ns
from warpladder.data.bandwidths import HOST_COPY_BYTES
from warpladder.data.names import Ceiling

#: If this environment variable is set, the sizes are small. For tests, which check the rows and not the figures.
SMALL_VARIABLE: Final = "WARPLADDER_SMALL_CEILINGS"
_REPETITIONS: Final = 15
_LARGEST_SIDE: Final = 4096
_LONG_NS: Final = 15e6  # of a product: the next takes eight times as long, and is repeated


def host_ceilings() -> list[dict[str, Any]]:
    """Rows of `ceilings` for the processor: GB/s and TFLOP/s."""
    threads = len(os.sched_getaffinity(0))
    small = bool(os.environ.get(SMALL_VARIABLE))
    copied_bytes = 1 << 20 if small else HOST_COPY_BYTES // 2
    rate, side = _best_rate(64, 64) if small else _best_rate(1024, _LARGEST_SIDE)
    quickest = f"quickest of {_REPETITIONS}"
    return [
        {
            "name": Ceiling.HOST_COPY,
            "device": "cpu",
            "value": 2 * copied_bytes / _copy_ns(copied_bytes, threads),
            "unit": "GB/s",
            "method": f"copy of {copied_bytes >> 20} MiB by {threads} threads, bytes read and written, {quickest}",
        },
        {
            "name": Ceiling.HOST_FMA,
            "device": "cpu",
            "value": rate,
            "unit": "TFLOP/s",
            "method": f"single-precision product of {side} x {side} matrices by NumPy's BLAS, {quickest}",
        },
    ]


def _copy_ns(copied_bytes: int, threads: int) -> float:
    source, target = np.ones(copied_bytes, np.uint8), np.zeros(copied_bytes, np.uint8)
    parts = list(zip(np.array_split(target, threads), np.array_split(source, threads), strict=True))
    with ThreadPoolExecutor(threads) as pool:
        return min(durations_ns(lambda: list(pool.map(lambda part: np.copyto(*part), parts)), _REPETITIONS))


def _best_rate(side: int, largest: int) -> tuple[float, int]:
    """Return the highest rate in TFLOP/s of a product of square matrices, and their side, which doubles while products are short.

    On many cores a small product does not reach their rate: on 16, one of 1024 has two thirds of it.
    """
    found = []
    while True:
        duration_ns = _product_ns(side)
        found.append((2 * side**3 / duration_ns / 1000, side))
        if side >= largest or duration_ns > _LONG_NS:
            return max(found)
        side *= 2


def _product_ns(side: int) -> float:
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((side, side), dtype=np.float32) for _ in range(2))
    return min(durations_ns(lambda: a @ b, _REPETITIONS))
