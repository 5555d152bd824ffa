"""Which process launched each piece of device work, in a trace that tools merged from those of several processes.

A device event has the process that a tool gave it: often the number of its GPU, and not the process of its launch. Correlation numbers are
those of a process, so that several have the same. Four kinds of evidence are tried in turn:

1. The event has the id of a process that launched work.
2. All ids are texts with a label of their rank, such as `[TP00] 100` and `[TP00] 0`.
3. The events of each process stand together in the file, as where one trace was appended to another.
4. The work of a GPU goes back to launches of one process: they have its correlation numbers, and do not come after it.

The first three are believed only if the launches of nearly all work are found in its process.
"""

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from warpladder.collectors.kineto.threads import Key
from warpladder.data import arrays
from warpladder.data.arrays import NONE, Bools, Int64s

#: The clocks of a device and of its host differ by less.
_TOLERANCE_NS: Final = 10_000
#: The share of work with launches that must have them in the process that it is given to.
_NEARLY_ALL: Final = 0.99
#: The last integer of a text, which is the id that a process had before it got a label.
_LAST_ID: Final = re.compile(r"(?<=[\s_\]:/-])-?\d+\W*\Z")
_DIGITS: Final = re.compile(r"(\d+)")
_RANK: Final = re.compile(r"(?i)\W*(?:rank|worker|wr|tp|pp|dp|ep|cp|gpu|device)[\s_=:-]*(\d{1,5})\W*\Z")


class Untold(Exception):
    """It cannot be told which process launched some work."""


class Work(NamedTuple):
    """Device work: code of the process of its event, GPU, correlation, start in ns, and place in the file."""

    lane: Int64s
    device: Int64s
    correlation: Int64s
    start: Int64s
    place: Int64s


class Launches(NamedTuple):
    """Calls: code of their process, correlation, and start in ns."""

    process: Int64s
    correlation: Int64s
    start: Int64s


class Places(NamedTuple):
    """Codes of processes of the host, and the places of the first and the last of their events in the file."""

    process: Int64s
    first: Int64s
    last: Int64s


def owners(work: Work, launches: Launches, places: Places, names: Sequence[Key]) -> Int64s:
    """The code of the process that launched each piece of work; `NONE` where no launch is in the trace. Raises Untold:
    it cannot be told.

    Args:
        work, launches, places: of the trace.
        names: ids of processes, by code.
    """
    hosts = _hosts(work, launches)
    labels = [label_of(name) for name in names]
    everyone = np.union1d(hosts, work.lane).tolist()
    are_labelled = all(labels[each] for each in everyone) and len({labels[each] for each in everyone}) > 1
    if len(hosts) < 2 and not are_labelled:
        return np.full(len(work.lane), hosts[0] if len(hosts) else NONE)
    found = _Found(work, launches, hosts)
    if np.isin(work.lane, hosts).all() and found.explains(work.lane):
        return work.lane
    if are_labelled:
        owner = _by_label(work, hosts, labels)
        if owner is not None and found.explains(owner):
            return owner
    if len(hosts) < 2:
        return np.full(len(work.lane), hosts[0] if len(hosts) else NONE)
    owner = _by_block(work, hosts, places)
    if owner is not None and found.explains(owner):
        return owner
    return _by_lane(work, found)


def owners_of_waits(waits: Work, work: Work, owner: Int64s, launches: Launches) -> Int64s:
    """The same for synchronisations: the only process with such a call, else that of all work with the same process in its events.

    Args:
        waits: the synchronisations.
        work, owner: the work, and its processes.
        launches: calls, also of synchronisations.
    """
    hosts = np.unique(owner[owner != NONE])
    possible = _Found(waits, launches, hosts).call != NONE
    of_lane = {lane: set(owner[(work.lane == lane) & (owner != NONE)].tolist()) for lane in np.unique(waits.lane).tolist()}
    by_lane = [next(iter(of_lane[lane])) if len(of_lane[lane]) == 1 else NONE for lane in waits.lane.tolist()]
    return np.where(possible.sum(axis=0) == 1, hosts[possible.argmax(axis=0)], np.array(by_lane, np.int64))


def label_of(name: Key) -> str:
    """The label that a tool gave a process, without the id that the process had; empty for an integer."""
    return _LAST_ID.sub("", name).strip() if isinstance(name, str) else ""


def rank_in(name: Key) -> int | None:
    """The rank in the id of a process, such as `[TP03] 100` or `rank 3`; None where it has none."""
    found = _RANK.match(label_of(name)) or _RANK.match(str(name))
    return int(found[1]) if found else None


