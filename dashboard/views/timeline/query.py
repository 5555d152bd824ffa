"""The lanes and events of a window, and their detail: wide events are drawn alone, and bars show the busy time of the others."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from warpladder.dashboard.core.traces import COPIES, MEMORY_OPERATIONS, Traces
from warpladder.dashboard.trace.describe import short_names
from warpladder.dashboard.trace.lanes import BLOCK, Int32s, Lane, Lanes
from warpladder.dashboard.trace.ranges import parents
from warpladder.dashboard.trace.samples import is_of_measurement, of_the_measurement
from warpladder.data.arrays import NONE, Bools, Int64s, lookup
from warpladder.data.nesting import nearest

#: Approximate limit of rectangles and bars in a window, over all lanes.
MOST_DRAWN: Final = 12_000
_FEWEST_BINS: Final = 60
#: The most events of a bar that are sampled to choose its colour.
_LOOKED_AT: Final = 32


@dataclass(frozen=True, eq=False)
class Window:
    """A time span on the trace's clock, from `begin_ns` to `end_ns`, in `bins` parts of whole nanoseconds.

    The lengths of the bins differ by at most one nanosecond.
    """

    begin_ns: int
    end_ns: int
    bins: int

    @property
    def edges(self) -> Int64s:
        """The edges of the bins, shape (bins + 1,), in nanoseconds."""
        # Quotient and remainder are computed separately, because the span times the number of bins can exceed 63 bits.
        quotient, rest = divmod(self.end_ns - self.begin_ns, self.bins)
        numbers = np.arange(self.bins + 1, dtype=np.int64)
        return self.begin_ns + numbers * quotient + numbers * rest // self.bins

    def bin_of(self, times: Int64s) -> Int64s:
        """The bin that holds each time; the first or last bin for a time outside of the window."""
        return np.clip(np.searchsorted(self.edges, times, side="right") - 1, 0, self.bins - 1)


@dataclass(frozen=True, eq=False)
class Detail:
    """A lane within a window.

    Attributes:
        alone: places in the lane of the events that are drawn one by one. These are at least as long as a bin, or share no bin
            with another short event.
        bin: shape (b,), the bins that hold the other events. Each is drawn as one bar.
        busy_ns: shape (b,), nanoseconds of the bin in which at least one event ran.
        count: shape (b,), the number of events in the bin. An event across an edge counts in both bins.
        looked_at: shape (b, k), places in the lane of up to `_LOOKED_AT` events of the bin, evenly spaced. The last place is
            repeated where the bin has fewer.
        looked_ns: shape (b, k), the durations of these events; at least 1, so that events without duration count, and 0 for a
            repeat.
    """

    alone: Int64s
    bin: Int64s
    busy_ns: Int64s
    count: Int64s
    looked_at: Int64s
    looked_ns: Int64s


def window(begin_ns: int, end_ns: int, lanes: int, pixels: int) -> Window:
    """A window with one bin for each pixel. Bins are wider where the lanes would have more than `MOST_DRAWN` bins in all.

    No bin is shorter than a nanosecond.
    """
    bins = min(pixels, max(MOST_DRAWN // max(lanes, 1), _FEWEST_BINS), max(end_ns - begin_ns, 1))
    return Window(begin_ns, max(end_ns, begin_ns + 1), max(bins, 1))


def detail(lane: Lane, window: Window) -> Detail:
    """The detail of a lane in a window.

    Its time grows with the number of bins, and only logarithmically with the number of events.
    """
    edges = window.edges
    first, last = lane.touching(edges)
    wide = _wide(lane, window, int(first[0]), int(last[-1]))
    touched = _touched(lane, window, wide)
    narrow = np.where(last > first, last - first, 0) - touched
    alone = np.union1d(wide, _lonely(lane, window, first, narrow, wide))
    if len(alone) > len(wide):
        narrow = np.where(last > first, last - first, 0) - _touched(lane, window, alone)
    filled = np.flatnonzero(narrow > 0)
    busy = np.diff(lane.covered_until(edges))[filled] - _covered_by(lane, alone, edges)[filled]
    looked_at, looked_ns = _looked_at(lane, first[filled], last[filled], alone)
    return Detail(alone, filled, busy, narrow[filled], looked_at, looked_ns)


def _wide(lane: Lane, window: Window, first: int, last: int) -> Int64s:
    """The places, from `first` to before `last`, of events that last at least a bin."""
    if last <= first:
        return np.empty(0, dtype=np.int64)
    span = window.end_ns - window.begin_ns
    least = -(-span // window.bins)
    blocks = np.arange(first // BLOCK, (last - 1) // BLOCK + 1)
    blocks = blocks[lane.longest[blocks] >= least]
    places = (blocks[:, None] * BLOCK + np.arange(BLOCK)).ravel()
    places = places[(places >= first) & (places < last)]
    wide: Int64s = places[lane.covered[places + 1] - lane.covered[places] >= least]
    return wide


def _span_of(lane: Lane, window: Window, places: Int64s) -> tuple[Int64s, Int64s]:
    """The first and last bin of each event. An event without duration is in the bin of its start."""
    start = lane.start[places]
    return window.bin_of(start), window.bin_of(np.maximum(lane.end(places) - 1, start))


def _touched(lane: Lane, window: Window, places: Int64s) -> Int64s:
    """The number of the events in each bin."""
    begin, end = _span_of(lane, window, places)
    change = np.bincount(begin, minlength=window.bins + 1) - np.bincount(end + 1, minlength=window.bins + 1)
    return np.cumsum(change[: window.bins])


def _lonely(lane: Lane, window: Window, first: Int64s, narrow: Int64s, wide: Int64s) -> Int64s:
    """The places of short events whose bins hold no other short event."""
    single = np.flatnonzero(narrow == 1)
    place = first[single]
    # At most one wide event precedes the short one in the bin, because a second one would fill the bin.
    behind_wide = np.isin(place, wide)
    place = np.unique(place + behind_wide)
    place = place[place < len(lane)]
    begin, end = _span_of(lane, window, place)
    lonely: Int64s = place[(narrow[begin] == 1) & (narrow[end] == 1)]
    return lonely


def _covered_by(lane: Lane, places: Int64s, edges: Int64s) -> Int64s:
    """Nanoseconds of each bin in which at least one event ran."""
    if not len(places):
        return np.zeros(len(edges) - 1, dtype=np.int64)
    total = np.zeros(len(places) + 1, dtype=np.int64)
    np.cumsum(lane.covered[places + 1] - lane.covered[places], out=total[1:])
    only = Lane(lane.kind, lane.owner, "", "", lane.start[places], total, lane.row[places], 0)
    return np.diff(only.covered_until(edges))


def _looked_at(lane: Lane, first: Int64s, last: Int64s, alone: Int64s) -> tuple[Int64s, Int64s]:
    count = last - first
    steps = np.arange(_LOOKED_AT)
    few = count[:, None] <= _LOOKED_AT
    place = first[:, None] + np.where(few, np.minimum(steps, count[:, None] - 1), steps * count[:, None] // _LOOKED_AT)
    lasts = lane.covered[place + 1] - lane.covered[place]
    counted = (~few | (steps < count[:, None])) & ~np.isin(place, alone)
    return place, np.where(counted, np.maximum(lasts, 1), 0)


ColorBy = Literal["variant", "kernel"]
Codes = npt.NDArray[np.uint8]

#: Suffix of the text of a range to which an event is attributed by time.
BY_TIME: Final = ", by time"
#: Table -> the column with the names of its events.
NAME: Final = {"ranges": "text", "kernels": "full_name", "memory_ops": "kind", "api_calls": "name", "operations": "name"}
#: Words for the kinds of memory operations on their own.
OPERATIONS: Final = MEMORY_OPERATIONS | {kind: f"copy {words}" for kind, words in COPIES.items()}
_MOST_NAMES: Final = 9
#: The most kernel names of a trace for which all short names are made, at about 40 µs each.
_SHORT_OF_MOST: Final = 10_000
#: The facts of kernels are read only for traces of at most this many, because eight columns of more rows take over a second.
_FACTS_OF_MOST: Final = 1_500_000
_SHAPE: Final = ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z", "registers")


class Swatch(NamedTuple):
    """The meaning of a colour.

    Attributes:
        kind: `variant`, `kernel`, `copy`, `call`, `range`, or `other` for kernels without a colour of their own.
        name: plain text; for a variant, its name.
        workload: the variant's workload; empty for other kinds.
    """

    kind: str
    name: str
    workload: str = ""


OTHER: Final = 0
_RANGE: Final = 1
_FIXED: Final = (
    Swatch("other", "other kernels"),
    Swatch("range", "range"),
    Swatch("copy", "copy to the device"),
    Swatch("copy", "copy to the host"),
    Swatch("copy", "other memory operation"),
    Swatch("call", "launch"),
    Swatch("call", "copy or memory"),
    Swatch("call", "synchronise"),
    Swatch("call", "other call"),
)
_COPIES: Final = {"h2d": 2, "unified_h2d": 2, "d2h": 3, "unified_d2h": 3}
_OTHER_COPY: Final = 4
_CALLS: Final = (("Launch", 5), ("Memcpy", 6), ("Memset", 6), ("Malloc", 6), ("Free", 6), ("Synchronize", 7))
_OTHER_CALL: Final = 8


@dataclass(frozen=True, eq=False)
class Coloring:
    """Colours of a trace's events, as places in `swatches`.

    Attributes:
        by: the colours of kernels are by variant or by kernel name.
        of_range: colour of each row of `ranges`.
        of_launch: colour of the kernels launched in each row of `ranges`.
        of_name: by table, the colour by the codes of the column `NAME`.
        short: short names of kernels by their full names; empty for a trace with very many names.
    """

    swatches: tuple[Swatch, ...]
    by: ColorBy
    of_range: Codes
    of_launch: Codes
    of_name: Mapping[str, Codes]
    short: Mapping[str, str]

    def of(self, traces: Traces, lanes: Lanes, lane: Lane, rows: Int64s | Int32s) -> Codes:
        """The colour of each event of a lane, by its row."""
        color: Codes = np.empty(rows.shape, dtype=np.uint8)
        for table, places, own in by_table(lanes, lane, rows):
            if table == "ranges":
                color[places] = self.of_range[own]
            elif table == "kernels" and self.by == "variant":
                place = ranges_of(traces, "kernels", own)
                color[places] = np.where(place >= 0, self.of_launch[place], OTHER)
            else:
                color[places] = self.of_name[table][traces.texts(table, NAME[table]).codes[own]]
        return color


def by_table(lanes: Lanes, lane: Lane, rows: Int64s | Int32s) -> Iterator[tuple[str, Bools | slice, Int64s | Int32s]]:
    """The tables that rows of a lane are of: the name of each, the places of its rows among these, and its own rows."""
    if lane.kind != "device":
        yield "ranges" if lane.kind == "ranges" else "api_calls", slice(None), rows
        return
    kernel = rows < lanes.kernels
    for table, of_table, first in (("kernels", kernel, 0), ("memory_ops", ~kernel, lanes.kernels)):
        if of_table.any():
            yield table, of_table, rows[of_table] - first


def variants(traces: Traces) -> pd.DataFrame:
    """The pairs of workload and variant that the trace's ranges name, in the order of their first ranges.

    Some recordings name executions outside of any variant's range as a variant. These are left out.
    """
    if "ranges" not in traces.tables:
        return pd.DataFrame({"workload": [], "variant": []}, dtype=str)
    pairs = pd.DataFrame({name: traces.texts("ranges", name) for name in ("workload", "variant")})
    distinct = pairs.dropna().drop_duplicates().astype(str)
    return distinct[[not is_of_measurement(name) for name in distinct["variant"]]].reset_index(drop=True)


def coloring(traces: Traces, lanes: Lanes, by: ColorBy) -> Coloring:
    """Colours by variant, or by the names of the kernels that take the most time."""
    swatches = list(_FIXED)
    ranges = len(traces.numbers("ranges", "start_ns")) if "ranges" in traces.tables else 0
    of_range = np.full(ranges, _RANGE, dtype=np.uint8)
    pairs = variants(traces) if by == "variant" else variants(traces).head(0)
    if len(pairs):
        pairs = pairs.head(255 - len(swatches))
        code = {tuple(row): len(swatches) + number for number, row in enumerate(pairs.itertuples(index=False, name=None))}
        swatches += [Swatch("variant", str(variant), str(workload)) for workload, variant in code]
        of_range = _variants_of_ranges(traces, code)
    kernels = _names(traces, "kernels")
    of_kernel = np.full(max(len(kernels), 1), OTHER, dtype=np.uint8)
    if by == "kernel" and len(kernels):
        codes = traces.texts("kernels", "full_name").codes
        time = np.bincount(codes, weights=traces.durations("kernels"), minlength=len(kernels))
        for place in np.argsort(-time, kind="stable")[:_MOST_NAMES]:
            of_kernel[place] = len(swatches)
            swatches.append(Swatch("kernel", kernels[place]))
    of_copy = np.array([_COPIES.get(kind, _OTHER_COPY) for kind in _names(traces, "memory_ops")] or [0], dtype=np.uint8)
    calls = [next((code for part, code in _CALLS if part in name), _OTHER_CALL) for name in _names(traces, "api_calls")]
    of_name = {"kernels": of_kernel, "memory_ops": of_copy, "api_calls": np.array(calls or [0], dtype=np.uint8)}
    short = short_names(
        kernels if len(kernels) <= _SHORT_OF_MOST else [each.name for each in swatches if each.kind == "kernel"]
    )
    return Coloring(tuple(swatches), by, of_range, _of_launch(traces, of_range), of_name, short)


def _of_launch(traces: Traces, of_range: Codes) -> Codes:
    """The colour of kernels by range: the colour of the range's variant, or `OTHER` for work that only prepares a sample."""
    if not len(of_range):
        return of_range
    codes: Codes = np.where((of_range == _RANGE) | of_the_measurement(traces), OTHER, of_range).astype(np.uint8)
    return codes


