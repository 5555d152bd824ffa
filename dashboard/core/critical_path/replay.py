"""The gain of an iteration from faster kernels: its dependencies, executed again.

The gain of an event is how much earlier it happens. A node starts when the last of what it waits for has happened, so its gain is the least,
over what it waits for, of the gain there plus the slack: how much earlier than the last that had happened. So all gains are 0 where no kernel
is faster. All kernels are tried at once: a gain is an array with an element for each.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from warpladder.dashboard.core.critical_path.activities import RankActivities
from warpladder.dashboard.core.critical_path.spans import Arrivals, Ranks, Span
from warpladder.dashboard.core.critical_path.waits import LONG_AGO
from warpladder.data.arrays import NONE, Floats, Int64s

Gains: TypeAlias = Floats

#: No gain is larger than this many times the time that is saved if all of the iteration is faster; clocks are uncertain.
_MARGIN: Final = 2.0


class Contradiction(ValueError):
    """Ranks wait for each other without end, or meet twice at once, because collectives were matched that are not the same."""


def replay(ranks: Ranks, chosen: Sequence[int], iterations: Sequence[Span], names: Sequence[str], part: float) -> Gains:
    """How much earlier iterations end where a kernel is faster on all ranks.

    What a rank waited for is in `activities`. A collective begins to transfer when the last of the chosen ranks has arrived. Ranks that are
    not chosen never come last, so that the gain is an upper bound without them. Waits without a known cause stay as long as they are,
    and all that happened before the first iteration stays when it was.

    Args:
        chosen: the ranks to replay, see `choose`.
        iterations: one after the other.
        names: kernels, copies and sets, each of which is tried alone.
        part: by which part of its time it is shorter; of a matched collective, of its transfer.

    Returns:
        In ns, a row for each iteration and a column for each name.

    Raises:
        Contradiction: the matches of collectives contradict each other.
    """
    span = replace(iterations[-1], start_ns=iterations[0].start_ns)
    arrivals = Arrivals.of(ranks, span)
    columns = {name: column for column, name in enumerate(names)}
    every = {rank: _nodes(ranks, rank, span, iterations, arrivals, columns, part) for rank in chosen}
    collectives: dict[int, _Collective] = {}
    for rank, nodes in every.items():
        for match, start in zip(nodes.match, nodes.start_ns, strict=True):
            if match != NONE:
                found = collectives.setdefault(match, _Collective(np.full(len(names), np.inf), start))
                if rank in found.missing:
                    raise Contradiction
                found.last_ns = max(found.last_ns, start)
                found.missing.add(rank)
    ready = deque[Iterator[_Collective]]()
    ready.extend(_events(rank, nodes, collectives, ready, len(names)) for rank, nodes in every.items())
    while ready:
        events = ready.popleft()
        if awaited := next(events, None):
            awaited.parked.append(events)
    if any(each.missing for each in collectives.values()):
        raise Contradiction
    return np.array([_gain_of(every.values(), iteration, len(names)) for iteration in range(len(iterations))])


def _gain_of(every: Iterable["_Nodes"], iteration: int, names: int) -> Gains:
    ends = [
        gain + early
        for nodes in every
        for gain, early in zip(nodes.gain, nodes.ends_early_ns[iteration], strict=False)
        if gain is not None and early < np.inf
    ]
    return np.asarray(np.min(ends, axis=0)) if ends else np.zeros(names)


@dataclass
class _Nodes:
    """The device work of a rank and the resumptions of its threads in an iteration, by time. Lists have an element for each.

    Attributes:
        waits_for: the nodes that each one waits for; `NONE` is no node.
        slack: of these, in ns.
        saved_ns: how much shorter the node itself is where the kernel `name` is faster.
        name: which of the kernels that are tried; `NONE` if no such.
        match: the collective of the job; `NONE` if no such.
        start_ns: of work.
        ends_early_ns: by iteration, how long before its end the node ends; infinite where the iteration does not end with it.
        gain: of its end, None before its replay; the last one is of what happened before the iteration.
    """

    waits_for: list[list[int]]
    slack: list[list[int]]
    saved_ns: list[float]
    name: list[int]
    match: list[int]
    start_ns: list[int]
    ends_early_ns: list[list[float]]
    gain: list[Gains | None]

    def end(self, node: int, gain: Gains) -> None:
        if self.name[node] != NONE:
            gain = gain.copy()
            gain[self.name[node]] += self.saved_ns[node]
        self.gain[node] = gain


@dataclass
class _Collective:
    """A collective while it is replayed.

    Attributes:
        gain: of the arrival of the last rank, of those that have arrived.
        last_ns: when the last of the chosen ranks arrived.
        missing: the chosen ranks that have not arrived.
        arrived: the nodes of ranks that have.
        parked: ranks whose next node waits for its end.
    """

    gain: Gains
    last_ns: int
    missing: set[int] = field(default_factory=set)
    arrived: list[tuple[_Nodes, int]] = field(default_factory=list)
    parked: list[Iterator["_Collective"]] = field(default_factory=list)


def _events(
    rank: int, nodes: _Nodes, collectives: Mapping[int, _Collective], ready: deque[Iterator[_Collective]], names: int
) -> Iterator[_Collective]:
    """Replay a rank. Yields collectives at which a rank is missing, for whose ends its next node waits."""
    for node, others in enumerate(nodes.waits_for):
        gain: Gains | None = None
        for other, slack in zip(others, nodes.slack[node], strict=True):
            if other != NONE:
                while (theirs := nodes.gain[other]) is None:
                    yield collectives[nodes.match[other]]
                gain = theirs + slack if gain is None else np.minimum(gain, theirs + slack)
        gain = np.zeros(names) if gain is None else gain
        collective = collectives.get(nodes.match[node])
        if collective is None:
            nodes.end(node, gain)
            continue
        collective.gain = np.minimum(collective.gain, gain + (collective.last_ns - nodes.start_ns[node]))
        collective.arrived.append((nodes, node))
        collective.missing.discard(rank)
        if not collective.missing:
            for its, place in collective.arrived:
                its.end(place, collective.gain)
            ready.extend(collective.parked)


def _nodes(
    ranks: Ranks, rank: int, span: Span, iterations: Sequence[Span], arrivals: Arrivals, columns: Mapping[str, int], part: float
) -> _Nodes:
    activities = ranks.of(rank)
    work, works = activities.work, len(activities.work)
    time, waits_for, slack = _graph(activities)
    # The last of what a node waits for has no slack, so that any with more slack than the largest gain does not matter.
    most = _MARGIN * part * span.duration_ns
    waits_for = np.where(slack > most, NONE, waits_for)
    kept = np.flatnonzero((np.append(work.end, time[works:]) > span.start_ns) & (time < span.end_ns))
    kept = kept[np.lexsort((kept, kept < works, time[kept]))]
    # What happened before the span is the last node, and a node that is none stays none.
    number = np.full(len(time) + 1, len(kept))
    number[kept], number[NONE] = np.arange(len(kept)), NONE
    of_work = kept[kept < works]
    arrived = np.array([arrivals.time.get(match, span.start_ns) for match in work.match[of_work].tolist()], np.int64)
    began = np.maximum(np.maximum(work.start[of_work], arrived), span.start_ns)
    name = np.array([columns.get(each, NONE) for each in work.names], np.int64)[work.name[of_work]]

    def early(each: Span) -> Gains:
        """How long before the end of an iteration its own work ends; infinite for other work, and beyond a time."""
        before = each.end_ns - work.end
        return np.where(ranks.launched_in(rank, each) & (before >= 0) & (before <= most), before, np.inf)

    def of_nodes(values: npt.NDArray[Any], otherwise: float) -> list[Any]:
        """Values of works as those of nodes."""
        every = np.full(len(kept), otherwise, values.dtype)
        every[kept < works] = values
        return list(every.tolist())

    return _Nodes(
        number[waits_for[kept]].tolist(),
        slack[kept].tolist(),
        of_nodes(part * np.maximum(work.end[of_work] - began, 0), 0.0),
        of_nodes(name, NONE),
        of_nodes(work.match[of_work], NONE),
        of_nodes(work.start[of_work], 0),
        [of_nodes(early(each)[of_work], np.inf) for each in iterations],
        [*[None] * len(kept), np.zeros(len(columns))],
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
