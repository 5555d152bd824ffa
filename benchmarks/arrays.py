"""Measures the toolbox of arrays, in seconds of the processor for ten million rows: python -m benchmarks.arrays [ROWS]"""

import sys
import time
from collections.abc import Callable

import numpy as np
import pyarrow as pa

from warpladder.data.arrays import Intervals, Launches, coded, integers, lookup, numbered, occurrence, ordered, union_lengths


def measured(rows: int) -> dict[str, float]:
    """Seconds of each function, the least of three calls."""
    rng = np.random.default_rng(0)
    stream, correlation, start = rng.integers(0, 40, rows), rng.permutation(rows) + 1, np.sort(rng.integers(0, 1 << 50, rows))
    end, far = start + rng.integers(0, 1 << 20, rows), rng.integers(0, 1 << 60, rows)
    with_nulls, texts = pa.array(start, mask=stream == 0), pa.array(stream.astype(str))
    calls: dict[str, Callable[[], object]] = {
        "integers, with nulls": lambda: integers(with_nulls),
        "coded": lambda: coded(texts),
        "numbered, of two columns": lambda: numbered(stream, stream),
        "ordered, all rows different": lambda: ordered(stream, correlation),
        "occurrence": lambda: occurrence(stream),
        "lookup, of dense ids": lambda: lookup(correlation, correlation),
        "lookup, of ids far apart": lambda: lookup(far, far),
        "Launches": lambda: Launches(stream % 4, correlation).of(stream % 4, correlation),
        "Intervals": lambda: Intervals(start, end).within(start, end),
        "union_lengths": lambda: union_lengths(stream, start, end, 40),
    }
    return {name: min(_seconds(call) for _ in range(3)) for name, call in calls.items()}


def _seconds(call: Callable[[], object]) -> float:
    begin = time.process_time()
    call()
    return time.process_time() - begin


if __name__ == "__main__":
    for name, seconds in measured(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000).items():
        print(f"{name:28} {seconds:6.2f} s")