def in_order(name: Key) -> list[str | int]:
    """A key that sorts ids of processes: integers first, and integers in texts as numbers."""
    if isinstance(name, int):
        return ["", name]
    return [int(part) if place % 2 else part or " " for place, part in enumerate(_DIGITS.split(name))]


def _hosts(work: Work, launches: Launches) -> Int64s:
    """The processes with calls that may have launched work."""
    may = np.isin(launches.correlation, work.correlation) & (launches.correlation > 0)
    return np.unique(launches.process[may])


class _Found:
    """The launches of each process that may be those of each piece of work."""

    def __init__(self, work: Work, launches: Launches, hosts: Int64s) -> None:
        self.hosts = hosts
        #: By process and piece of work: the place of its call among the process's, or `NONE`.
        self.call = np.full((len(hosts), len(work.start)), NONE)
        calls = arrays.Launches(launches.process, launches.correlation)
        for row, host in enumerate(hosts.tolist()):
            call = calls.of(np.full(len(work.correlation), host), work.correlation)
            in_time = launches.start[call] <= work.start + _TOLERANCE_NS
            self.call[row] = np.where(in_time, call, NONE)
        self.any = (self.call != NONE).any(axis=0)

    def in_process(self, owner: Int64s) -> Bools:
        """Whether the launch of each piece of work is one of the process that it is given to."""
        if not len(self.hosts):
            return np.zeros(len(owner), bool)
        row = np.minimum(np.searchsorted(self.hosts, owner), len(self.hosts) - 1)
        return np.asarray((self.hosts[row] == owner) & (self.call[row, np.arange(len(owner))] != NONE))

    def explains(self, owner: Int64s) -> bool:
        """Whether nearly all work that has a launch has it in its process."""
        return bool(self.in_process(owner).sum() >= _NEARLY_ALL * self.any.sum())


def _by_label(work: Work, hosts: Int64s, labels: Sequence[str]) -> Int64s | None:
    """The process with the label of the work; a process of the work's own where none with the label launched any."""
    of_label: dict[str, int] = {}
    for host in hosts.tolist():
        if labels[host] in of_label:
            return None
        of_label[labels[host]] = host
    distinct, inverse = np.unique(work.lane, return_inverse=True)
    chosen = [of_label.setdefault(labels[lane], lane) for lane in distinct.tolist()]
    return np.array(chosen, np.int64)[inverse.reshape(-1)]


def _by_block(work: Work, hosts: Int64s, places: Places) -> Int64s | None:
    """The process whose events stand around the work in the file; None where those of several stand among one another."""
    chosen = np.isin(places.process, hosts)
    order = np.argsort(places.first[chosen])
    process, first, last = (column[chosen][order] for column in places)
    if (first[1:] <= last[:-1]).any():
        return None
    return np.asarray(process[np.maximum(np.searchsorted(first, work.place, side="right") - 1, 0)])


def _by_lane(work: Work, found: _Found) -> Int64s:
    """The process that most work of a GPU goes back to. A GPU for which one process alone is possible takes its launches from the others."""
    lane, first = arrays.numbered(work.lane, work.device)
    call = found.call.copy()
    owner = np.full(len(work.start), NONE)
    open_lanes = set(range(len(first)))
    while open_lanes:
        margins = {}
        for each in open_lanes:
            counts = (call[:, lane == each] != NONE).sum(axis=1)
            first, second = np.argsort(-counts, kind="stable")[:2]
            margins[each] = (int(counts[first] - counts[second]), int(first))
        each = max(margins, key=lambda number: margins[number][0])
        margin, best = margins[each]
        if not margin:
            break
        own = lane == each
        owner[own] = found.hosts[best]
        taken = call[best, own]
        call[best, ~own & np.isin(call[best], taken[taken != NONE])] = NONE
        open_lanes.remove(each)
    is_open = np.isin(lane, list(open_lanes))
    if (is_open & found.any).any() or not found.explains(owner):
        return _one_by_one(found)
    return owner


def _one_by_one(found: _Found) -> Int64s:
    """The only process that may have launched each piece of work. Raises Untold: several may have launched some of it."""
    possible = found.call != NONE
    count = possible.sum(axis=0)
    if (count > 1).sum() > (1 - _NEARLY_ALL) * (count > 0).sum():
        raise Untold
    return np.where(count == 1, found.hosts[possible.argmax(axis=0)], NONE)
