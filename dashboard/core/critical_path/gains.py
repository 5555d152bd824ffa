"""The gain of an iteration from faster kernels: its dependencies, executed again.

The gain of an event is how much earlier it happens. A node starts when the last of what it waits for has happened, so its gain is the least,
over what it waits for, of the gain there plus the slack: how much earlier than the last that had happened. So all gains are 0 where no kernel
is faster.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np

from warpladder.dashboard.core.critical_path.activities import RankActivities
from warpladder.dashboard.core.critical_path.spans import Arrivals, Ranks, Span
from warpladder.dashboard.core.critical_path.waits import LONG_AGO
from warpladder.dashboard.core.replay import Contradiction, replay
from warpladder.data.arrays import NONE, Floats, Int64s, numbered, occurrence

#: No gain is larger than this many times the time that is saved if all of the iteration is faster; clocks are uncertain.
_MARGIN: Final = 2.0
#: The event that stands for what happened before the iterations.
_BEFORE: Final = 0


def gains_ns(ranks: Ranks, chosen: Sequence[int], iterations: Sequence[Span], names: Sequence[str], part: float) -> Floats:
    """How much earlier iterations end where a kernel is faster on all ranks.

    What a rank waited for is in `activities`. A collective begins to transfer when the last of the chosen ranks has arrived. Ranks that are
    not chosen never come last, so that the gain is an upper bound without them. Waits without a known cause stay as long as they are,
    and all that happened before the first iteration stays when it was.

    Args:
        chosen: the ranks to replay.
        iterations: one after the other.
        names: kernels, copies and sets, each of which is tried alone.
        part: by which part of its time it is shorter; of a matched collective, of its transfer.

    Returns:
        In ns, a row for each iteration and a column for each name.

    Raises:
        Contradiction: the matches of collectives contradict each other.
    """
    span = replace(iterations[-1], start_ns=iterations[0].start_ns)
    arrivals, columns = Arrivals.of(ranks, span), {name: column for column, name in enumerate(names)}
    every, count = list[_Nodes](), 1
    for rank in chosen:
        every.append(_nodes(ranks, rank, span, iterations, arrivals, columns, part, count))
        count += every[-1].events
    effect, cause, slack, work, start, match, saved, name = (
        np.concatenate(each) for each in list(zip(*every, strict=True))[:8]
    )
    talks = np.flatnonzero(match != NONE)
    number, first = numbered(match[talks])
    if occurrence(number, np.repeat(chosen, [len(each.work) for each in every])[talks]).any():
        raise Contradiction("a rank meets twice at once")
    # What work of a collective waits for is waited for by all of its ranks.
    waiting, met = np.arange(count), count + number
    waiting[work[talks]] = met
    last, before_last = np.full(len(first), LONG_AGO), np.zeros(count, np.int64)
    np.maximum.at(last, number, start[talks])
    before_last[work[talks]] = last[number] - start[talks]
    alone = np.setdiff1d(work[talks], effect)
    own = np.zeros((count + len(first), len(names)))
    own[work[name != NONE], name[name != NONE]] = -saved[name != NONE]
    late = replay(
        own,
        [
            (waiting[effect], cause, -(slack + before_last[effect])),
            (waiting[alone], np.full(len(alone), _BEFORE), -before_last[alone]),
            (work[talks], met, 0.0),
        ],
    )
    ends_early = np.concatenate([each.ends_early_ns for each in every], axis=1)
    return np.array([_gain_of(-late[work], early) for early in ends_early])


def _gain_of(gain: Floats, ends_early: Floats) -> Floats:
    """The gain of the end of an iteration: the least of its works, which end early by a time or not in it."""
    own = np.isfinite(ends_early)
    return np.min(gain[own] + ends_early[own, None], axis=0) if own.any() else np.zeros(gain.shape[1])


class _Nodes(NamedTuple):
    """The device work of a rank and the resumptions of its threads in some iterations, as events.

    Attributes:
        effect, cause, slack: each event with one that it waits for, and how much earlier than the last that had happened, in ns.
        work, start: the events that are device work, and its starts.
        match: its collective of the job; `NONE` if no such.
        saved: how much shorter it is where the kernel `name` is faster, in ns.
        name: which of the kernels that are tried; `NONE` if no such.
        ends_early_ns: iterations x work, how long before the end of an iteration it ends; infinite where the iteration does not end with it.
        events: their number.
    """

    effect: Int64s
    cause: Int64s
    slack: Int64s
    work: Int64s
    start: Int64s
    match: Int64s
    saved: Floats
    name: Int64s
    ends_early_ns: Floats
    events: int


def _nodes(
    ranks: Ranks,
    rank: int,
    span: Span,
    iterations: Sequence[Span],
    arrivals: Arrivals,
    columns: Mapping[str, int],
    part: float,
    first: int,
) -> _Nodes:
    """The events of a rank, numbered from `first` on."""
    activities = ranks.of(rank)
    work, works = activities.work, len(activities.work)
    time, waits_for, slack = _graph(activities)
    # The last of what a node waits for has no slack, so that any with more slack than the largest gain does not matter.
    most = _MARGIN * part * span.duration_ns
    kept = np.flatnonzero((np.append(work.end, time[works:]) > span.start_ns) & (time < span.end_ns))
    event = np.full(len(time), _BEFORE)
    event[kept] = first + np.arange(len(kept))
    effect, column = np.nonzero((waits_for[kept] != NONE) & (slack[kept] <= most))
    own = kept[kept < works]
    arrived = np.array([arrivals.time.get(match, span.start_ns) for match in work.match[own].tolist()], np.int64)
    began = np.maximum(np.maximum(work.start[own], arrived), span.start_ns)

    def early(each: Span) -> Floats:
        """How long before the end of an iteration its own work ends; infinite for other work, and beyond a time."""
        before = each.end_ns - work.end
        return np.where(ranks.launched_in(rank, each) & (before >= 0) & (before <= most), before, np.inf)[own]

    return _Nodes(
        first + effect,
        event[waits_for[kept][effect, column]],
        slack[kept][effect, column],
        event[own],
        work.start[own],
        work.match[own],
        part * np.maximum(work.end[own] - began, 0),
        np.array([columns.get(each, NONE) for each in work.names], np.int64)[work.name[own]],
        np.stack([early(each) for each in iterations]),
        len(kept),
    )


def _graph(activities: RankActivities) -> tuple[Int64s, Int64s, Int64s]:
    """The nodes of a rank: its works, the resumptions of its threads, and one that stands for what happened long ago.

    Returns:
        When each starts, some nodes that it waits for, and the slack of these in ns. `NONE` is no node.
    """
    work, waits, resumptions = activities.work, activities.waits, activities.resumptions
    works = len(work)
    firsts = dict(zip(resumptions, works + np.cumsum([0, *map(len, resumptions.values())]), strict=False))
    count = works + sum(map(len, resumptions.values()))
    columns = (waits.before, *waits.events.T)
    launch = len(columns)
    time = np.full(count + 1, LONG_AGO)
    waits_for, slack = np.full((count + 1, launch + 1), NONE), np.zeros((count + 1, launch + 1), np.int64)

    def resumed(thread: int, times: Int64s) -> Int64s:
        """The node after which a thread ran at some times."""
        place = np.searchsorted(resumptions[thread].time, times, side="right") - 1
        return np.where(place == NONE, count, firsts[thread] + place)

    time[:works] = work.start
    for column, others in enumerate(columns):
        waits_for[:works, column] = others
        slack[:works, column] = np.maximum(waits.ready - work.end[others], 0)
    for thread, each in resumptions.items():
        launched = np.flatnonzero(work.thread == thread)
        waits_for[launched, launch] = resumed(thread, work.launched[launched])
        slack[launched, launch] = np.minimum(waits.ready, work.start)[launched] - work.launched[launched]
        nodes = firsts[thread] + np.arange(len(each))
        time[nodes] = each.time
        waits_for[nodes, 0] = each.work
        waits_for[nodes, 1] = np.append(count, nodes)[: len(nodes)]
        slack[nodes, 1] = each.ready - each.begin
        for other in np.unique(each.thread[each.thread != NONE]).tolist():
            after = np.flatnonzero(each.thread == other)
            waits_for[nodes[after], 0] = resumed(other, each.ready[after])
    return time, waits_for, slack
