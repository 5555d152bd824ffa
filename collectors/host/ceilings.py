"""What this machine's processor measurably can do: copy memory, and multiply and add."""

import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import numpy as np

from warpladder.collectors.host.host_clock import median_duration_ns

_REPETITIONS: Final = 7
_COPY_BYTES: Final = 1 << 27
_MATRIX: Final = 1024


def host_ceilings() -> list[dict[str, Any]]:
    """Rows of `ceilings` for the processor: GB/s and TFLOP/s."""
    threads = len(os.sched_getaffinity(0))
    median = f"median of {_REPETITIONS}"
    return [
        {
            "name": "host_copy",
            "device": "cpu",
            "value": 2 * _COPY_BYTES / _copy_ns(threads),
            "unit": "GB/s",
            "method": f"copy of {_COPY_BYTES >> 20} MiB by {threads} threads, bytes read and written, {median}",
        },
        {
            "name": "host_fma",
            "device": "cpu",
            "value": 2 * _MATRIX**3 / _product_ns() / 1000,
            "unit": "TFLOP/s",
            "method": f"single-precision product of {_MATRIX} x {_MATRIX} matrices by NumPy's BLAS, {median}",
        },
    ]


def _copy_ns(threads: int) -> float:
    source, target = np.ones(_COPY_BYTES, np.uint8), np.zeros(_COPY_BYTES, np.uint8)
    parts = list(zip(np.array_split(target, threads), np.array_split(source, threads), strict=True))
    with ThreadPoolExecutor(threads) as pool:
        return median_duration_ns(lambda: list(pool.map(lambda part: np.copyto(*part), parts)), _REPETITIONS)


def _product_ns() -> float:
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((_MATRIX, _MATRIX), dtype=np.float32) for _ in range(2))
    return median_duration_ns(lambda: a @ b, _REPETITIONS)
