"""The events that belong to a chosen event, and the events that a search matches."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypedDict, get_args

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from warpladder.dashboard.core.traces import Traces
from warpladder.dashboard.trace.lanes import Int32s, Kind, Lane, Lanes
from warpladder.dashboard.trace.operators import INTERNAL, MODULE
from warpladder.dashboard.trace.ranges import parents
from warpladder.dashboard.views.timeline.query import NAME, OPERATIONS, Highlight, by_table, ranges_of, text_of
from warpladder.data.arrays import NONE, Bools, Int64s, Intervals, lookup, union_lengths
from warpladder.data.nesting import nearest

Table = Literal["ranges", "kernels", "memory_ops", "api_calls"]
_WHAT: Final = {
    "ranges": "range",
    "kernels": "kernel",
    "memory_ops": "memory operation",
    "api_calls": "API call",
    "operations": "operator",
}
#: A launch of a CUDA graph may have thousands of kernels.
_MOST_ARROWS: Final = 100
_OF_DEVICE: Final = ("kernels", "memory_ops")


@dataclass(frozen=True)
class ChosenEvent:
    """A row of a trace table."""

    table: Table
    row: int

    def __str__(self) -> str:
        return f"{self.table}-{self.row}"


class Placed(TypedDict):
    """An event: the place of its lane among the lanes, or -1, and its start and end from the start of the trace."""

    lane: int
    span: tuple[int, int]


class ChosenSpan(Placed):
    """The chosen event, and what is drawn with it.

    Attributes:
        links: the parts of its collective, itself among them, that are shown; without any where it is none.
        arrows: the call of a launch, and each piece of its device work, where both are shown.
    """

    links: list[Placed]
    arrows: list[tuple[Placed, Placed]]


def parse(text: str, traces: Traces) -> ChosenEvent | None:
    """`kernels-12` as a row of a trace; None where the trace has no such row."""
    table, _, number = text.rpartition("-")
    table_name = next((name for name in get_args(Table) if name == table), None)
    if table_name is None or not number.isdecimal() or len(number) > 12 or int(number) >= _length(traces, table_name):
        return None
    return ChosenEvent(table_name, int(number))


def chosen_of(lanes: Lanes, lane: Lane, row: int) -> ChosenEvent:
    if lane.kind == "device":
        return ChosenEvent("kernels", row) if row < lanes.kernels else ChosenEvent("memory_ops", row - lanes.kernels)
    return ChosenEvent("ranges" if lane.kind == "ranges" else "api_calls", row)


def place_in(lanes: Lanes, chosen: ChosenEvent) -> tuple[Kind, int]:
    """The kind of the lane that holds a row of a table, and the row in such a lane: the inverse of `chosen_of`."""
    if chosen.table in _OF_DEVICE:
        return "device", chosen.row + (lanes.kernels if chosen.table == "memory_ops" else 0)
    return ("ranges" if chosen.table == "ranges" else "calls"), chosen.row


def lane_of(traces: Traces, lanes: Lanes, chosen: ChosenEvent) -> Lane | None:
    """The lane of a row; None for an event that overlaps too many others to have one."""
    kind, row = place_in(lanes, chosen)
    start = int(traces.numbers(chosen.table, "start_ns")[chosen.row])
    for lane in lanes.lanes:
        if lane.kind == kind:
            first, last = np.searchsorted(lane.start, [start, start + 1])
            if (lane.row[first:last] == row).any():
                return lane
    return None


def with_chosen(
    traces: Traces, lanes: Lanes, shown: Sequence[Lane], chosen: ChosenEvent | None, related: Sequence[ChosenEvent] = ()
) -> Sequence[Lane]:
    """The lanes to show, and those of the chosen event, which a search may find where no lane is shown, and of what is drawn with it."""
    events = [*([chosen] if chosen else []), *related]
    found = [lane_of(traces, lanes, each) for each in events]
    kinds = {each.kind for each in shown}
    more = {id(lane) for lane in found if lane and lane not in shown and lane.kind in kinds}
    return [each for each in lanes.lanes if id(each) in more or each in shown] if more else shown


def span_of(
    traces: Traces,
    lanes: Lanes,
    shown: Sequence[Lane],
    chosen: ChosenEvent | None,
    linked: Sequence[ChosenEvent] = (),
    launched: Sequence[ChosenEvent] = (),
) -> ChosenSpan | None:
    """The chosen event for the canvas.

    Args:
        linked: the kernels of the collective that it is a part of.
        launched: a call and its device work, see `launch_of`.
    """
    if chosen is None:
        return None

    def placed(events: Sequence[ChosenEvent]) -> list[Placed]:
        return [each for event in events if (each := _placed(traces, lanes, shown, event))["lane"] >= 0]

    call, work = placed(launched[:1]), placed(launched[1:])
    arrows = [(call[0], each) for each in work] if call else []
    return ChosenSpan(**_placed(traces, lanes, shown, chosen), links=placed(linked), arrows=arrows)


def launch_of(traces: Traces, chosen: ChosenEvent) -> list[ChosenEvent]:
    """The call of a launch that the chosen event is a part of, then its device work; nothing where it is no part of one."""
    masks = _of_call(traces, chosen)
    calls, kernels, copies = (np.flatnonzero(masks[table]).tolist() for table in ("api_calls", "kernels", "memory_ops"))
    work = [*(ChosenEvent("kernels", row) for row in kernels), *(ChosenEvent("memory_ops", row) for row in copies)]
    return [ChosenEvent("api_calls", calls[0]), *work[:_MOST_ARROWS]] if calls and work else []


def operators_of(traces: Traces, chosen: ChosenEvent) -> Int64s:
    """Rows of the operators of PyTorch that were open on the calling thread when the chosen event was called, the innermost first."""
    launched = launch_of(traces, chosen)
    call = launched[0] if launched else chosen
    if call.table != "api_calls" or not traces.has_operators:
        return np.empty(0, dtype=np.int64)
    process, thread, at = (int(traces.numbers("api_calls", name)[call.row]) for name in ("process", "thread", "start_ns"))
    names = ("process", "thread", "start_ns", "end_ns")
    processes, threads, start, end = (traces.numbers("operations", name) for name in names)
    around = np.flatnonzero((processes == process) & (threads == thread) & (start <= at) & (at < end))
    # Of operators that begin at once, the outer one comes first in the table.
    inwards: Int64s = around[np.argsort(start[around], kind="stable")]
    return inwards[::-1]


def source_of(traces: Traces, operators: Int64s) -> str:
    """The line of the user's program that led to the innermost operator, such as `train.py(31): step`; empty where it is not recorded."""
    stacks = traces.texts("operations", "stack") if len(operators) else None
    frames = (
        [frame for row in operators for frame in str(stacks.categories[stacks.codes[row]]).split("\n")]
        if stacks is not None
        else []
    )
    return next((frame for frame in frames if frame and not frame.startswith((*INTERNAL, MODULE))), "")


