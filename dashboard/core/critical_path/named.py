"""The waits that a profile names: for which stream or event another stream or the host waited."""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd

from warpladder.dashboard.core.critical_path.waits import LONG_AGO, Work
from warpladder.data.arrays import NONE, Bools, Int64s

#: In `Named.of_call`: the profile does not name what the call waited for.
UNNAMED: Final = NONE - 1
#: Work may wait for more streams, of which the last ones count.
_MOST: Final = 4
_Key = tuple[int, int, int]


@dataclass(frozen=True)
class Named:
    """The waits that a profile names.

    Attributes:
        of_work: shape (works, any), the works that each work waited for; `NONE` is no work.
        told: of works, whether they waited for an event that is named.
        of_call: by row of `api_calls`, the work that a call of the host waited for, `NONE` for none in the profile, or `UNNAMED`.
        by_stream: by row of `api_calls`, whether the call lets a stream wait for an event that is named.
    """

    of_work: Int64s
    told: Bools
    of_call: Int64s
    by_stream: Bools


def named_waits(work: Work, rows: pd.DataFrame, calls: int) -> Named:
    """The named waits of a rank.

    Args:
        rows: of table `synchronizations`, with `NONE` for null, times on the job's clock, `call`, the place of its call in `api_calls`, and
            `record` and `record_ns`, the place and the start of the call that recorded the event.
        calls: length of `api_calls`.
    """
    streams = _Streams(work)
    every: list[Any] = list(rows.itertuples())
    # An event is recorded before it is waited for. Where the profile lacks the call, only the order of correlations tells when.
    steps = [
        (row.start_ns if row.record == NONE else row.record_ns, False, place)
        for place, row in enumerate(every)
        if row.event_stream != NONE
    ]
    steps += [(row.start_ns, True, place) for place, row in enumerate(every)]
    of_event: dict[int, set[int]] = {}
    of_work: dict[int, set[int]] = {}
    of_call, by_stream = np.full(calls, UNNAMED), np.zeros(calls, bool)
    for time, waits, place in sorted(steps):
        row = every[place]
        if not waits:
            before = row.event_correlation if row.record == NONE else NONE
            of_event[place] = streams.launched(streams.of_event(row.process, row.device, row.event_stream), time, before)
        elif row.kind == "stream_wait_event":
            if row.stream == NONE or row.event_stream == NONE:
                continue
            if row.call != NONE:
                by_stream[row.call] = True
            following = streams.let_wait((row.process, row.device, row.stream), time, of_event[place])
            if following != NONE:
                of_work.setdefault(following, set()).update(of_event[place])
        elif row.call != NONE:
            sources = of_event.get(place, set())
            if row.kind == "stream":
                sources = streams.launched((row.process, row.device, row.stream), time)
            elif row.kind == "context":
                sources = streams.of_device(row.process, row.device, time)
            of_call[row.call] = max(sources, key=work.end.item, default=NONE)
    return Named(*_of_works(work, of_work), of_call, by_stream)


def _of_works(work: Work, of_work: dict[int, set[int]]) -> tuple[Int64s, Bools]:
    last = {each: sorted(sources, key=lambda source: -int(work.end[source]))[:_MOST] for each, sources in of_work.items()}
    columns, told = np.full((len(work), max(map(len, last.values()), default=0)), NONE), np.zeros(len(work), bool)
    for each, sources in last.items():
        told[each], columns[each, : len(sources)] = True, sources
    return columns, told


class _Streams:
    """The work of each stream in its order, and the waits that were put between."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._rows = {key: np.flatnonzero(work.stream == number) for number, key in enumerate(work.streams)}
        # Work of a stream starts in the order in which it is launched.
        self._launched = {key: work.launches_of(rows) for key, rows in self._rows.items()}
        self._correlation = {key: np.maximum.accumulate(work.correlation[rows]) for key, rows in self._rows.items()}
        self._waits: dict[_Key, list[tuple[int, set[int]]]] = {}

    def of_event(self, process: int, device: int, number: int) -> _Key:
        """The stream of an event that is waited for on a device: one of that device, or else of the only other one with such a stream."""
        same = [key for key in self._rows if key[0] == process and key[2] == number]
        return same[0] if len(same) == 1 else (process, device, number)

    def _place(self, stream: _Key, time: int) -> int:
        """How many works of a stream had been launched at a time."""
        return int(np.searchsorted(self._launched[stream], time, side="right")) if stream in self._rows else 0

    def launched(self, stream: _Key, time: int, correlation: int = NONE) -> set[int]:
        """The work that a new work on a stream would wait for at a time: the last one on it, and those that the stream waits for since then.

        Args:
            correlation: of a call, before which the work was launched; `NONE` for any.
        """
        place = self._place(stream, time)
        if correlation != NONE and place:
            place = min(place, int(np.searchsorted(self._correlation[stream], correlation, side="left")))
        last = int(self._rows[stream][place - 1]) if place else NONE
        since = int(self._launched[stream][place - 1]) if place else LONG_AGO
        waits = {each for begin, sources in self._waits.get(stream, ()) if begin >= since for each in sources}
        return waits | ({last} if place else set())

    def of_device(self, process: int, device: int, time: int) -> set[int]:
        """The last works on the streams of a device at a time."""
        return set().union(*(self.launched(key, time) for key in self._rows if key[:2] == (process, device)))

    def let_wait(self, stream: _Key, time: int, sources: set[int]) -> int:
        """Let what follows on a stream wait for some works. Returns the next work on it; `NONE` without any."""
        place = self._place(stream, time)
        since = int(self._launched[stream][place - 1]) if place else LONG_AGO
        waits = [each for each in self._waits.get(stream, ()) if each[0] >= since]
        self._waits[stream] = [*waits, (time, sources)]
        rows = self._rows.get(stream, np.empty(0, np.int64))
        return int(rows[place]) if place < len(rows) else NONE
