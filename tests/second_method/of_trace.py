"""The totals of the pages of a trace: API & kernels, Transfers and Operators, by the definitions of docs/import.md."""

import json
import re
import statistics
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from tests.second_method.trace import (
    Interval,
    Nest,
    Totals,
    Trace,
    by_device,
    by_thread,
    grouped,
    integer,
    joined,
    step_ranges,
    union,
)

_COPY: Final = re.compile(r"(?:Memcpy |Copy)?(H|D|P)\w*?[tT]o(H|D|P)\w*(?: \((\w+) -> (\w+)\))?")
_MEMORIES: Final = ("pageable", "pinned", "device", "array", "managed")
_HOST_SIDE: Final = {"h2d": 3, "h2h": 3, "d2h": 4}

# -- API & kernels ---------------------------------------------------------------------------------------------------


def sums(trace: Trace) -> Totals:
    """Number and time of kernels, calls, copies and ranges by name, and sizes of copies."""
    found: Totals = defaultdict(int)
    named = [
        ("cuda_gpu_kern_sum", trace.kernels(), lambda each: each.name),
        ("cuda_api_sum", trace.calls, lambda each: each.name),
        ("cuda_gpu_mem_time_sum", trace.memory(), kind_of),
        ("nvtx_sum", trace.ranges, lambda each: each.name),
    ]
    for table, intervals, name in named:
        for each in intervals:
            found[table, name(each), "count"] += 1
            found[table, name(each), "ns"] += each.lasts
    for kind, copies in grouped(trace.memory(), kind_of).items():
        sizes = [size for each in copies if (size := _size(trace, each)) is not None]
        if sizes:
            found["cuda_gpu_mem_size_sum", kind, "MB"] = float(f"{sum(sizes) / 1e6:.3f}")
    return {**found, **_of_ranges(trace)}


def _of_ranges(trace: Trace) -> Totals:
    """Kernels by all ranges that hold their launch, and of each range the time from the start of its first work to the end of its last."""
    found: Totals = defaultdict(int)
    holding = _threads_of(trace)
    launched: dict[Any, list[tuple[int, Interval]]] = defaultdict(list)
    for work in trace.work:
        if call := trace.launch(work):
            for thread in holding(call):
                launched[thread].append((call.start, work))
    outside = {id(each): each for each in trace.kernels()}
    for own in launched.values():
        own.sort(key=lambda each: each[0])
    for each in trace.ranges:
        own = launched.get(each.thread, [])
        first, last = (bisect_left(own, time, key=lambda pair: pair[0]) for time in (each.start, each.end))
        inside = [one for _, one in own[first:last]]
        if inside:
            found["nvtx_gpu_proj_sum", each.name, "ns"] += max(one.end for one in inside) - min(one.start for one in inside)
        for kernel in (one for one in inside if one.kind == "kernel"):
            found["nvtx_kern_sum", f"{each.name} > {kernel.name}", "ns"] += kernel.lasts
            outside.pop(id(kernel), None)
    if trace.ranges:
        for kernel in outside.values():
            found["nvtx_kern_sum", f"> {kernel.name}", "ns"] += kernel.lasts
    return found


def _threads_of(trace: Trace) -> Callable[[Interval], list[Any]]:
    """Gives the threads whose ranges hold a call: its own, and the one that it is attributed to by time.

    That is the one other thread with a step open; else, for a thread without an open range, the one other thread with a range open.
    """
    threads = {thread: _roots(ranges) for thread, ranges in by_thread(trace.ranges).items()}
    steps = by_thread(step_ranges(trace))

    def opened(ranges: Mapping[Any, Sequence[Interval]], call: Interval) -> list[Any]:
        return [
            thread
            for thread, own in ranges.items()
            if thread[0] == call.thread[0] and any(each.start <= call.start < each.end for each in own)
        ]

    def holding(call: Interval) -> list[Any]:
        in_steps, having = opened(steps, call), opened(threads, call)
        if len(in_steps) != 1 and call.thread not in having and len(having) == 1:
            in_steps = having
        return list(dict.fromkeys([call.thread, *(in_steps if len(in_steps) == 1 else [])]))

    return holding


