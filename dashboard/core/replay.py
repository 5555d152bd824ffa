"""A graph of events that wait for each other, executed again with other delays."""

from collections.abc import Sequence
from functools import reduce
from typing import Any, Final, TypeAlias

import numpy as np

from warpladder.data.arrays import Floats, Int64s

#: Events, the one that each of them waits for, and how much later than that it happens at the earliest, in ns: a number, a value for
#: each of the events, or events x changes.
Waits: TypeAlias = tuple[Int64s, Int64s, Floats | float]

#: Where fewer events than this can happen at once, on average, they are executed one by one: an operation on arrays takes as long as these.
_FEW_AT_ONCE: Final = 16


class Contradiction(ValueError):
    """Events wait for each other without end."""


def replay(own_ns: Floats, waits: Sequence[Waits]) -> Floats:
    """When events happen: each when the last of what it waits for has happened, and its own time has passed since then.

    Args:
        own_ns: the own time of each event, events x changes. All changes are tried at once. Negative where an event comes earlier.
        waits: what events wait for. One that waits for nothing happens after its own time.

    Returns:
        Times in ns, events x changes.

    Raises:
        Contradiction: events wait for each other.
    """
    events, changes = own_ns.shape
    effect, cause = (np.concatenate([each[side] for each in waits]) for side in (0, 1))
    delay, turn = _delays(waits, changes), _turns(effect, cause, events)
    if turn is None:
        return _one_by_one(own_ns, effect, cause, delay)
    order = np.lexsort((effect, turn[effect]))
    effect, cause, delay = effect[order], cause[order], delay[order]
    heads = np.flatnonzero(np.diff(effect, prepend=-1))
    effects, of_turn = effect[heads], turn[effect[heads]]
    ends = 1 + np.flatnonzero(np.diff(of_turn, append=-1))
    time: Floats = own_ns.copy()
    first = 0
    for last in ends.tolist():
        rows = slice(heads[first], heads[last] if last < len(heads) else len(effect))
        latest = np.maximum.reduceat(time[cause[rows]] + delay[rows], heads[first:last] - heads[first])
        time[effects[first:last]] += latest
        first = last
    return time


def _turns(effect: Int64s, cause: Int64s, events: int) -> Int64s | None:
    """The turn of each event, from 0: it is later than those of all that the event waits for. None where few events have the same one.

    Raises:
        Contradiction: events wait for each other.
    """
    missing, first = np.bincount(effect, minlength=events), np.zeros(events + 1, np.int64)
    np.cumsum(np.bincount(cause, minlength=events), out=first[1:])
    followers = effect[np.argsort(cause, kind="stable")]
    turn, place, done, turns = np.zeros(events, np.int64), np.empty(events, np.int64), 0, 0
    ready = np.flatnonzero(missing == 0)
    while len(ready):
        turn[ready], done, turns = turns, done + len(ready), turns + 1
        if done < _FEW_AT_ONCE * turns:
            return None
        counts = first[ready + 1] - first[ready]
        ends = np.cumsum(counts)
        rows = np.arange(ends[-1])
        after = followers[rows + np.repeat(first[ready] - ends + counts, counts)]
        np.subtract.at(missing, after, 1)
        place[after] = rows  # of an event that waited for several, the last one counts
        ready = after[(missing[after] == 0) & (place[after] == rows)]
    if done < events:
        raise Contradiction("ranks wait for each other without end")
    return turn


def _one_by_one(own_ns: Floats, effect: Int64s, cause: Int64s, delay: Floats) -> Floats:
    """The same as `replay`, event by event."""
    events, changes = own_ns.shape
    order, by_cause = np.argsort(effect, kind="stable"), np.argsort(cause, kind="stable")
    first, follows = (np.searchsorted(each, np.arange(events + 1)).tolist() for each in (effect[order], cause[by_cause]))
    causes, followers = cause[order].tolist(), effect[by_cause].tolist()
    missing: list[int] = np.diff(first).tolist()
    time, delays, last = _rows(own_ns.copy()), _rows(delay[order]), max if changes == 1 else _last
    ready = [event for event in range(events) if not missing[event]]
    for event in ready:  # which grows
        begin, end = first[event], first[event + 1]
        if begin < end:
            time[event] = time[event] + last([time[causes[wait]] + delays[wait] for wait in range(begin, end)])
        for follower in followers[follows[event] : follows[event + 1]]:
            missing[follower] -= 1
            if not missing[follower]:
                ready.append(follower)
    if len(ready) < events:
        raise Contradiction("ranks wait for each other without end")
    return np.reshape(time, (events, changes))


def _rows(values: Floats) -> Any:
    """The rows of an array; where there is one column its numbers, with which Python is faster than with small arrays."""
    return values[:, 0].tolist() if values.shape[1] == 1 else values


def _last(times: Sequence[Floats]) -> Floats:
    return reduce(np.maximum, times)


def _delays(waits: Sequence[Waits], changes: int) -> Floats:
    """The delays of all waits, with a column for each change, or with one for all of them."""
    width = changes if any(np.ndim(delay) > 1 for _, _, delay in waits) else 1
    rows = [np.transpose(np.atleast_2d(np.transpose(delay))) for _, _, delay in waits]
    return np.concatenate([np.broadcast_to(each, (len(own), width)) for each, (own, _, _) in zip(rows, waits, strict=True)])
