"""The iterations of a training or inference loop in a trace: ranges that are numbered or that repeat."""

import re
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from warpladder.data import store
from warpladder.data.arrays import Bools, Int64s, coded, integers, numbered
from warpladder.data.columns import FAR

#: `ProfilerStep#12` of PyTorch's profiler, and ranges of a user's own, such as `step 12`, `iteration_12` or `step 12/100`.
_NUMBERED: Final = re.compile(
    r"(?i)\W*(profilerstep|step|iteration|iter)\s*[#_:=\s]?\s*(\d{1,12})(?:\s*(?:/|of)\s*\d{1,12})?\W*\Z"
)
_PROFILER: Final = "profilerstep"
_FEWEST: Final = 2


@dataclass(frozen=True)
class Steps:
    """Iterations in the order of their start.

    Attributes:
        number: of the iteration; no two have the same.
        start, end: of its range on the host, ns. An iteration ends no later than the next one begins.
        place: of its range among those that were given to `find_steps`.
        restarts: how often the numbers in the trace start again. Such numbers are counted on from the number before.
        example: the text of the first range; empty without any.
        others: of each other kind of numbered ranges that are not inside of the iterations, the text of the first.
    """

    number: Int64s
    start: Int64s
    end: Int64s
    place: Int64s = field(default_factory=lambda: np.empty(0, np.int64))
    restarts: int = 0
    example: str = ""
    others: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.number)

    def at(self, time: Int64s) -> Int64s:
        """The place of the iteration that is under way at each time; -1 outside of any."""
        place: Int64s = np.searchsorted(self.start, time, side="right") - 1
        if not len(self.start):
            return place
        return np.where((place >= 0) & (time < self.end[np.maximum(place, 0)]), place, -1)

    def numbers_at(self, time: Int64s) -> Int64s:
        """The number of that iteration; -1 outside of any."""
        place = self.at(time)
        return np.where(place >= 0, np.append(self.number, -1)[place], -1)


NO_STEPS: Final = Steps(*(np.empty(0, np.int64),) * 3)


@dataclass(frozen=True)
class _Ranges:
    """Numbered ranges of one kind, in the order of their start, with their places among all ranges."""

    place: Int64s
    number: Int64s
    thread: Int64s
    start: Int64s
    end: Int64s

    def __len__(self) -> int:
        return len(self.start)

    def __getitem__(self, rows: npt.NDArray[np.generic]) -> "_Ranges":
        return _Ranges(*(column[rows] for column in vars(self).values()))

    def outermost(self) -> "_Ranges":
        """Without those inside of another one, and those of threads that run beside the thread with the most."""
        first, thread, count = np.unique(self.thread, return_index=True, return_inverse=True, return_counts=True)[1:]
        kept = np.zeros(len(self), bool)
        for each in np.lexsort((first, -count)).tolist():
            own = thread == each
            if not kept.any() or not self[kept].overlap(self[own]):
                kept |= own
        found = self[kept]
        reached = np.maximum.accumulate(found.end)
        return found[np.append(True, found.end[1:] > reached[:-1])]

    def overlap(self, other: "_Ranges") -> bool:
        """Whether any range of another thread overlaps one of these."""
        started = np.searchsorted(self.start, other.end, side="left")
        reached = np.append(-FAR, np.maximum.accumulate(self.end))
        return bool((reached[started] > other.start).any())

    def inside(self, other: "_Ranges") -> bool:
        """Whether at least half of these are inside of ranges of another kind."""
        place = np.searchsorted(other.start, self.start, side="right") - 1
        within = (place >= 0) & (self.end <= other.end[np.maximum(place, 0)])
        return bool(2 * np.count_nonzero(within) >= len(self))


