"""What of a trace that we recorded is the variants' own work, and what only the measurement's.

A recording launches more than what it times: checks of the results, warm-up, the flush of L2 and the hold of the stream before a cold
sample. Its NVTX ranges tell these apart: `workload` > `case` > `variant[config]` > sample > executions.
"""

import re
from typing import Final, Literal

import numpy as np
import numpy.typing as npt

from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.core.traces import Int64s, Places, Traces
from warpladder.dashboard.trace.ranges import nearest, parents

#: The variants' samples, or all that was traced.
Part = Literal["samples", "all"]

_DOMAIN: Final = "warpladder"
#: Texts that the collectors give a sample, such as `device.cold.warm_up#0`, and the launches within one of device time. A test
#: compares both with what the collectors write.
_SAMPLE: Final = re.compile(r"(?P<scope>[^.#]+)\.(?:cold|hot)(?:\.(?P<mark>twin|warm_up))?#\d{1,9}")
_EXECUTIONS: Final = re.compile(r"executions=\d{1,9}")
#: What a range's text makes of it.
_OTHER, _WARM_UP, _DEVICE_WARM_UP, _DEVICE, _HOST, _LAUNCHES = range(6)


def parts(data: RunData) -> tuple[Part, ...]:
    """What of the trace can be summed, the default first: of a recording with samples in its ranges these, else only all."""
    traces = data.traces
    ours = data.info["kind"] == "recording" and "ranges" in traces.tables
    return ("samples", "all") if ours and sampled(traces).any() else ("all",)


def sampled(traces: Traces) -> npt.NDArray[np.bool_]:
    """Of each range, whether what was launched in it, and in no range inside, is a variant's own work in a sample.

    In a sample of device time that is what its executions launch, in the others all; a warm-up is no sample. Ranges of others, such as a
    library's, count as what they are in.
    """
    around, launches = _around(traces)
    found: npt.NDArray[np.bool_] = (around == _HOST) | (around == _DEVICE) & launches
    return found


def of_the_measurement(traces: Traces) -> npt.NDArray[np.bool_]:
    """Of each range, whether what was launched in it, and in no range inside, only prepares a sample: empties L2, holds the stream."""
    around, launches = _around(traces)
    found: npt.NDArray[np.bool_] = np.isin(around, (_DEVICE, _DEVICE_WARM_UP)) & ~launches
    return found


def _around(traces: Traces) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Of each range the kind of sample that it is or is in, `_OTHER` for none, and whether it is or is in a sample's executions."""
    traces.read("ranges", "domain", "text")
    domains, texts = traces.texts("ranges", "domain"), traces.texts("ranges", "text")
    ours = np.array([*(name == _DOMAIN for name in domains.categories), False])[domains.codes]
    kind = np.where(ours, np.array([*(_kind(str(text)) for text in texts.categories), _OTHER])[texts.codes], _OTHER)
    parent = parents(traces)
    sample = nearest(parent, np.isin(kind, (_WARM_UP, _DEVICE_WARM_UP, _DEVICE, _HOST)))
    launches = nearest(parent, kind == _LAUNCHES) >= 0
    return np.where(sample >= 0, kind[sample], _OTHER), launches


def rows(traces: Traces, table: str) -> Int64s:
    """Places of the rows of `kernels`, `memory_ops` or `api_calls` that are a variant's own work in a sample."""
    wanted, places = sampled(traces), Places(traces.numbers("ranges", "range_id"))
    found, first = [np.empty(0, dtype=np.int64)], 0
    for (range_id,) in traces.scan(table, "range_id"):
        at = places.of(range_id)
        found.append(first + np.flatnonzero((at >= 0) & wanted[at]))
        first += len(range_id)
    return np.concatenate(found)


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
