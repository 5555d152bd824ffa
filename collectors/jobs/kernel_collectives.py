"""The collectives of a trace whose kernels have no arguments: from the names of kernels, and from NCCL's own NVTX ranges.

NCCL opens a range in a domain of its own for each call, such as `ncclAllReduce`, and launches the kernel in it. The kernels of the calls
between `ncclGroupStart` and `ncclGroupEnd` are launched in the range of the outermost `ncclGroupEnd`. Newer versions attach the
communicator and the message size. The kernels that a range launches on one stream are one collective, of the size of all its calls: NCCL
makes an `all_to_all` of several kernels of one group. If a group has kernels of several kinds or streams, no source tells which call they
are of, so these have their communicator, if it is the same for all, and no size.
"""

import re
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from warpladder.collectors.nsight_systems.payloads import UNKNOWN, Payloads
from warpladder.collectors.trace.model import process_of, thread_of
from warpladder.data import schema, store
from warpladder.data.arrays import Int64s, coded, heads, integers, least_of_groups, most_of_groups, numbered, ordered
from warpladder.data.columns import MOST_WORK
from warpladder.data.communication import collective_of
from warpladder.data.iterations import Steps, launch_times

_CALL: Final = re.compile(
    r"nccl(AllGather|AllReduce|AlltoAll|AllToAll|Bcast|Broadcast|Gather|GroupStart|GroupEnd|Recv|Reduce|ReduceScatter|Scatter|Send)\Z"
)
_OPENS, _CLOSES = "ncclGroupStart", "ncclGroupEnd"
_SENDS, _RECEIVES = "ncclSend", "ncclRecv"
#: Collectives whose message is a part of the larger of input and output, one a rank.
_ONE_A_RANK: Final = frozenset({"all_gather", "reduce_scatter", "alltoall", "gather", "scatter"})
_NO_COLLECTIVE: Final = ""
#: Columns that identify a stream.
_STREAM: Final = ("process", "device", "stream")


def rows(run: store.Run, steps: Steps, rank: int, payloads: Payloads | None) -> pa.Table:
    """Rows of `collectives` of a run.

    A group is a communicator, if NCCL's payloads tell it. Else it is a stream: numbers of streams differ between processes, so the streams
    that communicate are counted, in the order of their numbers.

    Args:
        run: the imported trace.
        steps: its iterations.
        rank: number of the process in the job.
        payloads: of NCCL's ranges; None where the trace has none.
    """
    read = ["start_ns", "end_ns", *_STREAM, "full_name", "launch_start_ns", "range_id", "collective"]
    kernels = run.arrow("kernels", read)
    kernels = kernels.filter(kernels["collective"].is_valid())
    kernels = kernels.sort_by([(column, "ascending") for column in (*_STREAM, "start_ns")])
    calls = _Calls.of(run, payloads)
    kernels, of_each = _joined(kernels, calls.launcher)
    stream, start, end = (integers(kernels[column], UNKNOWN) for column in ("stream", "start_ns", "end_ns"))
    own = ordered(*(integers(kernels[column], UNKNOWN) for column in _STREAM))
    launched = kernels["launch_start_ns"].is_valid().to_numpy()
    iteration = steps.numbers_at(launch_times(start, own, integers(kernels["launch_start_ns"], UNKNOWN), launched))
    called = calls.of_kernels(integers(kernels["range_id"], UNKNOWN))
    communicators = called.communicator.tolist()
    group = [
        f"communication stream {number}" if communicator == UNKNOWN else f"communicator {communicator & (1 << 64) - 1:016x}"
        for number, communicator in zip(own.tolist(), communicators, strict=True)
    ]
    full_names = kernels["full_name"].to_pylist()
    columns = {
        "rank": np.full(len(kernels), rank, np.int32),
        "iteration": pa.array(iteration, mask=iteration < 0),
        "collective": [
            named or by_kernel for named, by_kernel in zip(called.collective, kernels["collective"].to_pylist(), strict=True)
        ],
        "kernel": full_names,
        "group": group,
        "group_ranks": [""] * len(kernels),
        "group_size": pa.array(called.ranks.astype(np.int32), mask=called.ranks == UNKNOWN),
        "number": _counted(group, start).astype(np.int32),
        "element_type": [""] * len(kernels),
        "bytes": np.clip(called.bytes, 0, MOST_WORK),
        "kernels": of_each.astype(np.int32),
        "device": integers(kernels["device"], UNKNOWN).astype(np.int32),
        "stream": pa.array(stream, mask=stream < 0),
        "start_ns": start,
        "end_ns": end,
    }
    return schema.TABLES["collectives"].completed(columns, len(kernels))


