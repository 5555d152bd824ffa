"""The detail of a lane in a window: wide events are drawn alone, and bars show the busy time of the others."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from warpladder.dashboard.core.traces import Int64s
from warpladder.dashboard.trace.lanes import BLOCK, Lane

#: About the most rectangles and bars of all lanes of a window together.
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
        # Quotient and remainder apart, because the span times the number of bins can exceed 63 bits.
        whole, rest = divmod(self.end_ns - self.begin_ns, self.bins)
        numbers = np.arange(self.bins + 1, dtype=np.int64)
        return self.begin_ns + numbers * whole + numbers * rest // self.bins

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
        busy_ns: shape (b,), nanoseconds of the bin in which one of its events ran.
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
    """The detail of a lane in a window. Its time grows with the number of bins, and only logarithmically with that of events."""
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
    """The places of short events that share none of their bins with another short event."""
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
    """Nanoseconds of each bin in which one of the events ran."""
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
