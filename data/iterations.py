"""The iterations of a training or inference loop in a trace: ranges that are numbered or that repeat."""

import re
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from warpladder.data import store
from warpladder.data.texts import coded

Int64s = npt.NDArray[np.int64]

#: `ProfilerStep#12` of PyTorch's profiler, and ranges of a user's own, such as `step 12` or `iteration_12`.
_NUMBERED: Final = re.compile(r"(?i)\W*(profilerstep|step|iteration|iter)\s*[#_:=\s]?\s*(\d{1,12})\W*\Z")
_FEWEST: Final = 2


@dataclass(frozen=True)
class Steps:
    """Iterations in the order of their start.

    Attributes:
        number: of the iteration.
        start, end: of its range on the host, ns. An iteration ends no later than the next one begins.
        place: of its range among those that were given to `find_steps`.
    """

    number: Int64s
    start: Int64s
    end: Int64s
    place: Int64s = field(default_factory=lambda: np.empty(0, np.int64))

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


def find_steps(texts: list[str], text: Int64s, start: Int64s, end: Int64s) -> Steps:
    """The iterations among the ranges of a trace: the kind of numbered range that occurs most often.

    `ProfilerStep#N` comes before any other kind.

    Args:
        texts: the different texts of ranges.
        text: of each range, its place in `texts`.
        start, end: of each range, ns.
    """
    kinds: dict[str, dict[int, int]] = defaultdict(dict)
    for place, each in enumerate(texts):
        if found := _NUMBERED.match(each):
            kinds[found[1].lower()][place] = int(found[2])
    usable = {kind: places for kind, places in kinds.items() if kind == "profilerstep" or len(places) >= _FEWEST}
    if not usable:
        return NO_STEPS
    chosen = usable.get("profilerstep") or max(usable.values(), key=len)
    rows = np.flatnonzero(np.isin(text, list(chosen)))
    rows = rows[np.argsort(start[rows], kind="stable")]
    number = np.array([chosen[place] for place in text[rows].tolist()], np.int64)
    _, first = np.unique(number, return_index=True)  # a number that occurs twice counts once, the first time
    rows, number = rows[np.sort(first)], number[np.sort(first)]
    begin, finish = start[rows], end[rows]
    finish[:-1] = np.minimum(finish[:-1], begin[1:])
    return Steps(number, begin, finish, rows)


def steps_of(run: store.Run) -> Steps:
    """The iterations of a run with a trace."""
    ranges = run.arrow("ranges", ["text", "start_ns", "end_ns"])
    closed = ranges.filter(ranges["end_ns"].is_valid())
    text, texts = coded(closed["text"])
    return find_steps(texts, text, *(closed[name].to_numpy().astype(np.int64) for name in ("start_ns", "end_ns")))