def _placed(traces: Traces, lanes: Lanes, shown: Sequence[Lane], chosen: ChosenEvent) -> Placed:
    lane = lane_of(traces, lanes, chosen)
    start, end = span(traces, chosen, lanes.end_ns)
    place = next((place for place, each in enumerate(shown) if each is lane), -1)
    return Placed(lane=place, span=(start - lanes.begin_ns, end - lanes.begin_ns))


def belongs(traces: Traces, chosen: ChosenEvent, linked: Sequence[int] = ()) -> Highlight:
    """Masks of the events that belong to a chosen event.

    A range includes the ranges in it, and the calls and device work launched in any of these ranges. Another event includes its
    call, the device work of that call, and every range around the event.

    Args:
        linked: rows of `kernels` that belong to it too.
    """
    masks = _of_call(traces, chosen)
    masks["kernels"][list(linked)] = True
    if chosen.table == "ranges":
        masks["ranges"] = _inside(traces, chosen.row)
        for table in (*_OF_DEVICE, "api_calls"):
            if table in traces.tables:
                masks[table] = _held(traces, table, masks["ranges"])
    else:
        masks["ranges"][_ranges_around(traces, chosen)] = True
    return Highlight(np.concatenate([masks["kernels"], masks["memory_ops"]]), masks["ranges"], masks["api_calls"])