def _names(traces: Traces, table: str) -> list[str]:
    return list(map(str, traces.texts(table, NAME[table]).categories)) if table in traces.tables else []


def _variants_of_ranges(traces: Traces, code: dict[tuple[Any, ...], int]) -> Codes:
    """The colour of each range: the colour of the innermost range with a variant, which is the range itself or around it."""
    workloads, names = traces.texts("ranges", "workload"), traces.texts("ranges", "variant")
    width = len(names.categories) + 1
    of_pair = np.full((len(workloads.categories) + 1) * width, _RANGE, dtype=np.uint8)
    for (workload, name), number in code.items():
        place = list(workloads.categories).index(workload) * width + list(names.categories).index(name)
        of_pair[place] = number
    is_named = (workloads.codes >= 0) & (names.codes >= 0)
    color = np.where(is_named, of_pair[np.where(is_named, workloads.codes.astype(np.int64) * width + names.codes, -1)], _RANGE)
    around = nearest(parents(traces), color != _RANGE)
    return np.where(around >= 0, color[around], _RANGE).astype(np.uint8)


def ranges_of(traces: Traces, table: str, rows: Int64s | Int32s | slice) -> Int64s:
    """The row in `ranges` of the innermost range in which each event was called, or to which it is attributed by time.

    `NONE` where an event has no range.
    """
    of_work = table in ("kernels", "memory_ops")
    ids = (traces.ranges_of_work(table) if of_work else traces.numbers(table, "range_id"))[rows]
    if "ranges" not in traces.tables:
        return np.full(len(ids), NONE, dtype=np.int64)
    return lookup(traces.numbers("ranges", "range_id"), ids)


