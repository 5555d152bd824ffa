"""Union lengths of device work for many overlapping windows; a window is a contiguous range of pieces in launch order."""

from array import array
from bisect import bisect_left, bisect_right
from typing import Final

import numpy as np

from warpladder.data.arrays import Int64s

_NONE: Final = -1
_FAR: Final = 1 << 61
_PAIRS_AT_ONCE: Final = 4_000_000
#: The sweep takes as long for one piece as the direct method for this many pairs of window and piece.
_PAIRS_A_PIECE: Final = 64


def of_windows(start: Int64s, end: Int64s, first: Int64s, last: Int64s) -> tuple[Int64s, Int64s, Int64s]:
    """Return start of the first, end of the last, and union length of the intervals of each window.

    Args:
        start, end: times of each piece of work, in ns.
        first, last: for each window, the index of its first piece, and the index after its last piece. No window is empty.
    """
    count = last - first
    if int(count.sum()) <= max(_PAIRS_A_PIECE * len(start), _PAIRS_AT_ONCE):
        busy = _beside_one_another(start, end, first, count)
    else:
        busy = _by_sweep(start, end, first, last)
    return _least(start, first, last), -_least(-end, first, last), busy


def _least(values: Int64s, first: Int64s, last: Int64s) -> Int64s:
    """Return the minimum of each window, as the minimum of two blocks whose length is a power of two."""
    power_of = np.frexp((last - first).astype(np.float64))[1] - 1
    minima = np.empty(len(first), np.int64)
    for power in range(int(power_of.max(initial=_NONE)) + 1):
        block = 1 << power
        windows = np.flatnonzero(power_of == power)
        minima[windows] = np.minimum(values[first[windows]], values[last[windows] - block])
        values = np.minimum(values[:-block], values[block:])
    return minima


def _beside_one_another(start: Int64s, end: Int64s, first: Int64s, count: Int64s) -> Int64s:
    """Return union lengths. Lays out the pieces of a few windows at a time, one window after another."""
    in_order = bool(np.all(start[1:] >= start[:-1]))
    lengths = np.empty(len(first), np.int64)
    pairs = np.cumsum(count)
    begin = 0
    while begin < len(first):
        laid_out = pairs[begin - 1] if begin else 0
        stop = max(begin + 1, int(np.searchsorted(pairs, laid_out + _PAIRS_AT_ONCE, side="right")))
        lengths[begin:stop] = _unions(start, end, first[begin:stop], count[begin:stop], in_order)
        begin = stop
    return lengths


def _unions(start: Int64s, end: Int64s, first: Int64s, count: Int64s, in_order: bool) -> Int64s:
    heads = np.cumsum(count) - count
    owner = np.repeat(np.arange(len(count)), count)
    picked = np.arange(len(owner)) - np.repeat(heads - first, count)
    begins, ends = start[picked], end[picked]
    if not in_order:
        sorting = np.lexsort((begins, owner))
        begins, ends = begins[sorting], ends[sorting]
    starts = begins[heads]
    # The windows lie one after another on one axis, so that one running maximum works for all.
    width = np.maximum.reduceat(ends, heads) - starts + 1
    shift = np.cumsum(width) - width - starts
    begins = begins + shift[owner]
    ends = ends + shift[owner]
    covered = np.maximum.accumulate(ends)
    covered = np.concatenate((begins[:1], covered[:-1]))
    gained = np.maximum(ends - np.maximum(begins, covered), 0)
    return np.asarray(np.add.reduceat(gained, heads), np.int64)


def _by_sweep(start: Int64s, end: Int64s, first: Int64s, last: Int64s) -> Int64s:
    """Return union lengths in O(n log n), for any number of windows per piece.

    Each piece is painted over the earlier ones. A window's union is the length that its pieces painted over nothing or over
    pieces before the window: the length painted over these up to the window's end, minus the length up to its beginning.
    """
    under, by, length = _painted(start, end)
    until = np.searchsorted(by, last)
    before = np.concatenate((np.zeros(1, np.int64), np.cumsum(length)))
    return _sums_below(under + 1, length, until, first + 1) - before[np.searchsorted(by, first)]


def _painted(start: Int64s, end: Int64s) -> tuple[Int64s, Int64s, Int64s]:
    """Return, for each painted stretch: the piece under it (`_NONE` for nothing), the piece that painted it, and its length."""
    edges, owners = [-2 * _FAR, 2 * _FAR], [_NONE, _NONE]  # owners[i] is the piece painted last between edges i and i+1
    under, by, length = array("q"), array("q"), array("q")
    pieces = zip(np.clip(start, -_FAR, _FAR).tolist(), np.clip(end, -_FAR, _FAR).tolist(), strict=True)
    for piece, (begin, stop) in enumerate(pieces):
        if stop <= begin:
            continue
        left, right = bisect_right(edges, begin) - 1, bisect_left(edges, stop)
        for place in range(left, right):
            under.append(owners[place])
            by.append(piece)
            length.append(min(edges[place + 1], stop) - max(edges[place], begin))
        rest = edges[right] > stop
        first_free = left + (edges[left] < begin)
        cut = owners[right - 1]
        edges[first_free:right] = [begin, stop] if rest else [begin]
        owners[first_free:right] = [piece, cut] if rest else [piece]
    return np.array(under, np.int64), np.array(by, np.int64), np.array(length, np.int64)


def _sums_below(keys: Int64s, values: Int64s, until: Int64s, below: Int64s) -> Int64s:
    """For each pair of limits, sum the first `until` values whose key is less than `below`. Uses a wavelet matrix."""
    first, last = np.zeros_like(until), until
    sums = np.zeros(len(until), np.int64)
    for bit in reversed(range(int(max(keys.max(initial=0), below.max(initial=0))).bit_length())):
        low = (keys >> bit & 1) == 0
        count, total = np.zeros(len(keys) + 1, np.int64), np.zeros(len(keys) + 1, np.int64)
        np.cumsum(low, out=count[1:])
        np.cumsum(np.where(low, values, 0), out=total[1:])
        up = (below >> bit & 1) == 1
        sums += np.where(up, total[last] - total[first], 0)
        first, last = (np.where(up, count[-1] + place - count[place], count[place]) for place in (first, last))
        keys, values = np.concatenate((keys[low], keys[~low])), np.concatenate((values[low], values[~low]))
    return sums