def work(traces: Traces, chosen: ChosenEvent, begin_ns: int) -> pd.DataFrame:
    """Kernels and memory operations launched in a range, by name, the longest total first.

    Args:
        begin_ns: start of the trace. `first_ns` and `last_ns` count from it.

    Returns:
        The columns are `what`, `name`, `count`, `total_ns`, `busy_ns` (time in which at least one of them ran), `bytes` (null for
        kernels), `first_ns` (start of the first) and `last_ns` (end of the last).
    """
    inside = _inside(traces, chosen.row)
    parts = []
    for table in (name for name in _OF_DEVICE if name in traces.tables):
        rows = np.flatnonzero(_held(traces, table, inside))
        names = traces.texts(table, NAME[table])
        code, start, end = names.codes[rows].astype(np.int64), *_times(traces, table, rows)
        bytes_ = traces.numbers(table, "bytes")[rows] if table == "memory_ops" else NONE
        frame = pd.DataFrame({"code": code, "start": start, "end": end, "total_ns": end - start, "bytes": bytes_})
        groups = frame.assign(bytes=frame["bytes"].where(frame["bytes"] != NONE)).groupby("code")
        sums = groups.agg(
            count=("start", "size"), total_ns=("total_ns", "sum"), first_ns=("start", "min"), last_ns=("end", "max")
        )
        sums["bytes"] = groups["bytes"].sum(min_count=1)
        sums["what"], sums["name"] = _WHAT[table], [str(names.categories[each]) for each in sums.index]
        sums["busy_ns"] = union_lengths(code, start, end, len(names.categories))[sums.index]
        parts.append(sums)
    columns = ["what", "name", "count", "total_ns", "busy_ns", "bytes", "first_ns", "last_ns"]
    joined = pd.concat(parts, ignore_index=True)[columns] if parts else pd.DataFrame(columns=columns)
    joined[["first_ns", "last_ns"]] -= begin_ns
    return joined.astype({"bytes": "Float64"}).sort_values(["total_ns", "name"], ascending=[False, True], ignore_index=True)


def busy_ns(traces: Traces, chosen: ChosenEvent) -> int:
    """Nanoseconds in which at least one kernel or memory operation of a range ran."""
    inside = _inside(traces, chosen.row)
    tables = [table for table in _OF_DEVICE if table in traces.tables]
    pairs = [_times(traces, table, np.flatnonzero(_held(traces, table, inside))) for table in tables]
    return Intervals(*(np.concatenate(column) for column in zip(*pairs, strict=True))).length if pairs else 0


def around(traces: Traces, chosen: ChosenEvent, begin_ns: int) -> pd.DataFrame:
    """A kernel, memory operation or call, the other events of its call, and the operators and ranges around it, the innermost first.

    Returns:
        The columns are `what`, `name`, `start_ns` (from the start of the trace) and `duration_ns` (null for a range that was
        never closed).
    """
    masks = _of_call(traces, chosen)
    rows = {table: np.flatnonzero(masks[table]) for table in (*_OF_DEVICE, "api_calls")}
    parts = []
    around_it = {"operations": operators_of(traces, chosen), "ranges": np.array(_ranges_around(traces, chosen), dtype=np.int64)}
    for table, places in {**rows, **around_it}.items():
        if len(places):
            start, end = _times(traces, table, places)
            lasts = pd.array(np.where(end == NONE, NONE, end - start), dtype="Int64")
            lasts[end == NONE] = pd.NA
            names = [name.removeprefix("void ") for name in text_of(traces, table, NAME[table], places)]
            parts.append(
                pd.DataFrame({"what": _WHAT[table], "name": names, "start_ns": start - begin_ns, "duration_ns": lasts})
            )
    return pd.concat(parts, ignore_index=True)


def by_time_ns(traces: Traces, chosen: ChosenEvent) -> int:
    """The summed durations of device work that is attributed by time to a range or to a range in it."""
    inside, total = _inside(traces, chosen.row), 0
    for table in _OF_DEVICE:
        if table in traces.tables:
            by_time = _held(traces, table, inside) & ~_held(traces, table, inside, ("range_id",))
            total += int(traces.durations(table)[by_time].sum())
    return total


