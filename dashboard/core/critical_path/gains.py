"""The gain of an iteration from faster kernels: its dependencies, executed again.

The gain of an event is how much earlier it happens. A node starts when the last of what it waits for has happened, so its gain is the least,
over what it waits for, of the gain there plus the slack: how much earlier than the last that had happened. So all gains are 0 where no kernel
is faster.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np
import pandas as pd

from warpladder.dashboard.core.critical_path.activities import RankActivities
from warpladder.dashboard.core.critical_path.spans import Arrivals, Ranks, Span
from warpladder.dashboard.core.critical_path.waits import LONG_AGO
from warpladder.dashboard.core.replay import Contradiction, replay
from warpladder.data.arrays import NONE, Floats, Int64s

#: No gain is larger than this many times the time that is saved if all of the iteration is faster; clocks are uncertain.
_MARGIN: Final = 2.0
#: The column of work with how long before the end of an iteration it ends.
_EARLY: Final = "early_{}"
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
    arrivals = Arrivals.of(ranks, span)
    # The last of what an event waits for has no slack, so that any with more slack than the largest gain does not matter.
    most = _MARGIN * part * span.duration_ns
    events, every_wait, every_work = 1, list[pd.DataFrame](), list[pd.DataFrame]()
    for rank in chosen:
        waits, kept = _waits(ranks.of(rank), span, most, events)
        every_wait.append(waits)
        own = _work(ranks, rank, iterations, kept, most)
        every_work.append(own.assign(event=events + own.index.to_numpy(np.int64)))
        events += len(kept)
    waits, work = pd.concat(every_wait), pd.concat(every_work, ignore_index=True)
    talks = work[work["match"] != NONE]
    if talks.duplicated(["rank", "match"]).any():
        raise Contradiction("a rank meets twice at once")
    # What work of a collective waits for is waited for by all of its ranks.
    of_match, waiting = talks.groupby("match"), np.arange(events)
    at, met = (np.asarray(each, np.int64) for each in (talks["event"], events + of_match.ngroup()))
    waiting[at] = met
    before_last = np.zeros(events, np.int64)
    before_last[at] = of_match["start"].transform("max") - talks["start"]
    alone = np.setdiff1d(at, waits["effect"])
    tried = work[work["name"].isin(names)]
    arrived = [arrivals.time.get(match, span.start_ns) for match in tried["match"]]
    began = tried["start"].clip(lower=span.start_ns).clip(lower=np.array(arrived, np.int64))
    less = np.zeros((events + of_match.ngroups, len(names)))
    less[tried["event"], pd.Index(names).get_indexer(pd.Index(tried["name"]))] = -part * (tried["end"] - began).clip(lower=0)
    effect, cause, slack = (waits[name].to_numpy() for name in ("effect", "cause", "slack"))
    late = replay(
        less,
        [
            (waiting[effect], cause, -(slack + before_last[effect])),
            (waiting[alone], np.full(len(alone), _BEFORE), -before_last[alone]),
            (at, met, 0.0),
        ],
    )
    gain = -late[work["event"]]
    return np.array([_gain_of(gain, work[_EARLY.format(place)].to_numpy()) for place in range(len(iterations))])


def _gain_of(gain: Floats, ends_early: Floats) -> Floats:
    """The gain of the end of an iteration: the least of its works, which end early by a time or not in it."""
    own = np.isfinite(ends_early)
    return np.min(gain[own] + ends_early[own, None], axis=0) if own.any() else np.zeros(gain.shape[1])


def _waits(activities: RankActivities, span: Span, most: float, first: int) -> tuple[pd.DataFrame, Int64s]:
    """What the events of a rank in a time wait for: `effect`, `cause` and `slack`; and the nodes that are events, numbered from `first` on."""
    works = len(activities.work)
    time, waits_for, slack = _graph(activities)
    kept = np.flatnonzero((np.append(activities.work.end, time[works:]) > span.start_ns) & (time < span.end_ns))
    event = np.full(len(time), _BEFORE)
    event[kept] = first + np.arange(len(kept))
    node, column = np.nonzero((waits_for[kept] != NONE) & (slack[kept] <= most))
    cause = event[waits_for[kept[node], column]]
    return pd.DataFrame({"effect": first + node, "cause": cause, "slack": slack[kept[node], column]}), kept


def _work(ranks: Ranks, rank: int, iterations: Sequence[Span], kept: Int64s, most: float) -> pd.DataFrame:
    """The device work among the nodes of a rank: `rank`, `name`, `match`, `start`, `end`, and for each iteration how long before the end of
    the iteration it ends, `_EARLY`; infinite where it is not of the iteration, and beyond a time."""
    work = ranks.of(rank).work
    own = kept[kept < len(work)]

    def early(each: Span) -> Floats:
        before = each.end_ns - work.end
        return np.where(ranks.launched_in(rank, each) & (before >= 0) & (before <= most), before, np.inf)[own]

    columns = {name: getattr(work, name)[own] for name in ("match", "start", "end")}
    rows = pd.DataFrame({"rank": rank, "name": np.array(work.names, object)[work.name[own]], **columns})
    return rows.assign(**{_EARLY.format(place): early(each) for place, each in enumerate(iterations)})


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