def _joined(kernels: pa.Table, launchers: Int64s) -> tuple[pa.Table, Int64s]:
    """One row for the kernels of a kind that a range of NCCL launched on a stream, and how many they are.

    Args:
        kernels: in the order of streams and starts.
        launchers: ranges of NCCL that launch kernels.
    """
    places = np.arange(len(kernels))
    launcher, stream = (
        integers(kernels["range_id"], UNKNOWN),
        ordered(*(integers(kernels[column], UNKNOWN) for column in _STREAM)),
    )
    kind = coded(kernels["collective"])[0]
    alone = np.where(np.isin(launcher, launchers), UNKNOWN, places)
    number, first = numbered(launcher, stream, kind, alone)
    end = most_of_groups(number, integers(kernels["end_ns"], UNKNOWN), len(first))
    joined = kernels.take(pa.array(first))
    joined = joined.set_column(joined.schema.get_field_index("end_ns"), "end_ns", pa.array(end))
    return joined, np.bincount(number, minlength=len(first))


class _OfKernels(NamedTuple):
    """The facts about each collective in NCCL's ranges; `UNKNOWN`, 0 bytes and no name where they do not."""

    collective: list[str]
    communicator: Int64s
    ranks: Int64s
    bytes: Int64s


class _Calls(NamedTuple):
    """Calls of NCCL that communicate. `launcher` is the range in which the kernel is launched; `names` are those of the calls."""

    launcher: Int64s
    name: Int64s
    names: list[str]
    communicator: Int64s
    bytes: Int64s
    ranks_of: dict[int, int]

    @classmethod
    def of(cls, run: store.Run, payloads: Payloads | None) -> "_Calls":
        ranges = run.arrow("ranges", ["range_id", "process", "thread", "domain", "text", "start_ns"])
        text, texts = coded(ranges["text"])
        domain, domains = coded(ranges["domain"])
        is_call = np.array([bool(_CALL.match(each)) for each in texts], bool)
        has_domain = np.array([each != "" for each in domains], bool)
        at = np.flatnonzero(is_call[text] & has_domain[domain]) if len(text) else np.empty(0, np.int64)
        number, process, thread, start = (
            integers(ranges[column], UNKNOWN)[at] for column in ("range_id", "process", "thread", "start_ns")
        )
        order = np.lexsort((start, thread, process))
        at, number, process, thread, start = (column[order] for column in (at, number, process, thread, start))
        place = np.full(len(texts), 0)
        for each, change in ((_OPENS, 1), (_CLOSES, -1)):
            if each in texts:
                place[texts.index(each)] = change
        owner, _ = numbered(process, thread)
        launcher = _launchers(owner, place[text[at]])
        communicator, size = _payloads_of(process, thread, start, payloads)
        chosen = launcher != UNKNOWN
        return cls(number[launcher[chosen]], text[at][chosen], texts, communicator[chosen], size[chosen], _ranks_of(payloads))

    def of_kernels(self, launcher: Int64s) -> _OfKernels:
        """Look up the calls of each collective by the range in which it was launched."""
        unknown = np.full(len(launcher), UNKNOWN)
        result = _OfKernels([_NO_COLLECTIVE] * len(launcher), unknown, unknown.copy(), np.zeros(len(launcher), np.int64))
        if not len(self.launcher) or not len(launcher):
            return result
        launchers, group = np.unique(self.launcher, return_inverse=True)
        communicator = _same(group, self.communicator)
        kind, kinds = self._kinds()
        own = _same(group, kind)
        size = self._sizes(group, own, kinds)
        place = np.minimum(np.searchsorted(launchers, launcher), len(launchers) - 1)
        known = launchers[place] == launcher
        alone = np.bincount(place[known], minlength=len(launchers)) == 1
        named = [kinds[each] if each != UNKNOWN else _NO_COLLECTIVE for each in np.where(known, own[place], UNKNOWN).tolist()]
        result.communicator[known] = communicator[place[known]]
        result.ranks[known] = [self.ranks_of.get(each, UNKNOWN) for each in communicator[place[known]].tolist()]
        result.bytes[known] = np.where(alone, size, 0)[place[known]]
        return result._replace(collective=named)

    def _kinds(self) -> tuple[Int64s, list[str]]:
        """The collective of each call."""
        of_name = [collective_of("", each.removeprefix("nccl")) if _CALL.match(each) else _NO_COLLECTIVE for each in self.names]
        kinds = sorted(set(of_name))
        return np.array([kinds.index(each) for each in of_name], np.int64)[self.name], kinds

    def _sizes(self, group: Int64s, own: Int64s, kinds: list[str]) -> Int64s:
        """The larger of input and output of all calls of each group; 0 where it is not known."""
        ranks = np.array([self.ranks_of.get(each, UNKNOWN) for each in self.communicator.tolist()], np.int64)
        parted = np.array([each in _ONE_A_RANK for each in kinds], bool)[own[group]]
        known = (self.bytes != UNKNOWN) & (own[group] != UNKNOWN) & (~parted | (ranks != UNKNOWN))
        size = self.bytes * np.where(parted, ranks, 1)
        sums = [
            np.bincount(group, np.where(chosen, size, 0))
            for chosen in (self.name != self._code(_RECEIVES), self.name != self._code(_SENDS))
        ]
        complete = np.bincount(group, ~known) == 0
        return np.where(complete, np.maximum(*sums), 0).astype(np.int64)

    def _code(self, name: str) -> int:
        return self.names.index(name) if name in self.names else UNKNOWN