def title(traces: Traces, chosen: ChosenEvent) -> str:
    """The chosen event in words, such as `range step`."""
    (name,) = text_of(traces, chosen.table, NAME[chosen.table], np.array([chosen.row]))
    return f"{_WHAT[chosen.table]} {name.removeprefix('void ')}"


def span(traces: Traces, chosen: ChosenEvent, end_ns: int) -> tuple[int, int]:
    """Start and end of the chosen event; the end is `end_ns` for a range that was never closed."""
    start, end = (int(traces.numbers(chosen.table, column)[chosen.row]) for column in ("start_ns", "end_ns"))
    return start, end_ns if end == NONE else end


def _length(traces: Traces, table: str) -> int:
    return len(traces.numbers(table, "start_ns")) if table in traces.tables else 0


def _times(traces: Traces, table: str, rows: Int64s) -> tuple[Int64s, Int64s]:
    return traces.numbers(table, "start_ns")[rows], traces.numbers(table, "end_ns")[rows]


def _inside(traces: Traces, row: int) -> Bools:
    """Mask of a range and all ranges in it."""
    above = parents(traces)
    inside: Bools = nearest(above, np.arange(len(above)) == row) >= 0
    return inside


def _held(traces: Traces, table: str, ranges: Bools, columns: Sequence[str] = ("range_id", "time_range_id")) -> Bools:
    """Mask of the rows of a table whose innermost range, by thread or by time, is one of the ranges."""
    ids = traces.numbers("ranges", "range_id")
    if table in _OF_DEVICE:
        places = [lookup(ids, traces.numbers(table, column)) for column in columns]
        held: Bools = np.logical_or.reduce([(place >= 0) & ranges[place] for place in places])
        return held
    pieces = [lookup(ids, range_id) for (range_id,) in traces.scan(table, "range_id")]
    return np.concatenate([(place >= 0) & ranges[place] for place in pieces])


def _ranges_around(traces: Traces, chosen: ChosenEvent) -> list[int]:
    """Rows of the ranges that an event was called in, the innermost first."""
    if "ranges" not in traces.tables:
        return []
    place = int(ranges_of(traces, chosen.table, np.array([chosen.row]))[0])
    above, places = parents(traces).tolist(), list[int]()
    while place >= 0 and len(places) < len(above):
        places.append(place)
        place = above[place]
    return places


def _of_call(traces: Traces, chosen: ChosenEvent) -> dict[str, Bools]:
    """Masks of the chosen event, its call, and all device work of that call. A graph launch has several pieces of device work."""
    masks = {name: np.zeros(_length(traces, name), dtype=bool) for name in get_args(Table)}
    masks[chosen.table][chosen.row] = True
    if chosen.table == "ranges":
        return masks
    process, correlation = (int(traces.numbers(chosen.table, column)[chosen.row]) for column in ("process", "correlation"))
    for table in (*_OF_DEVICE, "api_calls"):
        if table in traces.tables and table != chosen.table:
            rows, ids, processes = traces.find(table, "correlation", np.array([correlation]), "process")
            rows = rows[(ids == correlation) & (processes == process)]
            # Calls normally have unique correlations. Where they do not, the first call is taken, as in all other queries.
            masks[table][rows[:1] if table == "api_calls" else rows] = True
    return masks


#: The most characters of a text to search for. A longer text is cut.
MOST_CHARACTERS: Final = 300
#: An event is visible in a window that is at most this many times as long.
_VISIBLE: Final = 300
#: A window is this many times as long as an event that would not be visible in it otherwise.
_ROOM: Final = 100
_LEAST_NS: Final = 1_000


@dataclass(frozen=True)
class Search:
    """A search for names.

    Attributes:
        text: a part of the name, in any case; empty for no search.
        kinds: the kinds of lanes to search in.
    """

    text: str
    kinds: tuple[str, ...]


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


class SearchHits(TypedDict):
    """The hits of a search, for the search box and the ruler.

    Attributes:
        text: the text that was searched for.
        total: number of hits.
        place: the place of the chosen event among the hits, from 0; -1 where it is not a hit.
        marks: the bins of the window in which hits start.
    """

    text: str
    total: int
    place: int
    marks: list[int]


