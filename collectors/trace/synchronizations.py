"""Converts the records of synchronisation of a report to rows of `synchronizations`: which stream or event was waited for.

CUPTI records each call that waits, and each call that records an event. A wait names its event; the call that recorded the event last before
names the stream. PyTorch's profiler has joined the two already.
"""

from collections.abc import Iterator
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from warpladder.collectors.trace.report import Report
from warpladder.data.arrays import Bools, Int64s, integers
from warpladder.data.columns import FAR

SYNCHRONIZATION: Final = "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"
EVENT: Final = "CUPTI_ACTIVITY_KIND_CUDA_EVENT"
#: CUpti_ActivitySynchronizationType -> our kinds.
KINDS: Final = {1: "event", 2: "stream_wait_event", 3: "stream", 4: "context"}
#: Columns of a report that names the stream and the recording call of an event itself.
EVENT_STREAM: Final = "eventStreamId"
EVENT_CORRELATION: Final = "eventCorrelationId"
_COLUMNS: Final = (
    *("start", "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid", "syncType", "eventId", "eventSyncId"),
    *(EVENT_STREAM, EVENT_CORRELATION),
)
#: What CUPTI writes for no stream and no event, as a number of 32 bits.
_NOTHING: Final = 0xFFFF_FFFF
_CORRELATION_BITS: Final = 38


def rows(report: Report) -> Iterator[pa.Table]:
    """Yield rows of `synchronizations`. Records of an unknown kind, or without times, are left out."""
    records = _Records(report)
    for batch in report.batches(SYNCHRONIZATION, _COLUMNS):
        known = np.isin(integers(batch["syncType"], _NOTHING), list(KINDS)) & _timed(batch)
        batch = batch.filter(pa.array(known))
        own_stream, own_correlation = (integers(batch[name], _NOTHING) for name in (EVENT_STREAM, EVENT_CORRELATION))
        stream, correlation = records.before(batch)
        kind = pc.index_in(batch.column("syncType"), pa.array(list(KINDS), pa.int64()))
        yield pa.table(
            {
                "correlation": np.clip(integers(batch["correlationId"]), -FAR, FAR),
                "process": report.process_numbers(integers(batch["globalPid"])),
                "start_ns": batch.column("start"),
                "end_ns": batch.column("end"),
                "kind": pa.array(list(KINDS.values()), pa.string()).take(kind),
                "device": np.clip(integers(batch["deviceId"]), 0, (1 << 31) - 1).astype(np.int32),
                "stream": _or_null(integers(batch["streamId"], _NOTHING)),
                "event_stream": _or_null(np.where(_is_nothing(own_stream), stream, own_stream)),
                "event_correlation": _or_null(np.where(_is_nothing(own_correlation), correlation, own_correlation)),
            }
        )


class _Records:
    """The calls of a report that recorded events."""

    def __init__(self, report: Report) -> None:
        columns = ("globalPid", "contextId", "eventId", "eventSyncId", "correlationId", "streamId")
        process, context, event, number, correlation, stream = report.arrays(EVENT, columns, _NOTHING)
        self._stream, self._correlation = stream, correlation
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
        none = np.full(len(batch), _NOTHING)
        if not len(self._key) or not len(batch):
            return none, none
        process, context, event, number, correlation = (
            integers(batch[name], _NOTHING) for name in ("globalPid", "contextId", "eventId", "eventSyncId", "correlationId")
        )
        code = self._coded(process, context, event)
        place = np.maximum(np.searchsorted(self._key, code << _CORRELATION_BITS | correlation) - 1, 0)
        found = np.where(self._key[place] >> _CORRELATION_BITS == code, self._order[place], -1)
        found[_is_nothing(event) | (self._correlation[found] >= correlation)] = -1
        for row in np.flatnonzero(~_is_nothing(number)).tolist():
            found[row] = self._of_number.get((process[row], number[row]), found[row])
        return (np.where(found < 0, _NOTHING, values[found]) for values in (self._stream, self._correlation))  # type: ignore[return-value]


def _timed(batch: pa.RecordBatch) -> Bools:
    start, end = (integers(batch[name], FAR + 1) for name in ("start", "end"))
    return np.asarray((start >= -FAR) & (start <= end) & (end <= FAR))


def _is_nothing(numbers: Int64s) -> Bools:
    return np.asarray((numbers < 0) | (numbers >= _NOTHING))


def _or_null(numbers: Int64s) -> pa.Array:
    return pa.array(numbers, mask=_is_nothing(numbers))