def kind_of(memory: Interval) -> str:
    """`h2d`, `memset` and so on."""
    if memory.kind == "set":
        return "memset"
    found = _COPY.match(memory.name)
    return f"{found[1]}2{found[2]}".lower() if found else memory.name


# -- Transfers -------------------------------------------------------------------------------------------------------


def transfers(trace: Trace) -> Totals:
    """The copies by kind and host memory, and the work of each outermost range."""
    found: Totals = {}
    groups = grouped(trace.memory(), lambda each: (kind_of(each), _host_memory(each)))
    everything = [*trace.work, *trace.calls]
    span = max(each.end for each in everything) - min(each.start for each in everything) if everything else 0
    kernels = by_device(trace.kernels())
    for (kind, memory), copies in groups.items():
        row = f"{kind} {memory}".strip()
        sizes = [size for each in copies if (size := _size(trace, each)) is not None]
        hidden = sum(_covered(kernels[device], own) for device, own in by_device(copies).items())
        figures = {"n": len(copies), "time_ns": sum(each.lasts for each in copies), "overlap_ns": hidden}
        figures |= {"bytes": sum(sizes) if sizes else None, "unknown": len(copies) - len(sizes)}
        figures["percent_of_run"] = 100 * union(copies) / span
        found |= {("transfers", row, name): value for name, value in figures.items()}
    return found | _stages(trace)


def _covered(kernels: Sequence[Interval], copies: Sequence[Interval]) -> int:
    """Of each copy the time in which any kernel runs, summed over the copies."""
    total, busy = 0, joined(kernels)
    for copy in copies:
        total += sum(max(0, min(end, copy.end) - max(start, copy.start)) for start, end in busy)
    return total


def _size(trace: Trace, copy: Interval) -> int | None:
    """Bytes of a copy, from its event or else from the call that launched it."""
    size = integer(copy.args.get("bytes"))
    call = trace.launch(copy)
    return integer(call.args.get("size")) if size is None and call else size


def _host_memory(copy: Interval) -> str:
    """Memory of the host's side of a copy, in lower case."""
    kind, found = kind_of(copy), _COPY.match(copy.name)
    if kind not in _HOST_SIDE:
        return ""
    memory = str(found and found[_HOST_SIDE[kind]]).lower()
    return memory if memory in _MEMORIES else "unknown"


def _stages(trace: Trace) -> Totals:
    """Kernels, launching calls and copies of each outermost range with a kernel and a copy.

    Work that another thread launched while a step was open belongs to the step; work of a thread without ranges to the outermost range of
    the one other thread that has one open.
    """
    threads = {thread: _roots(ranges) for thread, ranges in by_thread(trace.ranges).items()}
    holding = _threads_of(trace)
    owned: dict[int, list[tuple[Interval, Interval]]] = defaultdict(list)
    for work in trace.work:
        if call := trace.launch(work):
            opened = [each for each in threads.get(holding(call)[-1], []) if each.start <= call.start < each.end]
            if opened:
                owned[id(opened[-1])].append((call, work))
    rows: dict[str, list[tuple[int, int, int, int]]] = defaultdict(list)
    for ranges in threads.values():
        for each in ranges:
            kernels = [work for _, work in owned[id(each)] if work.kind == "kernel"]
            copies = [work for _, work in owned[id(each)] if work.kind == "copy"]
            calls = {id(call): call.lasts for call, work in owned[id(each)] if work.kind == "kernel"}
            times = sum(one.lasts for one in kernels), sum(calls.values()), sum(one.lasts for one in copies)
            if times[0] and times[2]:
                rows[each.name].append((*times, each.lasts))
    found: Totals = {}
    for name, every in rows.items():
        kernel, launch, copied, lasts = (list(column) for column in zip(*every, strict=True))
        stages = {
            "kernel_ns": kernel,
            "with_launch_ns": [sum(pair) for pair in zip(kernel, launch, strict=True)],
            "with_copies_ns": [sum(three) for three in zip(kernel, launch, copied, strict=True)],
            "end_to_end_ns": lasts,
        }
        found |= {("transfer-stages", name, stage): statistics.median(values) for stage, values in stages.items()}
        found["transfer-stages", name, "n"] = len(every)
    return found