def hits(traces: Traces, lanes: Lanes, search: Search) -> Hits:
    """The events that have a lane and whose name matches. Kernels match with their full names.

    Each distinct name is compared once. Each event then takes one look-up.
    """
    parts: list[tuple[Int64s, Int32s, Int32s]] = []
    masks = _masks(traces, search) if search.text else {}
    for number, lane in enumerate(lanes.lanes):
        if lane.kind in search.kinds and masks:
            places = np.flatnonzero(_name_mask(traces, lanes, lane, masks))
            if len(places):
                parts.append((lane.start[places], np.full(len(places), number, dtype=np.int32), lane.row[places]))
    if not parts:
        return Hits(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int32), np.empty(0, dtype=np.int32))
    start, lane_number, row = (np.concatenate(column) for column in zip(*parts, strict=True))
    # Lanes are sorted, so that a stable sort merges them.
    order = np.argsort(start, kind="stable") if len(parts) > 1 else slice(None)
    return Hits(start[order], lane_number[order], row[order])


def place_of(traces: Traces, lanes: Lanes, hits: Hits, chosen: ChosenEvent | None) -> int:
    """The place of the chosen event among the hits; -1 where it is not a hit."""
    if chosen is None or not len(hits):
        return -1
    start = int(traces.numbers(chosen.table, "start_ns")[chosen.row])
    kind, row = place_in(lanes, chosen)
    for place in range(*np.searchsorted(hits.start, [start, start + 1]).tolist()):
        if hits.row[place] == row and lanes.lanes[int(hits.lane[place])].kind == kind:
            return place
    return -1


def step(
    traces: Traces, lanes: Lanes, hits: Hits, chosen: ChosenEvent | None, window: tuple[int, int], steps: int
) -> ChosenEvent | None:
    """The hit some steps after the chosen hit, or before it for negative steps. The first hit follows the last.

    Where no hit is chosen, the steps are counted from the chosen event if it is in the window, or else from the window's edge.

    Args:
        window: start and end on the trace's clock, nanoseconds.
        steps: not 0.
    """
    if not len(hits):
        return None
    place = place_of(traces, lanes, hits, chosen)
    if place < 0:
        at = window[0] if steps > 0 else window[1]
        if chosen is not None:
            start = int(traces.numbers(chosen.table, "start_ns")[chosen.row])
            at = start if window[0] <= start < window[1] else at
        # The hit at or after the edge is the first step forward, and the hit before it the first step back.
        place = int(np.searchsorted(hits.start, at, side="left")) - (steps > 0)
    place = (place + steps) % len(hits)
    return chosen_of(lanes, lanes.lanes[int(hits.lane[place])], int(hits.row[place]))


def window_on(lanes: Lanes, window: tuple[int, int], start: int, end: int) -> tuple[int, int]:
    """A window that shows an event: the same window where it does, else a window of that length around the event.

    The new window is shorter where the event would be too narrow to be seen, and longer where the event would not fit.
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


def _masks(traces: Traces, search: Search) -> dict[str, Bools]:
    """For each table with names, a mask of its distinct names that match; the last place is for a missing name."""
    masks = {}
    for table in get_args(Table):
        if table in traces.tables:
            names = pa.array(traces.texts(table, NAME[table]).categories, pa.large_string())
            mask = _match(names, search)
            if table == "memory_ops":
                mask |= _match(pa.array([OPERATIONS.get(name, name) for name in names.to_pylist()], pa.large_string()), search)
            masks[table] = np.append(mask, False)
    return masks


def _match(names: pa.Array, search: Search) -> Bools:
    matched = pc.match_substring(names, search.text, ignore_case=True)
    mask: Bools = np.array(matched.to_numpy(zero_copy_only=False), dtype=bool)
    return mask


def _name_mask(traces: Traces, lanes: Lanes, lane: Lane, masks: dict[str, Bools]) -> Bools:
    """Whether the name of each event of a lane matches."""
    mask = np.zeros(len(lane), dtype=bool)
    for table, own, rows in by_table(lanes, lane, lane.row):
        # Most streams have many kernels, and often no kernel matches.
        if masks[table].any():
            mask[own] = masks[table][traces.texts(table, NAME[table]).codes[rows]]
    return mask
