"""A graph of events that wait for each other, executed again with other delays."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from warpladder.data.arrays import Floats, Int64s

#: Events, the one that each of them waits for, and how much later than that it happens at the earliest, in ns: an array or number for
#: all changes, or an array with a column for each change.
Waits: TypeAlias = tuple[Int64s, Int64s, Floats | float]


class Contradiction(ValueError):
    """Events wait for each other without end."""


def replay(events: int, changes: int, waits: Sequence[Waits], spent: Callable[[int], Floats] | None = None) -> Floats:
    """When events happen: each with the last of what it waits for, and one that waits for nothing at 0.

    Args:
        events: their number; they count from 0.
        changes: number of changes, which are all tried at once.
        spent: what an event adds to its time, for each change.

    Returns:
        Times in ns, events x changes.

    Raises:
        Contradiction: events wait for each other.
    """
    effect, cause = (np.concatenate([each[side] for each in waits]) for side in (0, 1))
    width = changes if any(np.ndim(delay) > 1 for _, _, delay in waits) else 1
    delays = [np.reshape(delay, (-1, 1)) if np.ndim(delay) < 2 else delay for _, _, delay in waits]
    delay = np.concatenate(
        [np.broadcast_to(each, (len(rows), width)) for each, (rows, _, _) in zip(delays, waits, strict=True)]
    )
    order = np.argsort(effect, kind="stable")
    delay = delay[order]
    effect, cause = effect[order], cause[order]
    first = np.searchsorted(effect, np.arange(events + 1)).tolist()
    by_cause = np.argsort(cause, kind="stable")
    followers = effect[by_cause].tolist()
    follows = np.searchsorted(cause[by_cause], np.arange(events + 1)).tolist()
    missing: list[int] = np.diff(first).tolist()
    time = np.zeros((events, changes))
    ready = [event for event in range(events) if not missing[event]]
    for event in ready:  # which grows
        begin, end = first[event], first[event + 1]
        if begin < end:
            np.maximum.reduce(time[cause[begin:end]] + delay[begin:end], axis=0, out=time[event])
        if spent is not None:
            time[event] += spent(event)
        for follower in followers[follows[event] : follows[event + 1]]:
            missing[follower] -= 1
            if not missing[follower]:
                ready.append(follower)
    if len(ready) < events:
        raise Contradiction("ranks wait for each other without end")
    return time
