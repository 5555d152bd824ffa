"""Measures the ceilings of this machine's processor: copy bandwidth, the times of copies by size, and FMA rate.

Each comes from the fastest of several executions: other processes of the machine can only make them slower. So the best that the machine
has shown since it was started is kept, and a recording checks with a short copy and a short product whether more is possible.
"""

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np

from warpladder.collectors.core import kernel_cache
from warpladder.collectors.core.environment import cpu_name
from warpladder.collectors.host.host_clock import durations_ns
from warpladder.data.limits import HOST_COPY_BYTES
from warpladder.data.names import Ceiling, by_size

#: If this environment variable is set, the sizes are small. For tests, which check the rows and not the figures.
SMALL_VARIABLE: Final = "WARPLADDER_SMALL_CEILINGS"
_REPETITIONS: Final = 9
_REPETITIONS_OF_A_SHARE: Final = 50
_REPETITIONS_OF_A_CHECK: Final = 3
_SIDE: Final = 1024
#: The rate of a check over the kept rate: above, the kept rate was measured on a busy machine.
_MOST_SHARE: Final = 1.03
#: Bytes read and written of the times by size, below `HOST_COPY_BYTES`.
_SIZES: Final = (1 << 18, 1 << 20, 1 << 22, 1 << 24, 1 << 26)
_PAGE: Final = 4096
_LARGEST_SIDE: Final = 4096
_START: Final = "/proc/sys/kernel/random/boot_id"
_QUOTA: Final = "/sys/fs/cgroup/cpu.max"
Rows: TypeAlias = list[dict[str, Any]]
_LONG_NS: Final = 15e6  # of a product: the next takes eight times as long, and is repeated


def host_ceilings() -> Rows:
    """Rows of `ceilings` for the processor: GB/s, TFLOP/s, and microseconds by size.

    They are measured once after the machine was started, and again where this file is another one, or a short copy or product is faster
    than the kept ones. Of all measurements the best ones are kept: what the machine has reached, it can reach.
    """
    if os.environ.get(SMALL_VARIABLE):
        return _measured()
    key = kernel_cache.key_of("ceilings of the host", Path(__file__).read_text(encoding="utf-8"), _since_start())
    entry = kernel_cache.read(key)
    kept: Rows = entry[0]["rows"] if entry else []
    if kept and not _are_beaten(kept):
        return kept
    rows = _measured()
    if kept:
        rows = [max(both, key=_rate) for both in zip(rows, kept, strict=True)]
    kernel_cache.write(key, {"rows": rows}, b"")
    return rows


def _are_beaten(kept: Rows) -> bool:
    """Whether a short copy or a short product reaches more than the kept rates."""
    rates: dict[str, float] = {row["name"]: _MOST_SHARE * row["value"] for row in kept}
    return _copied(_REPETITIONS_OF_A_CHECK) > rates[Ceiling.HOST_COPY] or _multiplied() > rates[Ceiling.HOST_FMA]


def _since_start() -> Sequence[str]:
    """A key of all that the ceilings depend on: the start of the machine, the processor, its threads and the container's share of it, and
    the threads of NumPy's BLAS."""
    texts = [Path(name).read_text() if Path(name).exists() else "" for name in (_START, _QUOTA)]
    threads = (f"{name}={value}" for name, value in sorted(os.environ.items()) if name.endswith("_NUM_THREADS"))
    return *texts, cpu_name(), str(_threads()), np.__version__, *threads


def _rate(row: Mapping[str, Any]) -> float:
    """The value of a row, larger where it is better."""
    return float(row["value"]) if row["unit"] != "us" else -float(row["value"])


def _threads() -> int:
    return len(os.sched_getaffinity(0))


def _copied(repetitions: int) -> float:
    """The rate of a copy by all threads, in GB/s."""
    return HOST_COPY_BYTES / _copy_ns(HOST_COPY_BYTES, _threads(), repetitions)


def _multiplied() -> float:
    """The rate of a product of small matrices, in TFLOP/s."""
    return _rate_of_product(_SIDE, _product_ns(_SIDE, _REPETITIONS_OF_A_CHECK))