@dataclass(frozen=True, eq=False)
class LaneInWindow:
    """A lane in a window, with the colour of each event or bar (a place in the swatches).

    `alone_lit` and `bar_lit` mark the events and bars that belong to the chosen event.
    """

    lane: Lane
    detail: Detail
    alone_color: Codes
    bar_color: Codes
    alone_lit: Bools
    bar_lit: Bools


@dataclass(frozen=True, eq=False)
class Highlight:
    """The events that belong to a chosen event, as masks of the rows of device lanes, `ranges` and `api_calls`."""

    device: Bools
    ranges: Bools
    calls: Bools

    def of(self, lane: Lane, rows: Int64s | Int32s) -> Bools:
        """Whether each row of the lane belongs to the chosen event."""
        return {"device": self.device, "ranges": self.ranges, "calls": self.calls}[lane.kind][rows]


def scene(
    traces: Traces, lanes: Lanes, shown: Sequence[Lane], window: Window, colors: Coloring, lit: Highlight | None = None
) -> list[LaneInWindow]:
    """The lanes in a window, with colours, and highlighted where `lit` is given."""
    lanes_shown = []
    for lane in shown:
        part = detail(lane, window)
        alone, looked_at = lane.row[part.alone], lane.row[part.looked_at]
        looked = colors.of(traces, lanes, lane, looked_at)
        nothing = np.zeros(len(alone), dtype=bool), np.zeros(len(part.bin), dtype=bool)
        belongs = (
            nothing if lit is None else (lit.of(lane, alone), (lit.of(lane, looked_at) & (part.looked_ns > 0)).any(axis=1))
        )
        lanes_shown.append(
            LaneInWindow(
                lane, part, colors.of(traces, lanes, lane, alone), _most(looked, part.looked_ns, len(colors.swatches)), *belongs
            )
        )
    return lanes_shown


