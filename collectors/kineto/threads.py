"""Numbers the processes and threads of a trace, whose ids are integers of any size or texts, such as `[TP00] 100`."""

import re
from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa

from warpladder.collectors.kineto.events import Event
from warpladder.collectors.trace.model import ID_BITS, ReportError, thread_of
from warpladder.data.arrays import Int64s, numbered
from warpladder.data.columns import FAR

Key: TypeAlias = int | str

_INTEGER: Final = re.compile(r"\s*(-?\d{1,18})(?:\.0*)?\s*\Z", re.ASCII)
_LAST_INTEGER: Final = re.compile(r"(\d{1,18})\D*\Z", re.ASCII)


class Threads:
    """Gives each thread a global id of its own, in which `process_of` and `thread_of` find codes of the process and the
    thread. `processes`: the ids of processes, by code."""

    def __init__(self) -> None:
        self._process_codes: dict[Key, int] = {}
        self._thread_keys: dict[Key, int] = {}
        self._pairs: dict[int, int] = {}

    @property
    def processes(self) -> list[Key]:
        return list(self._process_codes)

    def process_codes(self, events: Sequence[Event]) -> Int64s:
        """The code of the process of each event."""
        return _codes([event.pid for event in events], self._process_codes)

    def global_ids(self, events: Sequence[Event]) -> Int64s:
        """The global id of the thread of each event. Raises ReportError: the trace has more threads than global ids."""
        process = self.process_codes(events)
        pair = process << 32 | _codes([event.tid for event in events], self._thread_keys)
        number, first = numbered(pair)
        for each in np.sort(pair[first]).tolist():
            self._pairs.setdefault(each, len(self._pairs))
        if max(len(self._pairs), len(self._process_codes)) >> ID_BITS:
            raise ReportError("names more than 16 million threads; it is no trace of a profiler")
        return np.asarray(process << ID_BITS | np.array([self._pairs[each] for each in pair[first].tolist()], np.int64)[number])

    def process_numbers(self, process: Int64s) -> Int64s:
        """The process ids of the trace; of a text or a negative id, its last integer, or another number that no process has."""
        return np.asarray(_numbers(self.processes, least=0)[process])

    def thread_numbers(self, global_ids: Int64s) -> Int64s:
        """The same for threads, which may have negative ids."""
        of_key = _numbers(list(self._thread_keys), least=-FAR)
        key = np.fromiter(self._pairs, np.int64, len(self._pairs)) & 0xFFFF_FFFF
        return np.asarray(of_key[np.append(key, 0)[thread_of(global_ids)]])

    def texts(self) -> list[str]:
        """Ids of processes and threads that are no integers."""
        return [key for key in (*self._process_codes, *self._thread_keys) if isinstance(key, str)]


def _codes(values: Sequence[Any], known: dict[Key, int]) -> Int64s:
    """The code of each id, the next free one for a new id. An id that is missing counts as 0."""
    try:
        ids = pa.array(values, pa.int64()).fill_null(0)
    except (pa.ArrowException, OverflowError):
        ids = pa.array(["0" if value is None else str(value).encode("utf-8", "replace") for value in values], pa.string())
    encoded = ids.dictionary_encode()
    codes = np.array([known.setdefault(_key(each), len(known)) for each in encoded.dictionary.to_pylist()], np.int64)
    return np.asarray(codes[encoded.indices.to_numpy()])


def _key(value: int | str) -> Key:
    """An id as it identifies a process or thread: `"7"` is 7."""
    if isinstance(value, int):
        return value if abs(value) < FAR else str(value)
    found = _INTEGER.match(value)
    return int(found[1]) if found else value


def _numbers(keys: Sequence[Key], least: int) -> Int64s:
    """A number for each id, all of them different: an integer itself, a text's last integer, or the next one that is free."""
    taken = {key for key in keys if isinstance(key, int) and key >= least}
    numbers, free = [], 1
    for key in keys:
        if key not in taken:
            found = _LAST_INTEGER.search(str(key))
            number = int(found[1]) if found else free
            while number in taken:
                number, free = free, free + 1
            taken.add(number)
            key = number
        numbers.append(int(key))
    return np.array([*numbers, 0], np.int64)
