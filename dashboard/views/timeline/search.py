"""Search in a trace: kernels, memory operations, ranges and API calls whose name holds a text or matches a pattern."""

from dataclasses import dataclass
from typing import Final, TypedDict

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from warpladder.dashboard.core.traces import Int64s, Traces
from warpladder.dashboard.trace.lanes import Int32s, Kind, Lane, Lanes
from warpladder.dashboard.views.timeline.query import OPERATIONS, Bools
from warpladder.dashboard.views.timeline.selection import Chosen, chosen_of, place_in, table_of
from warpladder.errors import Error

#: The most characters of a text to search for. A longer one is cut.
MOST_CHARACTERS: Final = 300
#: An event is visible in a window that is at most this many times as long.
_VISIBLE: Final = 300
#: A window is this many times as long as an event that would not be visible in it otherwise.
_ROOM: Final = 100
_LEAST_NS: Final = 1_000


class PatternError(Error):
    """A pattern that is no regular expression. Its message says why, in one line."""


@dataclass(frozen=True)
class Wanted:
    """What to search for.

    Attributes:
        text: a part of the name, in any case; empty for no search.
        regex: the text is a regular expression, in the syntax of RE2.
        kinds: the kinds of lanes to search in.
    """

    text: str
    regex: bool
    kinds: tuple[Kind, ...]


@dataclass(frozen=True, eq=False)
class Hits:
    """The events that a search finds, by their start and then by their lane.

    Attributes:
        start: shape (n,), nanoseconds on the trace's clock.
        lane: shape (n,), the place of each event's lane in `Lanes.lanes`.
        row: shape (n,), the row of each event, as in `Lane.row`.
    """

    start: Int64s
    lane: Int32s
    row: Int32s

    def __len__(self) -> int:
        return len(self.start)

    def bins(self, edges: Int64s) -> Int64s:
        """The bins between these edges in which a hit starts."""
        return np.flatnonzero(np.diff(np.searchsorted(self.start, edges, side="left")))


class Found(TypedDict):
    """The hits of a search, for the search box and the ruler.

    Attributes:
        text: the text that was searched for.
        regex: it is a regular expression.
        total: number of hits.
        place: that of the chosen event among them, from 0; -1 where it is none of them.
        marks: the bins of the window in which hits start.
        error: why the text is no regular expression; empty where it is one.
    """

    text: str
    regex: bool
    total: int
    place: int
    marks: list[int]
    error: str


def hits(traces: Traces, lanes: Lanes, wanted: Wanted) -> Hits:
    """The events that have a lane and whose name is wanted. Kernels are found by their full names.

    The names are compared once each. The time for the events themselves is that of one look-up each.

    Raises:
        PatternError: the text is no regular expression.
    """
    found: list[tuple[Int64s, Int32s, Int32s]] = []
    masks = _masks(traces, wanted) if wanted.text else {}
    for number, lane in enumerate(lanes.lanes):
        if lane.kind in wanted.kinds and masks:
            places = np.flatnonzero(_named(traces, lanes, lane, masks))
            if len(places):
                found.append((lane.start[places], np.full(len(places), number, dtype=np.int32), lane.row[places]))
    if not found:
        return Hits(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int32), np.empty(0, dtype=np.int32))
    start, lane_number, row = (np.concatenate(column) for column in zip(*found, strict=True))
    # Lanes are sorted, so that a stable sort merges them.
    order = np.argsort(start, kind="stable") if len(found) > 1 else slice(None)
    return Hits(start[order], lane_number[order], row[order])


def place_of(traces: Traces, lanes: Lanes, found: Hits, chosen: Chosen | None) -> int:
    """The place of the chosen event among the hits; -1 where it is none of them."""
    if chosen is None or not len(found):
        return -1
    start = int(traces.numbers(chosen.table, "start_ns")[chosen.row])
    kind, row = place_in(lanes, chosen)
    for place in range(*np.searchsorted(found.start, [start, start + 1]).tolist()):
        if found.row[place] == row and lanes.lanes[int(found.lane[place])].kind == kind:
            return place
    return -1