def _launchers(thread: Int64s, change: Int64s) -> Int64s:
    """For each range of NCCL, the place of the range that launches its kernels; `UNKNOWN` for one that opens or closes a group.

    Args:
        thread: of each range; ranges are sorted by thread and start.
        change: of the depth of groups, 1, -1 or 0.
    """
    result = np.full(len(thread), UNKNOWN)
    of_threads = heads(thread)
    for head, tail in zip(of_threads.tolist(), np.append(of_threads, len(thread))[1:].tolist(), strict=True):
        depth = np.cumsum(change[head:tail])
        depth -= np.minimum(np.minimum.accumulate(depth), 0)  # a group that was opened before the trace began
        calls = np.flatnonzero(change[head:tail] == 0)
        closers = np.append(np.flatnonzero((change[head:tail] < 0) & (depth == 0)), UNKNOWN - head)
        grouped = closers[np.minimum(np.searchsorted(closers[:-1], calls), len(closers) - 1)]
        result[head + calls] = head + np.where(depth[calls] > 0, grouped, calls)
    return result


def _payloads_of(process: Int64s, thread: Int64s, start: Int64s, payloads: Payloads | None) -> tuple[Int64s, Int64s]:
    """Communicator and size of the message of each range."""
    communicator, size = np.full(len(start), UNKNOWN), np.full(len(start), UNKNOWN)
    if payloads is None or not len(payloads) or not len(start):
        return communicator, size
    starts, owners = np.unique(payloads.start), np.unique(process << 24 | thread)
    keys = _keys(owners, starts, process_of(payloads.thread) << 24 | thread_of(payloads.thread), payloads.start)
    order = np.argsort(keys, kind="stable")
    wanted = _keys(owners, starts, process << 24 | thread, start)
    place = order[np.minimum(np.searchsorted(keys[order], wanted), len(order) - 1)]
    found = (keys[place] == wanted) & (wanted != UNKNOWN)
    communicator[found], size[found] = payloads.communicator[place[found]], payloads.bytes[place[found]]
    return communicator, size


def _keys(owners: Int64s, starts: Int64s, owner: Int64s, start: Int64s) -> Int64s:
    """One number for each pair of thread and start, `UNKNOWN` for a pair that is not among `owners` and `starts`."""
    of_owner = np.minimum(np.searchsorted(owners, owner), len(owners) - 1)
    of_start = np.minimum(np.searchsorted(starts, start), len(starts) - 1)
    known = (owners[of_owner] == owner) & (starts[of_start] == start)
    return np.where(known, of_owner * len(starts) + of_start, UNKNOWN)


def _ranks_of(payloads: Payloads | None) -> dict[int, int]:
    """Number of ranks by communicator, from the calls that made them."""
    if payloads is None:
        return {}
    known = payloads.ranks > 0
    return dict(zip(payloads.communicator[known].tolist(), payloads.ranks[known].tolist(), strict=True))


def _same(group: Int64s, values: Int64s) -> Int64s:
    """The value of each group whose members have the same; else `UNKNOWN`."""
    count = int(group.max()) + 1
    least, most = least_of_groups(group, values, count), most_of_groups(group, values, count)
    return np.where(least == most, least, UNKNOWN)


def _counted(group: list[str], start: Int64s) -> Int64s:
    """The number of each collective in its group, from 0, in the order of starts."""
    code = np.unique(group, return_inverse=True)[1].reshape(-1) if group else np.empty(0, np.int64)
    order = np.lexsort((start, code))
    counted = np.empty(len(code), np.int64)
    counted[order] = np.arange(len(code)) - np.searchsorted(code[order], code[order], side="left")
    return counted