def _measured() -> Rows:
    """The rows, measured now.

    Threads of Python take long to start, compared with a copy within the caches. So the time by size is the time of one thread
    with its share of the bytes, so that no number of threads can be faster. At the size of the rate it is the time of all
    threads.
    """
    threads = _threads()
    small = bool(os.environ.get(SMALL_VARIABLE))
    moved_bytes = 1 << 21 if small else HOST_COPY_BYTES
    all_ns = _copy_ns(moved_bytes, threads, _REPETITIONS)
    rate, side = _best_rate(64, 64) if small else _best_rate(_SIDE, _LARGEST_SIDE)
    copied = f"copy of {moved_bytes >> 21} MiB by {threads} threads, bytes read and written, quickest of {_REPETITIONS}"
    product = f"single-precision product of {side} x {side} matrices by NumPy's BLAS, quickest of {_REPETITIONS}"
    share = f"copy by one of {threads} threads of its share, bytes read and written, quickest of {_REPETITIONS_OF_A_SHARE}"
    by_bytes = {size: (_share_ns(size, threads), share) for size in _SIZES if size < moved_bytes}
    by_bytes[moved_bytes] = (all_ns, copied)
    return [
        _row(Ceiling.HOST_COPY, moved_bytes / all_ns, "GB/s", copied),
        _row(Ceiling.HOST_FMA, rate, "TFLOP/s", product),
        *(_row(by_size(Ceiling.HOST_COPY, "hot", size), ns / 1000, "us", how) for size, (ns, how) in by_bytes.items()),
    ]


def _row(name: str, value: float, unit: str, how: str) -> dict[str, Any]:
    return {"name": name, "device": "cpu", "value": value, "unit": unit, "method": how}


def _copy_ns(moved_bytes: int, threads: int, repetitions: int) -> float:
    """Time of a copy in ns that reads and writes so many bytes in all."""
    target, source = _target_and_source(moved_bytes // 2)
    parts = list(zip(np.array_split(target, threads), np.array_split(source, threads), strict=True))
    with ThreadPoolExecutor(threads) as pool:
        return min(durations_ns(lambda: list(pool.map(lambda part: np.copyto(*part), parts)), repetitions))


def _share_ns(moved_bytes: int, threads: int) -> float:
    """Time in ns in which one of the threads copies its share of so many bytes read and written."""
    target, source = _target_and_source(moved_bytes // 2 // threads)
    return min(durations_ns(lambda: np.copyto(target, source), _REPETITIONS_OF_A_SHARE))


def _target_and_source(nbytes: int) -> tuple[np.ndarray, np.ndarray]:
    """Two arrays of bytes.

    Within their pages, the target begins half a page behind the source. Where it begins within a cache line behind the source, x86
    processors take up to ten times as long for a copy of 128 or 256 KiB.
    """
    memory = np.ones(2 * nbytes + 2 * _PAGE, np.uint8)
    first = (nbytes // _PAGE + 1) * _PAGE + _PAGE // 2
    return memory[first : first + nbytes], memory[:nbytes]


def _best_rate(side: int, largest: int) -> tuple[float, int]:
    """Return the highest rate in TFLOP/s of a product of square matrices, and their side, which doubles while products are short.

    On many cores a small product does not reach their rate: on 16, one of 1024 has two thirds of it.
    """
    rates = []
    while True:
        duration_ns = _product_ns(side)
        rates.append((_rate_of_product(side, duration_ns), side))
        if side >= largest or duration_ns > _LONG_NS:
            return max(rates)
        side *= 2


def _rate_of_product(side: int, duration_ns: float) -> float:
    """The rate in TFLOP/s of a product of square matrices."""
    return 2 * side**3 / duration_ns / 1000


def _product_ns(side: int, repetitions: int = _REPETITIONS) -> float:
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((side, side), dtype=np.float32) for _ in range(2))
    return min(durations_ns(lambda: a @ b, repetitions))
