"""The definitions of the page Forecast, one piece of device work after another, for traces in which the host never waits."""

import pandas as pd

_NEAR_NS, _LAUNCH_NS, _LATENCY_NS = 5_000, 20_000, 10_000


def gain_ns(tables: dict[str, pd.DataFrame], saved: dict[str, float], steps: int) -> float:
    """What a step gains if kernels take less time.

    Args:
        saved: name of a kernel -> the part of its time that is saved.
    """
    calls = dict(zip(tables["api_calls"]["correlation"], tables["api_calls"]["start_ns"], strict=True))
    work = sorted(tables["kernels"].itertuples(), key=lambda row: row.start_ns)
    latency = min(_LATENCY_NS, *(row.start_ns - calls[row.correlation] for row in work))
    less = {row.correlation: (row.end_ns - row.start_ns) * saved.get(row.name, 0.0) for row in work}
    start = {}
    for place, row in enumerate(work):
        launched = calls[row.correlation]
        before = [each for each in work[:place] if each.stream == row.stream]
        ended = [each for each in work[:place] if each.end_ns <= row.start_ns]
        if before and row.start_ns - before[-1].end_ns <= _NEAR_NS:
            release = before[-1]
        elif row.start_ns - launched <= _LAUNCH_NS:
            start[row.correlation] = float(row.start_ns)
            continue
        else:
            release = max(ended, key=lambda each: each.end_ns)
        ends = start[release.correlation] + (release.end_ns - release.start_ns) - less[release.correlation]
        start[row.correlation] = max(ends + row.start_ns - release.end_ns, launched + latency)
    last = max(work, key=lambda row: row.end_ns)
    return float(last.start_ns - start[last.correlation] + less[last.correlation]) / steps