def find_steps(texts: list[str], text: Int64s, process: Int64s, thread: Int64s, start: Int64s, end: Int64s) -> Steps:
    """The iterations among the ranges of a trace: the outermost numbered ranges.

    Of kinds of which none is inside of the other, `ProfilerStep#N` comes first, then the one that occurs most often. A number that
    occurs again, as in another epoch or in a validation, is a further iteration.

    Args:
        texts: the different texts of ranges.
        text: of each range, its place in `texts`.
        process, thread: of each range.
        start, end: of each range, ns.
    """
    kind, number = np.full(len(texts), -1), np.zeros(len(texts), np.int64)
    kinds: list[str] = []
    for place, each in enumerate(texts):
        if found := _NUMBERED.match(each):
            if found[1].lower() not in kinds:
                kinds.append(found[1].lower())
            kind[place], number[place] = kinds.index(found[1].lower()), int(found[2])
    order = np.flatnonzero(kind[text] >= 0) if len(texts) else np.empty(0, np.int64)
    order = order[np.lexsort((-end[order], start[order]))]
    own, _ = numbered(process[order], thread[order])
    every = _Ranges(order, number[text[order]], own, start[order], end[order])
    of_kind = {each: every[kind[text[order]] == place] for place, each in enumerate(kinds)}
    of_kind = {each: ranges.outermost() for each, ranges in of_kind.items() if len(ranges)}
    usable = {each: ranges for each, ranges in of_kind.items() if each == _PROFILER or len(ranges) >= _FEWEST}
    if not usable:
        return NO_STEPS
    chosen = max(usable, key=lambda each: (each == _PROFILER, len(usable[each])))
    for _ in usable:
        outer = (each for each in usable if usable[chosen].inside(usable[each]) and not usable[each].inside(usable[chosen]))
        chosen = next(outer, chosen)
    examples = {each: texts[text[ranges.place[0]]] for each, ranges in usable.items()}
    others = (each for each, ranges in usable.items() if each != chosen and not ranges.inside(usable[chosen]))
    return replace(_counted(usable[chosen]), example=examples[chosen], others=tuple(examples[each] for each in others))


def _counted(ranges: _Ranges) -> Steps:
    """The iterations of ranges. Where a number occurs twice, numbers that start again are counted on."""
    number, restarts = ranges.number, 0
    if len(np.unique(number)) < len(number):
        again = number[1:] <= number[:-1]
        number = number + np.append(0, np.cumsum(np.where(again, number[:-1] - number[1:] + 1, 0)))
        restarts = int(np.count_nonzero(again))
    end = np.minimum(ranges.end, np.append(ranges.start[1:], FAR))
    return Steps(number, ranges.start, end, ranges.place, restarts)


def steps_of(run: store.Run) -> Steps:
    """The iterations of a run with a trace."""
    ranges = run.arrow("ranges", ["text", "process", "thread", "start_ns", "end_ns"])
    ranges = ranges.filter(ranges["end_ns"].is_valid())
    text, texts = coded(ranges["text"])
    return find_steps(texts, text, *(integers(ranges[name], -1) for name in ("process", "thread", "start_ns", "end_ns")))


def launch_times(start: Int64s, stream: Int64s, launch: Int64s, launched: Bools) -> Int64s:
    """When each piece of device work was launched. The iteration that was under way at this time is its iteration.

    Work whose launch is not in the trace was launched with the work before it on its stream, since a stream runs in the order of launches.
    Before the first launch of its stream, it was launched before the trace began. On a stream of which no launch is known, its start counts.

    Args:
        start: on the device, ns.
        stream: of each, a number that is unique over all processes and devices.
        launch: start of the call that launched it; any number where it is not in the trace.
        launched: the call is in the trace.
    """
    if launched.all():
        return launch
    order = np.lexsort((np.where(launched, launch, FAR), start, stream))
    stream, launched = stream[order], launched[order]
    heads = np.searchsorted(stream, stream, side="left")
    last = np.maximum.accumulate(np.where(launched, np.arange(len(order)), -1))
    of_stream = np.searchsorted(stream[launched], stream, side="right") > np.searchsorted(stream[launched], stream, side="left")
    times = np.empty_like(launch)
    times[order] = np.where(last >= heads, launch[order][last], np.where(of_stream, -FAR, start[order]))
    return times
