"""The totals of the pages of a job: Ranks, its iterations, and Critical path, by the definitions of docs/jobs.md."""

import math
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from tests.second_method.of_trace import kind_of
from tests.second_method.trace import STEP, Interval, Totals, Trace, by_device, joined, step_ranges

_COMMUNICATION: Final = re.compile(
    r"(?i)nccl|msccl|oneccl|multimem_|shot_?all_?reduce|symmetric_memory::|cross_device_reduce|allreduce_fusion|moeA2A|nvshmem|deep_ep|\bEp\w*Node"
)
_KERNEL_WAIT_NS: Final = 30_000
#: Classes of a nanosecond of a GPU. Of those that run, the first counts.
_CLASSES: Final = ("compute_ns", "exposed_ns", "copies_ns", "host_wait_ns", "kernel_wait_ns", "other_idle_ns")


def numbers_of(steps: Sequence[Interval]) -> list[int]:
    """The numbers of steps. Where one occurs twice, numbers that start again are counted on from the number before."""
    numbers = [int(found[2]) for each in steps if (found := STEP.fullmatch(each.name))]
    if len(set(numbers)) == len(numbers):
        return numbers
    counted: list[int] = []
    for before, number in zip([None, *numbers], numbers, strict=False):
        again = before is not None and number <= before
        counted.append(number if not counted else counted[-1] + 1 if again else counted[-1] + number - (before or 0))
    return counted


def launch_times(trace: Trace) -> list[float]:
    """When each piece of work was launched.

    Without a call in the trace that is with the work before it on its stream; before the trace, where no work before it has a call; at its
    start on a stream of which no call is known.
    """
    streams: dict[tuple[Any, Any], list[tuple[float, float, int]]] = defaultdict(list)
    for place, each in enumerate(trace.work):
        call = trace.launch(each)
        launched = math.inf if call is None else call.start
        streams[each.args.get("device"), each.args.get("stream")].append((each.start, launched, place))
    times = [0.0] * len(trace.work)
    for works in streams.values():
        known = any(launched < math.inf for _, launched, _ in works)
        before = -math.inf
        for start, launched, place in sorted(works):
            before = before if launched == math.inf else launched
            times[place] = before if known else start
    return times


@dataclass(frozen=True)
class Gpu:
    """What a GPU does from the start of a rank's first work to the end of its last: pieces of time with their class."""

    pieces: Sequence[tuple[int, int, str]]
    communicating: Sequence[tuple[int, int]]

    def times(self, begin: int, end: int) -> dict[str, int]:
        """The time of each class between two times, and of communication."""
        found: dict[str, int] = dict.fromkeys(_CLASSES, 0)
        for start, stop, what in self.pieces:
            found[what] += max(0, min(stop, end) - max(start, begin))
        found["communication_ns"] = sum(max(0, min(stop, end) - max(start, begin)) for start, stop in self.communicating)
        return found | {"span_ns": end - begin}


def gpus_of(trace: Trace) -> list[Gpu]:
    """The GPUs of a rank. One on which its kernels take less than a hundredth of their time on the busiest is counted with that one."""
    begin, end = min(each.start for each in trace.work), max(each.end for each in trace.work)
    devices = by_device(trace.work)
    time = {device: sum(each.lasts for each in own if each.kind == "kernel") for device, own in devices.items()}
    busiest = max(time, key=lambda device: (time[device], len(devices[device]) if not any(time.values()) else 0))
    own = [device for device in devices if time[device] >= max(0.01 * time[busiest], 1)] or [busiest]
    together = {device: list(devices[device]) for device in own}
    for device in devices.keys() - together.keys():
        together[busiest] += devices[device]
    return [
        Gpu(list(_pieces(trace, work, begin, end)), joined(each for each in work if is_communication(each)))
        for work in together.values()
    ]