def _roots(ranges: Iterable[Interval]) -> list[Interval]:
    """The outermost ranges of a thread."""
    nest = Nest(ranges)
    return [each for each, parent in zip(nest.all, nest.parent, strict=True) if parent < 0]


# -- Operators -------------------------------------------------------------------------------------------------------


def operators(trace: Trace) -> Totals:
    """Of the operators of each name: calls, device time, time on the host, launches."""
    found: Totals = defaultdict(int)
    work: dict[int, list[int]] = defaultdict(list)
    for each in trace.work:
        if call := trace.launch(each):
            work[id(call)].append(each.lasts)
    calls = by_thread(trace.calls)
    launching = by_thread(trace.call_of.values())
    for thread, own in by_thread(trace.operators).items():
        nest = Nest(own)
        innermost = nest.innermost(call.start for call in calls[thread])
        device, launches, inside = ([0] * len(nest.all) for _ in range(3))
        for call in launching[thread]:
            if (at := innermost[call.start]) >= 0:
                device[at] += sum(work[id(call)])
                launches[at] += len(work[id(call)])
        for call, alone in _alone(calls[thread]):
            if (at := innermost[call.start]) >= 0:
                inside[at] += alone
        for name, column, value in _of_thread(nest, device, launches, inside):
            found["operators-name", name, column] += value
    return {key: value for key, value in found.items() if found["operators-name", key[1], "calls"]}


def _of_thread(nest: Nest, device: list[int], launches: list[int], inside: list[int]) -> Iterator[tuple[str, str, int]]:
    whole, children, covered = list(device), [0] * len(nest.all), list(inside)
    for place in reversed(range(len(nest.all))):
        if (above := nest.parent[place]) >= 0:
            whole[above] += whole[place]
            children[above] += 1
            covered[above] += nest.all[place].lasts
    reached: dict[str, int] = {}
    for place, each in enumerate(nest.all):
        above = nest.parent[place]
        again = above >= 0 and children[above] == 1 and nest.all[above].name == each.name
        yield each.name, "calls", not again
        yield each.name, "self_device_ns", device[place]
        yield each.name, "launches", launches[place]
        yield each.name, "self_host_ns", max(each.lasts - covered[place], 0)
        outermost = each.name not in reached or each.start >= reached[each.name]
        yield each.name, "device_ns", whole[place] if outermost else 0
        yield each.name, "host_ns", each.lasts if outermost else 0
        reached[each.name] = max(reached.get(each.name, each.end), each.end)


def _alone(calls: Iterable[Interval]) -> Iterator[tuple[Interval, int]]:
    """Each call of a thread, and its time outside of the calls that began earlier."""
    reached = None
    for call in sorted(calls, key=lambda each: (each.start, -each.end)):
        yield call, max(call.end - (call.start if reached is None else max(call.start, reached)), 0)
        reached = call.end if reached is None else max(reached, call.end)


#: Column of Operators -> that of `key_averages()`, and how many of ours it has.
_AVERAGES: Final = {
    "calls": ("count", 1),
    "self_device_ns": ("self_device_us", 1000),
    "device_ns": ("device_us", 1000),
    "self_host_ns": ("self_cpu_us", 1000),
    "host_ns": ("cpu_us", 1000),
}
_REQUEST: Final = "Activity Buffer Request"


def averages(sums: Path, ours: Totals) -> tuple[Totals, dict[tuple[str, str, str], str]]:
    """What `key_averages()` of the profiler gave for the operators of a capture, and the reason for each known difference.

    The profiler takes the time in which it requested a buffer out of the operator around, and counts the device work of that operator twice.
    """
    rows = {row["key"]: row for row in json.loads(sums.read_text()) if row["device"] == "DeviceType.CPU"}
    found: Totals = {}
    why: dict[tuple[str, str, str], str] = {}
    for _, name, _ in {key for key in ours if key[0] == "operators-name"}:
        for column, (averaged, factor) in _AVERAGES.items():
            key = "key_averages", name, column
            found[key] = round(rows[name][averaged] * factor) if name in rows else None
            request = round(rows[_REQUEST][averaged] * factor) if _REQUEST in rows else 0
            difference = (ours["operators-name", name, column] or 0) - (found[key] or 0)
            if request and difference == (-request if column == "device_ns" else request):
                why[key] = "work or time of the profiler's request for a buffer"
    return found, why