def step(
    traces: Traces, lanes: Lanes, found: Hits, chosen: Chosen | None, window: tuple[int, int], steps: int
) -> Chosen | None:
    """The hit some steps after the chosen one, or before it for negative steps. The first one follows the last one.

    Where no hit is chosen, the steps are counted from the chosen event if it is in the window, or else from the window's edge.

    Args:
        window: start and end on the trace's clock, nanoseconds.
        steps: not 0.
    """
    if not len(found):
        return None
    place = place_of(traces, lanes, found, chosen)
    if place < 0:
        at = window[0] if steps > 0 else window[1]
        if chosen is not None:
            start = int(traces.numbers(chosen.table, "start_ns")[chosen.row])
            at = start if window[0] <= start < window[1] else at
        # The hit at or after the edge is the first step forward, and the one before it the first step back.
        place = int(np.searchsorted(found.start, at, side="left")) - (steps > 0)
    place = (place + steps) % len(found)
    return chosen_of(lanes, lanes.lanes[int(found.lane[place])], int(found.row[place]))


def window_on(lanes: Lanes, window: tuple[int, int], start: int, end: int) -> tuple[int, int]:
    """A window that shows an event: the same one where it does, else one of its length around the event.

    It is shorter where the event would be too narrow to be seen, and longer where the event would not fit.
    """
    begin, until = window
    length, lasts = until - begin, end - start
    fits = max(lasts * _VISIBLE, _LEAST_NS) >= length >= lasts
    if fits and begin <= start and end <= until:
        return window
    if not fits:
        length = lasts + lasts // 4 if lasts > length else max(lasts * _ROOM, _LEAST_NS)
    length = max(min(length, lanes.end_ns - lanes.begin_ns), 1)
    begin = min(max((start + end - length) // 2, lanes.begin_ns), lanes.end_ns - length)
    return begin, begin + length


def _masks(traces: Traces, wanted: Wanted) -> dict[str, Bools]:
    """For each table with names, which of its distinct names are wanted; the last place is for a missing name."""
    found = {}
    for table, column in (("kernels", "full_name"), ("memory_ops", "kind"), ("ranges", "text"), ("api_calls", "name")):
        if table in traces.tables:
            names = pa.array(traces.texts(table, column).categories, pa.large_string())
            mask = _match(names, wanted)
            if table == "memory_ops":
                mask |= _match(pa.array([OPERATIONS.get(name, name) for name in names.to_pylist()], pa.large_string()), wanted)
            found[table] = np.append(mask, False)
    return found


def _match(names: pa.Array, wanted: Wanted) -> Bools:
    match = pc.match_substring_regex if wanted.regex else pc.match_substring
    try:
        matched = match(names, wanted.text, ignore_case=True)
    except pa.ArrowInvalid as error:
        raise PatternError(_reason(str(error))) from error
    mask: Bools = np.array(matched.to_numpy(zero_copy_only=False), dtype=bool)
    return mask


def _reason(told: str) -> str:
    """The reason that RE2 gives, such as `missing ): (gemm`."""
    return " ".join(told.split("Invalid regular expression:", 1)[-1].split())


def _named(traces: Traces, lanes: Lanes, lane: Lane, masks: dict[str, Bools]) -> npt.NDArray[np.bool_]:
    """Whether each event of a lane has a wanted name."""
    if lane.kind != "device":
        table, column = table_of(lane.kind)
        named: Bools = masks[table][traces.texts(table, column).codes[lane.row]]
        return named
    found = np.zeros(len(lane), dtype=bool)
    kernel = lane.row < lanes.kernels
    for table, column, of_table, shift in (("kernels", "full_name", kernel, 0), ("memory_ops", "kind", ~kernel, lanes.kernels)):
        # Most streams have many kernels, none of which may be wanted.
        if table in masks and masks[table].any() and of_table.any():
            found[of_table] = masks[table][traces.texts(table, column).codes[lane.row[of_table] - shift]]
    return found