def _pieces(trace: Trace, work: Sequence[Interval], begin: int, end: int) -> Iterator[tuple[int, int, str]]:
    """Sweeps over the starts and ends of some work of one GPU."""
    changes: dict[int, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    next_launch: dict[int, float] = {}
    for each in work:
        what = "copies_ns" if each.kind != "kernel" else "exposed_ns" if is_communication(each) else "compute_ns"
        changes[each.start][what] += 1
        changes[each.end][what] -= 1
        call = trace.launch(each)
        launched = -math.inf if call is None else call.start
        next_launch[each.start] = min(next_launch.get(each.start, math.inf), launched)
    edges = sorted({begin, end, *changes})
    running = dict.fromkeys(_CLASSES, 0)
    for start, stop in pairwise(edges):
        for what, change in changes[start].items():
            running[what] += change
        idle = "host_wait_ns"
        if stop in next_launch and next_launch[stop] <= start:
            idle = "kernel_wait_ns" if stop - start < _KERNEL_WAIT_NS else "other_idle_ns"
        yield start, stop, next((what for what in _CLASSES if running[what]), idle)


def is_communication(kernel: Interval) -> bool:
    """Whether a kernel has one of the names that docs/jobs.md lists, or the arguments of a collective."""
    return kernel.kind == "kernel" and bool(_COMMUNICATION.search(kernel.name) or "Collective name" in kernel.args)


def windows(trace: Trace, steps: Sequence[Interval]) -> list[tuple[int, int] | None]:
    """From when to when each step lasts on the devices; None for a step without work.

    It ends when all work that was launched before the end of the step has ended. It begins with its first work, but not before earlier work
    has ended.
    """
    launched, reached = launch_times(trace), min(each.start for each in trace.work)
    found: list[tuple[int, int] | None] = []
    for place, step in enumerate(steps):
        stop = min(step.end, steps[place + 1].start) if place + 1 < len(steps) else step.end
        own = [work for work, when in zip(trace.work, launched, strict=True) if step.start <= when < stop]
        before = [work.end for work, when in zip(trace.work, launched, strict=True) if when < step.start]
        earlier = max([reached, *before])
        last = max([earlier, *(work.end for work in own)])
        found.append((min(max(earlier, min(work.start for work in own)), last), last) if own else None)
    return found


def job(ranks: Mapping[int, Trace]) -> Totals:
    """The breakdown of each rank and iteration, kernels and gaps of streams over the ranks, and for one rank the length of the critical path."""
    found: Totals = _over_ranks(ranks.values())
    for rank, trace in ranks.items():
        if not trace.work:
            continue
        gpus, steps = gpus_of(trace), step_ranges(trace)
        begin, end = min(each.start for each in trace.work), max(each.end for each in trace.work)
        whole = _summed(gpus, begin, end)
        found |= {("ranks-breakdown", str(rank), name): value for name, value in whole.items()}
        on_devices = dict(zip(numbers_of(steps), windows(trace, steps), strict=True))
        cells = {f"{rank} {number}": _summed(gpus, *(window or (0, 0))) for number, window in on_devices.items()}
        for row, times in (cells or {str(rank): whole}).items():
            found |= {("ranks-over-iterations", row, name): times[name] for name in ("span_ns", "exposed_ns")}
        if len(ranks) == 1:
            length = _typical(steps, on_devices) if any(on_devices.values()) else end - begin
            found |= {("critical-path", row, "ns"): length for row in ("all segments", "from start to end")}
    return found


def _over_ranks(traces: Collection[Trace]) -> Totals:
    """Number and time of each kernel and kind of copy, and the gaps between the work of each stream by cause, over all ranks.

    Where each rank has one GPU, streams of equal numbers are one row.
    """
    found: Totals = defaultdict(int)
    one_gpu = all(len(by_device(trace.work)) <= 1 for trace in traces)
    for trace in traces:
        streams: dict[tuple[Any, Any], list[tuple[int, float, int]]] = defaultdict(list)
        for each in trace.work:
            name = each.name if each.kind == "kernel" else kind_of(each)
            found["job-kernels-all-iterations", name, "count"] += 1
            found["job-kernels-all-iterations", name, "total_ns"] += each.lasts
            call = trace.launch(each)
            launched = -math.inf if call is None else call.start
            streams[each.args.get("device"), each.args.get("stream")].append((each.start, launched, each.end))
        for (device, stream), works in streams.items():
            row, reached = str(stream) if one_gpu else f"{device} {stream}", min(works)[0]
            for cause in ("host_wait_ns", "kernel_wait_ns", "other_ns"):
                found["idle-by-stream", row, cause] += 0
            for start, launched, end in sorted(works):
                gap = start - reached
                cause = "host_wait_ns" if launched > reached else "kernel_wait_ns" if gap < _KERNEL_WAIT_NS else "other_ns"
                found["idle-by-stream", row, cause] += max(gap, 0)
                reached = max(reached, end)
    return dict(found)


def _summed(gpus: Iterable[Gpu], begin: int, end: int) -> dict[str, int]:
    total: dict[str, int] = defaultdict(int)
    for gpu in gpus:
        for name, value in gpu.times(begin, end).items():
            total[name] += value
    return total


def _typical(steps: Sequence[Interval], windows: Mapping[int, tuple[int, int] | None]) -> int:
    """The length of the iteration of median length, from the end of the device work of the one before to the end of its own."""
    ends = {number: window[1] for number, window in windows.items() if window}
    first = next((step.start for number, step in zip(windows, steps, strict=True) if number in ends), 0)
    begins = dict(zip(ends, [first, *ends.values()], strict=False))
    lasts = sorted(end - begins[number] for number, end in ends.items() if end > begins[number])
    return lasts[(len(lasts) - 1) // 2]
