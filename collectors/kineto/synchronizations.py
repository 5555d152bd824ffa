"""The events of category `cuda_sync`: which stream or event a stream or the host waited for. The profiler writes them with
`enable_cuda_sync_events=True`.
"""

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from warpladder.collectors.kineto.columns import int_column
from warpladder.collectors.kineto.events import DeviceArguments, Event, arguments_of
from warpladder.collectors.trace import synchronizations
from warpladder.data.arrays import Int64s

#: How the name of an event begins, in lower case. Profilers write `Stream Sync` or `Stream Synchronize`.
_NAMES: Final = {
    "stream wait": "stream_wait_event",
    "event": "event",
    "stream": "stream",
    "context": "context",
    "device": "context",
}
_TYPES: Final = {kind: code for code, kind in synchronizations.KINDS.items()}


class _Arguments(DeviceArguments, gc=False):
    """The arguments of a synchronisation."""

    event: Any = msgspec.field(default=None, name="wait_on_cuda_event_id")
    event_stream: Any = msgspec.field(default=None, name="wait_on_stream")
    event_correlation: Any = msgspec.field(default=None, name="wait_on_cuda_event_record_corr_id")


def columns(events: Sequence[Event], start: Int64s, end: Int64s) -> dict[str, Any]:
    """The columns of CUPTI's table of synchronisations."""
    arguments = arguments_of(events, _Arguments)
    return {
        "start": start,
        "end": end,
        "globalPid": start * 0,
        # The device stands in place of the process, too.
        "deviceId": int_column(
            [event.pid if each.device is None else each.device for event, each in zip(events, arguments, strict=True)]
        ),
        "streamId": int_column([each.stream for each in arguments]),
        "correlationId": int_column([each.correlation for each in arguments]),
        "syncType": int_column([_type(event.name) for event in events]),
        "eventId": int_column([each.event for each in arguments]),
        synchronizations.EVENT_STREAM: int_column([each.event_stream for each in arguments]),
        synchronizations.EVENT_CORRELATION: int_column([each.event_correlation for each in arguments]),
    }


def _type(name: Any) -> int | None:
    """CUPTI's code of a synchronisation; None for an unknown one."""
    words = str(name).lower()
    return next((_TYPES[kind] for begin, kind in _NAMES.items() if words.startswith(begin)), None)
