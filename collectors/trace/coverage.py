"""How long device work ran, of many overlapping windows of pieces of work: each a range of neighbours in the order of their launches."""

from array import array
from bisect import bisect_left, bisect_right
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

Int64s: TypeAlias = npt.NDArray[np.int64]

_NONE: Final = -1
_FAR: Final = 1 << 61
_PAIRS_AT_ONCE: Final = 4_000_000
#: Pairs of a window and a piece of work that take as long as one piece in the sweep over all.
_PAIRS_A_PIECE: Final = 64


def of_windows(start: Int64s, end: Int64s, first: Int64s, last: Int64s) -> tuple[Int64s, Int64s, Int64s]:
    """Start of the first, end of the last, and length of the union of the intervals of each window.

    Args:
        start: of each piece of work; `end` likewise.
        first: of each window the place of its first piece; `last` that behind its last. None is empty.
    """
    count = last - first
    if int(count.sum()) <= max(_PAIRS_A_PIECE * len(start), _PAIRS_AT_ONCE):
        busy = _beside_one_another(start, end, first, count)
    else:
        busy = _by_sweep(start, end, first, last)
    return _least(start, first, last), -_least(-end, first, last), busy


def _least(values: Int64s, first: Int64s, last: Int64s) -> Int64s:
    """The least of each window: that of two blocks, whose length is a power of two."""
    power_of = np.frexp((last - first).astype(np.float64))[1] - 1
    found = np.empty(len(first), np.int64)
    for power in range(int(power_of.max(initial=_NONE)) + 1):
        block = 1 << power
        windows = np.flatnonzero(power_of == power)
        found[windows] = np.minimum(values[first[windows]], values[last[windows] - block])
        values = np.minimum(values[:-block], values[block:])
    return found


def _beside_one_another(start: Int64s, end: Int64s, first: Int64s, count: Int64s) -> Int64s:
    """Union lengths, the pieces of a few windows at a time laid out one window behind the other."""
    in_order = bool(np.all(start[1:] >= start[:-1]))
    found = np.empty(len(first), np.int64)
    pairs = np.cumsum(count)
    begin = 0
    while begin < len(first):
        done = pairs[begin - 1] if begin else 0
        stop = max(begin + 1, int(np.searchsorted(pairs, done + _PAIRS_AT_ONCE, side="right")))
        found[begin:stop] = _unions(start, end, first[begin:stop], count[begin:stop], in_order)
        begin = stop
    return found


def _unions(start: Int64s, end: Int64s, first: Int64s, count: Int64s, in_order: bool) -> Int64s:
    heads = np.cumsum(count) - count
    owner = np.repeat(np.arange(len(count)), count)
    picked = np.arange(len(owner)) - np.repeat(heads - first, count)
    begins, ends = start[picked], end[picked]
    if not in_order:
        sorting = np.lexsort((begins, owner))
        begins, ends = begins[sorting], ends[sorting]
    starts = begins[heads]
    # Windows are laid one behind the other on one axis, so that one running maximum serves them all.
    width = np.maximum.reduceat(ends, heads) - starts + 1
    shift = np.cumsum(width) - width - starts
    begins = begins + shift[owner]
    ends = ends + shift[owner]
    covered = np.maximum.accumulate(ends)
    covered = np.concatenate((begins[:1], covered[:-1]))
    gained = np.maximum(ends - np.maximum(begins, covered), 0)
    return np.asarray(np.add.reduceat(gained, heads), np.int64)


def _by_sweep(start: Int64s, end: Int64s, first: Int64s, last: Int64s) -> Int64s:
    """Union lengths in n log n, however many windows share a piece.

    Each piece is painted over those before it. In a window counts what its pieces painted over pieces before the window, or over nothing:
    all that was painted over those until the window ends, less all that was painted until it begins.
    """
    under, by, length = _painted(start, end)
    until = np.searchsorted(by, last)
    before = np.concatenate((np.zeros(1, np.int64), np.cumsum(length)))
    return _sums_below(under + 1, length, until, first + 1) - before[np.searchsorted(by, first)]


def _painted(start: Int64s, end: Int64s) -> tuple[Int64s, Int64s, Int64s]:
    """What lay under each stretch that was painted, `_NONE` for nothing; by which piece it was; and how long it is."""
    edges, owners = [-2 * _FAR, 2 * _FAR], [_NONE, _NONE]  # from each edge to the next the owner is the piece painted last
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
        kept = left + (edges[left] < begin)
        cut = owners[right - 1]
        edges[kept:right] = [begin, stop] if rest else [begin]
        owners[kept:right] = [piece, cut] if rest else [piece]
    return np.array(under, np.int64), np.array(by, np.int64), np.array(length, np.int64)


def _sums_below(keys: Int64s, values: Int64s, until: Int64s, below: Int64s) -> Int64s:
    """Of each pair of limits, the sum of the values among the first `until` whose key is less than `below`, through a wavelet matrix."""
    first, last = np.zeros_like(until), until
    found = np.zeros(len(until), np.int64)
    for bit in reversed(range(int(max(keys.max(initial=0), below.max(initial=0))).bit_length())):
        low = (keys >> bit & 1) == 0
        count, total = np.zeros(len(keys) + 1, np.int64), np.zeros(len(keys) + 1, np.int64)
        np.cumsum(low, out=count[1:])
        np.cumsum(np.where(low, values, 0), out=total[1:])
        up = (below >> bit & 1) == 1
        found += np.where(up, total[last] - total[first], 0)
        first, last = (np.where(up, count[-1] + place - count[place], count[place]) for place in (first, last))
        keys, values = np.concatenate((keys[low], keys[~low])), np.concatenate((values[low], values[~low]))
    return found