def _most(color: Codes, weight: Int64s, colors: int) -> Codes:
    """The colour with the most weight in each row."""
    rows = len(color)
    cell = np.arange(rows)[:, None] * colors + color
    time = np.bincount(cell.ravel(), weights=weight.ravel(), minlength=rows * colors).reshape(rows, colors)
    most: Codes = np.argmax(time, axis=1).astype(np.uint8)
    return most


def names(traces: Traces, lanes: Lanes, lane: Lane, places: Int64s) -> list[str]:
    """The name of each event of a lane, as plain text."""
    result = np.empty(len(places), dtype=object)
    for table, own, rows in by_table(lanes, lane, lane.row[places]):
        texts = text_of(traces, table, NAME[table], rows)
        result[own] = [name.removeprefix("void ") for name in texts] if table == "kernels" else texts
    return list(result)


def text_of(traces: Traces, table: str, column: str, rows: Int64s | Int32s) -> list[str]:
    """Texts of some rows; empty where null."""
    texts = traces.texts(table, column)
    codes = texts.codes[rows]
    has_text = codes >= 0
    result = np.full(len(codes), "", dtype=object)
    result[has_text] = texts.categories.take(codes[has_text])
    return list(map(str, result))


def facts(traces: Traces, lanes: Lanes, lane: Lane, places: Int64s) -> pd.DataFrame:
    """Facts for the hover text of each event of a lane of device work or calls, in addition to its name and times.

    Returns:
        One row for each event, with

        - `range`: text of the innermost range, followed by `, by time` where the event is attributed by time; empty without a
          range;
        - `grid_x` to `registers`: facts of kernels; null in a trace of more than 1.5 million kernels;
        - `bytes`, `src_memory`, `dst_memory`: facts of memory operations.
    """
    frame = pd.DataFrame({"range": ""}, index=range(len(places)))
    for table, own, rows in by_table(lanes, lane, lane.row[places].astype(np.int64)):
        inner = ranges_of(traces, table, rows)
        around = np.full(len(inner), "", dtype=object)
        if (inner >= 0).any():
            around[inner >= 0] = text_of(traces, "ranges", "text", inner[inner >= 0])
        if table != "api_calls":
            around[(inner >= 0) & (traces.numbers(table, "range_id")[rows] == NONE)] += BY_TIME
        at = frame.index[own]
        frame.loc[at, "range"] = around
        if table == "kernels" and lanes.kernels <= _FACTS_OF_MOST:
            traces.read("kernels", *_SHAPE)
            for column in _SHAPE:
                frame.loc[at, column] = traces.numbers("kernels", column)[rows]
        if table == "memory_ops":
            frame.loc[at, "bytes"] = traces.numbers("memory_ops", "bytes")[rows]
            for column in ("src_memory", "dst_memory"):
                frame.loc[at, column] = text_of(traces, "memory_ops", column, rows)
    return frame.replace(NONE, np.nan)
