"""The variants' own work in the trace of a recording, apart from the work of the measurement.

A recording also launches work that it does not time: checks of results, warm-up, and the flush of L2 and the hold of the stream
before a cold sample. Its NVTX ranges distinguish these: `workload` > `case` > `variant[config]` > sample > executions.
"""

import re
from typing import Final, Literal

import numpy as np

from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.core.traces import Traces
from warpladder.dashboard.trace.ranges import parents
from warpladder.data.arrays import Bools, Int64s, Places
from warpladder.data.nesting import nearest

#: The variants' samples, or all that was traced.
Extent = Literal["samples", "all"]

_DOMAIN: Final = "warpladder"
#: The texts of the collectors for a sample, such as `device.cold.warm_up#0`, and for the launches in a sample of device time. A
#: test compares them with the texts of the collectors.
_SAMPLE: Final = re.compile(r"(?P<scope>[^.#]+)\.(?:cold|hot)(?:\.(?P<mark>twin|warm_up))?#\d{1,9}")
_EXECUTIONS: Final = re.compile(r"executions=\d{1,9}")
#: Kinds of ranges by their texts.
_OTHER, _WARM_UP, _DEVICE_WARM_UP, _DEVICE, _HOST, _LAUNCHES = range(6)


def extents(data: RunData) -> tuple[Extent, ...]:
    """The parts of the trace that can be summed, the default first: samples and all for a recording with samples, else all."""
    traces = data.traces
    is_recording = data.info["kind"] == "recording" and "ranges" in traces.tables
    return ("samples", "all") if is_recording and sampled(traces).any() else ("all",)


def sampled(traces: Traces) -> Bools:
    """Whether the launches in each range, without those in inner ranges, are a variant's own work in a sample.

    In a sample of device time, these are the launches of its executions. In other samples they are all launches. A warm-up is
    no sample. Ranges of a library belong to the range that they are in.
    """
    around, launches = _around(traces)
    mask: Bools = (around == _HOST) | (around == _DEVICE) & launches
    return mask


def of_the_measurement(traces: Traces) -> Bools:
    """Whether the launches in each range, without those in inner ranges, only prepare a sample, as the flush of L2 does."""
    around, launches = _around(traces)
    mask: Bools = np.isin(around, (_DEVICE, _DEVICE_WARM_UP)) & ~launches
    return mask


def _around(traces: Traces) -> tuple[Int64s, Bools]:
    """The kind of sample that each range is or is in (`_OTHER` for none), and whether it is or is in a sample's executions."""
    traces.read("ranges", "domain", "text")
    domains, texts = traces.texts("ranges", "domain"), traces.texts("ranges", "text")
    own_domain = np.array([*(name == _DOMAIN for name in domains.categories), False])[domains.codes]
    kind = np.where(own_domain, np.array([*(_kind(str(text)) for text in texts.categories), _OTHER])[texts.codes], _OTHER)
    parent = parents(traces)
    sample = nearest(parent, np.isin(kind, (_WARM_UP, _DEVICE_WARM_UP, _DEVICE, _HOST)))
    launches = nearest(parent, kind == _LAUNCHES) >= 0
    return np.where(sample >= 0, kind[sample], _OTHER), launches


def rows(traces: Traces, table: str) -> Int64s:
    """Places of the rows of `kernels`, `memory_ops` or `api_calls` that are a variant's own work in a sample."""
    mask, places = sampled(traces), Places(traces.numbers("ranges", "range_id"))
    parts, first = [np.empty(0, dtype=np.int64)], 0
    pieces = traces.scan(table, "range_id") if table == "api_calls" else [[traces.ranges_of_work(table)]]
    for (range_id,) in pieces:
        at = places.of(range_id)
        parts.append(first + np.flatnonzero((at >= 0) & mask[at]))
        first += len(range_id)
    return np.concatenate(parts)


def is_of_measurement(text: str) -> bool:
    """Whether a text names a sample or its executions, and so no variant."""
    return _kind(text) != _OTHER


def _kind(text: str) -> int:
    if _EXECUTIONS.fullmatch(text):
        return _LAUNCHES
    match = _SAMPLE.fullmatch(text)
    if match is None:
        return _OTHER
    on_device = match["scope"] == "device"
    if match["mark"] == "warm_up":
        return _DEVICE_WARM_UP if on_device else _WARM_UP
    return _DEVICE if on_device else _HOST
