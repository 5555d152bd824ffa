"""How much earlier the device work of a trace ends if some of it takes less time.

Each piece of work starts because something ended: the work before it on its stream, work on another stream, or its launch on the host. The
launch of a CUDA graph releases only what starts before any of the graph's work has ended: the rest waits for work of the graph. Work
moves with what released it, by as much as that ends earlier, but to no time before its launch, nor before the end of the work before it
on its stream. The host launches at the times of the trace. Only after a call in which it waited for the device, it is earlier by as
much as the work that it waited for.

So a shorter piece of work gains nothing if another stream, or the host, is what the following work waits for.

The rules are a recurrence along the releases, `shift = min(shift of the release + its saving, limit)`. Functions `x -> min(x + a, b)` are
closed under composition, so that it is solved for all work at once by pointer doubling.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

Int64s = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

#: Work that starts so soon after the work before it on its stream was released by it, ns.
_NEAR_NS: Final = 5_000
#: Work that starts so soon after its launch, and not after other work, was released by its launch, ns.
_LAUNCH_NS: Final = 20_000
_MOST_LATENCY_NS: Final = 10_000
#: Passes over all work. Each one takes the effects past one more call in which the host waits.
_MOST_PASSES: Final = 200
NONE: Final = -1


@dataclass(frozen=True)
class DeviceTimeline:
    """Device work, in the order of the tables.

    Attributes:
        start, end: ns.
        stream: of each piece.
        launched: when its launch was called; its own start where the trace lacks the call.
        has_launch: whether the trace has the call.
        waits: starts and ends of calls in which the host waits for the device, ns, in the order of their ends.
    """

    start: Int64s
    end: Int64s
    stream: Int64s
    launched: Int64s
    has_launch: Bools
    waits: tuple[Int64s, Int64s]

    def gain_ns(self, saved: Floats) -> float:
        """How much earlier the last work ends, ns.

        Args:
            saved: what each piece of work takes less, ns.
        """
        if not len(self.start):
            return 0.0
        last = int(np.argmax(self.end))
        return float((self.shifts(saved) + saved)[last])

    def shifts(self, saved: Floats) -> Floats:
        """How much earlier each piece of work starts, ns."""
        before, release = self._before_on_stream(), self._release()
        # Work of one stream may overlap, as copies and programmatic launches do.
        gap = np.where(before >= 0, np.maximum(self.start - self.end[before], 0), 0)
        slack = np.where(self.has_launch, self.start - self.launched - self._latency(), np.inf)
        awaited, of_launch = self._awaited()
        host = np.zeros(len(self.start))
        shift = np.zeros(len(self.start))
        for passed in range(_MOST_PASSES):
            limit = np.maximum(slack, 0) + host
            if passed:
                limit = np.where(before >= 0, np.minimum(limit, (shift + saved)[before] + gap), limit)
            found = _solved(release, saved, np.where(release >= 0, limit, np.minimum(limit, host)))
            earlier = np.append((found + saved)[awaited], 0.0) * np.append(awaited >= 0, False)
            now = earlier[of_launch]
            if passed and np.array_equal(found, shift) and np.array_equal(now, host):
                break
            shift, host = found, now
        return shift

    def _before_on_stream(self) -> Int64s:
        order = np.lexsort((self.start, self.stream))
        before = np.full(len(order), NONE)
        same = self.stream[order][1:] == self.stream[order][:-1]
        before[order[1:][same]] = order[:-1][same]
        return before

    def _release(self) -> Int64s:
        """The work whose end released each piece; -1 where its launch did."""
        before = self._before_on_stream()
        by_end = np.argsort(self.end, kind="stable")
        place = np.searchsorted(self.end[by_end], self.start, side="right") - 1
        latest = np.where(place >= 0, by_end[np.maximum(place, 0)], NONE)
        near = (before >= 0) & (self.start - self.end[before] <= _NEAR_NS)
        by_host = self.has_launch & (self.start - self.launched <= _LAUNCH_NS) & (self.start < self._first_end())
        return np.where(near, before, np.where(by_host, NONE, latest))

    def _first_end(self) -> Int64s:
        """When the first work of the same launch ended."""
        launch = np.unique(self.launched, return_inverse=True)[1]
        first = np.full(int(launch.max(initial=-1)) + 1, np.iinfo(np.int64).max)
        np.minimum.at(first, launch, self.end)
        ended: Int64s = first[launch]
        return ended

    def _latency(self) -> float:
        """The least time from a launch to the start of its work, ns. Where all work waits in a queue, the trace does not show it."""
        known = (self.start - self.launched)[self.has_launch]
        return float(np.clip(known.min(), 0, _MOST_LATENCY_NS)) if len(known) else 0.0

    def _awaited(self) -> tuple[Int64s, Int64s]:
        """The work that each wait of the host waited for, -1 for none; and for each piece of work the last wait before its launch, as a
        place in these; their number for none."""
        begin, finish = self.waits
        by_end = np.argsort(self.end, kind="stable")
        place = np.searchsorted(self.end[by_end], finish, side="right") - 1
        awaited = np.where(place >= 0, by_end[np.maximum(place, 0)], NONE) if len(by_end) else np.full(len(begin), NONE)
        awaited = np.where((awaited >= 0) & (self.end[awaited] > begin), awaited, NONE)
        waited = np.flatnonzero(awaited >= 0)
        of_launch = np.searchsorted(finish[waited], self.launched, side="right") - 1
        return awaited, np.where(of_launch >= 0, np.append(waited, len(begin))[of_launch], len(begin))


def _solved(release: Int64s, saved: Floats, limit: Floats) -> Floats:
    """Solve `shift[i] = min(shift[release[i]] + saved[release[i]], limit[i])`; where nothing releases, `limit[i]`."""
    count = len(release)
    up = np.append(np.where(release >= 0, release, count), count)
    added = np.append(np.where(release >= 0, saved[release], 0.0), 0.0)
    most = np.append(limit, np.inf)
    while (up[:-1] < count).any():
        most = np.minimum(most[up] + added, most)
        added, up = added + added[up], up[up]
    return most[:-1]
