"""The synchronisations of a report, with the stream that a wait for an event waits for.

CUPTI records each call that waits, and each call that records an event. A wait names its event; the call that recorded the event last before
names the stream.
"""

from collections.abc import Generator
from contextlib import closing
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from warpladder.collectors.nsight_systems.report import Report
from warpladder.collectors.trace.model import arrays_of, process_of
from warpladder.data.arrays import NONE, Bools, Int64s, integers

TABLE: Final = "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"
_EVENTS: Final = "CUPTI_ACTIVITY_KIND_CUDA_EVENT"
#: Columns of `synchronizations`, and what each is made of.
COLUMNS: Final = (
    "start_ns=start end_ns=end process=globalPid device=deviceId stream=streamId correlation=correlationId kind=syncType "
    "event_stream=syncType event_correlation=syncType"
)
_TAKEN: Final = {
    "start_ns": "start",
    "end_ns": "end",
    "device": "deviceId",
    "stream": "streamId",
    "correlation": "correlationId",
}
#: CUpti_ActivitySynchronizationType -> our kinds.
_KINDS: Final = {1: "event", 2: "stream_wait_event", 3: "stream", 4: "context"}
#: What identifies the event of a wait, in the order of the calls that recorded it.
_OF_EVENT: Final = ("globalPid", "contextId", "eventId", "eventSyncId", "correlationId")
#: What CUPTI writes for no stream and no event, as a number of 32 bits.
_NOTHING: Final = 0xFFFF_FFFF
_CORRELATION_BITS: Final = 38


def batches(report: Report) -> Generator[pa.RecordBatch, None, None]:
    """The rows of `synchronizations`; the kind of another one than those known is null."""
    records = _Records(report)
    with closing(report.batches(TABLE, ["syncType", *dict.fromkeys((*_TAKEN.values(), *_OF_EVENT))])) as rows:
        for batch in rows:
            kind = pc.index_in(batch["syncType"], pa.array(list(_KINDS), pa.int64()))
            stream, correlation = records.before(batch)
            yield pa.RecordBatch.from_pydict(
                {
                    **{ours: batch[name] for ours, name in _TAKEN.items()},
                    "process": process_of(integers(batch["globalPid"])),
                    "kind": pa.array(list(_KINDS.values()), pa.string()).take(kind),
                    "event_stream": stream,
                    "event_correlation": correlation,
                }
            )


class _Records:
    """The calls of a report that recorded events."""

    def __init__(self, report: Report) -> None:
        columns = (*_OF_EVENT, "streamId")
        process, context, event, number, correlation, stream = arrays_of(report.batches(_EVENTS, columns), columns, _NOTHING)
        self._stream, self._correlation = np.append(stream, _NOTHING), np.append(correlation, _NOTHING)
        self._codes: dict[tuple[int, ...], int] = {}
        key = self._coded(process, context, event) << _CORRELATION_BITS | correlation
        self._order = np.argsort(key, kind="stable")
        self._key = key[self._order]
        numbered = np.flatnonzero(~_is_nothing(number))
        self._of_number = dict(zip(zip(process[numbered], number[numbered], strict=True), numbered, strict=True))

    def _coded(self, *columns: Int64s) -> Int64s:
        """A number for each distinct row of some columns."""
        every = zip(*(column.tolist() for column in columns), strict=True)
        return np.array([self._codes.setdefault(each, len(self._codes)) for each in every], np.int64)

    def before(self, batch: pa.RecordBatch) -> tuple[Int64s, Int64s]:
        """The stream and the correlation of the call that recorded the event of each wait; `_NOTHING` where it is not known."""
        found = np.full(len(batch), NONE)
        if len(self._key) and len(batch):
            process, context, event, number, correlation = (integers(batch[name], _NOTHING) for name in _OF_EVENT)
            code = self._coded(process, context, event)
            place = np.maximum(np.searchsorted(self._key, code << _CORRELATION_BITS | correlation) - 1, 0)
            found = np.where(self._key[place] >> _CORRELATION_BITS == code, self._order[place], NONE)
            found[_is_nothing(event) | (self._correlation[found] >= correlation)] = NONE
            for row in np.flatnonzero(~_is_nothing(number)).tolist():
                found[row] = self._of_number.get((process[row], number[row]), found[row])
        return self._stream[found], self._correlation[found]


def _is_nothing(numbers: Int64s) -> Bools:
    return np.asarray((numbers < 0) | (numbers >= _NOTHING))
