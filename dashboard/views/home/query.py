"""Where the time of a profile goes, what to do next, and the findings that lead to a moment on the Timeline."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd

from warpladder.dashboard.core import counted, counters
from warpladder.dashboard.core.numbers import format_duration, format_percent
from warpladder.dashboard.core.run_data import RunData, once
from warpladder.dashboard.core.traces import Traces, calls_of
from warpladder.dashboard.trace import operators
from warpladder.dashboard.trace.describe import short_names
from warpladder.dashboard.trace.parts import IDLE, Parts, Steps, Told, about_kernels, advice
from warpladder.dashboard.ui.text import apart
from warpladder.dashboard.views.time.calls import query as calls
from warpladder.dashboard.views.time.transfers import query as transfers
from warpladder.data import store, timeline
from warpladder.data.arrays import NONE, Bools, lookup
from warpladder.data.iterations import steps_of

_MOST_KERNELS: Final = 5
_NAME_CHARACTERS: Final = 36
#: Cause of a gap -> its part of the idle time, if the launch of the work behind it is known.
_CAUSES: Final = {"host_wait": "host_wait_ns", "kernel_wait": "kernel_wait_ns", "other": "other_idle_ns"}
_MOST_GAPS: Final = 2
#: A shorter gap, as a share of the span, is no finding.
_LEAST_GAP: Final = 0.01
#: How a profile has device work, by the program that wrote it.
_WITH_DEVICE_WORK: Final = {
    "pytorch_profiler": "profile with activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], on a machine with a GPU",
    "nsight_systems": "profile with nsys profile --trace=cuda,nvtx a part of the program that uses the GPU",
}


@dataclass(frozen=True)
class Profile:
    """What a profile comes to.

    Attributes:
        parts: where the time of its devices goes; None without device work.
        devices: number of GPUs with work.
        kernels: the longest kernels: `name` (short), `full_name`, `executions`, `total_ns`, `share_percent` of the kernels' time.
        kernel_ns: the time of all kernels in sum; of kernels that overlap, each counts.
        graphs: launches of graphs that were traced as a whole, and their time.
        copies: copies, sets and migrations by kind, as section Transfers of the page Time has them.
        steps: numbered steps; None without any.
        limits: what limits each kernel with counters, the longest first: `kernel`, `time_ns`, `limit`, `limit_percent`.
    """

    parts: Parts | None
    devices: int
    kernels: pd.DataFrame
    kernel_ns: int
    graphs: tuple[int, int]
    copies: pd.DataFrame
    steps: Steps | None
    limits: pd.DataFrame


@once
def profile(data: RunData) -> Profile:
    """Sum a profile up, with the queries of the sections API & kernels, Transfers and Counters."""
    of_graphs = calls.summary(data, calls.GRAPHS) if calls.GRAPHS in calls.available(data) else pd.DataFrame()
    graphs = tuple(int(of_graphs[name].sum()) if len(of_graphs) else 0 for name in ("Instances", "Total Time (ns)"))
    kernels = _kernels(data, graphs[1])
    parts, steps, devices = _device_time(data.traces.run) if data.traces else (None, None, 0)
    return Profile(
        parts,
        devices,
        kernels,
        int(kernels["total_ns"].sum()) + graphs[1],
        (graphs[0], graphs[1]),
        transfers.transfers(data) if "memory_ops" in data.traces.tables else pd.DataFrame(),
        steps,
        _limits(data),
    )


def _device_time(run: store.Run) -> tuple[Parts | None, Steps | None, int]:
    """The parts of the devices' time, the steps, and the number of devices; in sum over the processes, as over the ranks of a job."""
    work, ranges = timeline.device_work(run), steps_of(run)
    processes = np.unique(work.process).tolist()
    of_each = [work.where(work.process == process) for process in processes] or [work]
    rows = [
        {"rank": rank, **each, "collectives": 0, "wait_ns": None, "last": None}
        for rank, own in enumerate(of_each)
        for each in timeline.iteration_rows(own, ranges)
    ]
    steps = Steps.of(store.frame("iterations", rows), *timeline.calls_ns(run, (timeline.COPYING, timeline.WAITING)))
    if not len(work):
        return None, steps, 0
    of_processes = [own.timeline.devices for own in of_each]
    devices, every = len({device for own in of_processes for device in own}), sum(map(len, of_processes))
    several = every > 1
    added = f"{len(processes)} processes" if len(processes) > 1 else f"{devices} devices"
    added += f" with {every} devices" if every > len(processes) > 1 else ""
    whole = f"first to last work, {added} added" if several else "first to last device work"
    return Parts.of(pd.DataFrame([timeline.breakdown(own) for own in of_each]), whole), steps, devices


def told(data: RunData) -> Told:
    """What most of the time is, the steps, and what to do first."""
    found = profile(data)
    of_devices = f" of {found.devices} devices" if found.devices > 1 else ""
    otherwise = "" if len(found.limits) else _from_inside(data) or "no device work in this profile"
    headline = found.parts.headline if found.parts else otherwise
    return Told(headline, (), found.steps.sentence(found.parts, of_devices) if found.steps else "", _to_do(data, found))


def _from_inside(data: RunData) -> str:
    """The largest stage of the first kernel that was traced from inside; empty without one."""
    cells = data.experiments.cells
    if not cells:
        return ""
    first, others = data.experiments.of(cells[0]).stages()[0], f"; {len(cells) - 1} more launches" * (len(cells) > 1)
    return f"{cells[0].variant}: {format_percent(100 * first['value'])} of the time of its blocks in {first['what']}{others}"


def _to_do(data: RunData, found: Profile) -> str:
    if data.experiments.cells:
        return "see the blocks of a multiprocessor over time: warpladder app, page Why"
    if found.parts is None and len(found.limits):
        return "see why each kernel is not faster: warpladder app, page Why"
    if found.parts is None:
        how = _WITH_DEVICE_WORK.get(str(data.info["collector"]), "profile a part of the program that uses the device")
        if data.traces.has_operators:
            return f"see which operators take the time on the host: warpladder extract RUN; or {how}"
        return how
    about = {
        "compute_ns": about_kernels(data, str(found.kernels.iloc[0]["name"]) if len(found.kernels) else ""),
        "exposed_ns": "see which rank the others wait for: warpladder import --job FOLDER, with the profiles of all ranks in it",
        "copies_ns": _about_copies(found.copies, found.parts),
    }
    todo = advice(found.parts, found.steps, about)
    if found.parts.idle["managed_ns"] and found.parts.largest[0] == "idle_ns":
        migrates = found.copies[found.copies["kind"].str.startswith("unified")]["time_ns"].sum()
        todo += f"; the migrations themselves take {format_duration(migrates)}"
    return todo


def _about_copies(copies: pd.DataFrame, parts: Parts) -> str:
    if copies.empty:
        return ""
    kind, memory = str(copies["kind"].iloc[0]), str(copies["host_memory"].iloc[0])
    if kind.startswith("unified"):
        return "prefetch managed memory (cudaMemPrefetchAsync) to where it is used next, so that its pages do not migrate one after another"
    cures = {"pageable": "pinned memory makes them faster", "": "fewer or larger ones help"}
    hides = parts.times["compute_ns"] > parts.times["copies_ns"]
    beside = "a stream of their own hides them behind kernels" if hides else "kernels are too short to hide them, so copy less"
    cure = cures.get(memory if kind in ("h2d", "d2h") else "", beside)
    return f"see what the copies cost: warpladder app, page Time, section Transfers; {cure}"


def _kernels(data: RunData, graphs_ns: int) -> pd.DataFrame:
    found = calls.summary(data, "cuda_gpu_kern_sum") if "cuda_gpu_kern_sum" in calls.available(data) else None
    if found is None:
        return pd.DataFrame(columns=["name", "full_name", "executions", "total_ns", "share_percent"])
    names, time = short_names(list(found["Name"])), found["Total Time (ns)"]
    return pd.DataFrame(
        {
            "name": [names[name] for name in found["Name"]],
            "full_name": found["Name"],
            "executions": found["Instances"],
            "total_ns": time,
            "share_percent": 100 * time / max(int(time.sum()) + graphs_ns, 1),
        }
    )


def _limits(data: RunData) -> pd.DataFrame:
    rows = []
    for workload in counters.counted_workloads(data):
        for case in counters.counted_cases(data, workload):
            for each in counters.by_config(data, workload, case).to_dict("records"):
                kernel = f"{each['variant']}[{each['config']}]" if each["config"] else str(each["variant"])
                rows.append((kernel, each["time_ns"], counted.limit_words(each), counted.limit(each).percent))
    frame = pd.DataFrame(rows, columns=["kernel", "time_ns", "limit", "limit_percent"])
    return frame.sort_values("time_ns", ascending=False, kind="stable", ignore_index=True)


def findings(data: RunData) -> pd.DataFrame:
    """What takes the time: the kernels with the most of it, and the longest gaps.

    Returns:
        `what`, `time_ns`, `percent` (of the span of the devices), `runs`, `operator` (or range, around the longest execution), `line` (of
        Python, where the profiler recorded it), and `begin_ns` and `end_ns` of the longest execution or the gap.
    """
    whole = profile(data).parts
    columns = ["what", "time_ns", "percent", "runs", "operator", "line", "begin_ns", "end_ns"]
    if whole is None:
        return pd.DataFrame(columns=columns)
    rows = [*_moments(data.traces), *_gaps(data.traces, whole.span_ns)]
    frame = pd.DataFrame(rows, columns=["what", "time_ns", "runs", "operator", "line", "begin_ns", "end_ns"])
    return frame.assign(percent=100 * frame["time_ns"] / whole.span_ns).sort_values("time_ns", ascending=False)[columns]


def _moments(traces: Traces) -> list[tuple[object, ...]]:
    if "kernels" not in traces.tables:
        return []
    names, duration = traces.texts("kernels", "full_name"), traces.durations("kernels")
    time = np.bincount(names.codes, weights=duration, minlength=len(names.categories))
    short = short_names([str(name) for name in names.categories])
    largest = np.argsort(-time, kind="stable")[:_MOST_KERNELS]
    full = [str(names.categories[code]) for code in largest]
    found: list[tuple[object, ...]] = []
    for code, shown in zip(largest, apart([short[name] for name in full], full, _NAME_CHARACTERS), strict=True):
        rows = np.flatnonzero(names.codes == code)
        longest = rows[np.argmax(duration[rows])]
        begin, end = (int(traces.numbers("kernels", name)[longest]) for name in ("start_ns", "end_ns"))
        found.append((shown, int(time[code]), len(rows), *_caller(traces, longest), begin, end))
    return found


def _caller(traces: Traces, row: np.int64) -> tuple[str, str]:
    """The operator that launched a kernel and its line of Python; the text of its range where there is no operator."""
    if traces.has_operators:
        chosen: Bools = np.arange(traces.length("kernels")) == row
        (call,) = calls_of(traces, "kernels", chosen)
        operator = operators.read(traces).of_call[call] if call != NONE else NONE
        if operator != NONE:
            stack = str(traces.texts("operations", "stack")[operator])
            return str(traces.texts("operations", "name")[operator]), operators.place_of(stack) if stack else ""
    if "ranges" in traces.tables:
        held = traces.ranges_of_work("kernels")[[row]]
        (place,) = lookup(traces.numbers("ranges", "range_id"), held)
        if held[0] != NONE and place != NONE:
            return str(traces.texts("ranges", "text")[place]), ""
    return "", ""


def _gaps(traces: Traces, span_ns: int) -> Iterator[tuple[object, ...]]:
    """The longest gaps of a device, with their causes."""
    work = timeline.device_work(traces.run)
    found = []
    for device in np.unique(work.device):
        own, launched = timeline.by_start(work[work.device == device])
        opens, closes, cause = timeline.gaps(int(own.start[0]), own.start, own.end, launched)
        longest = np.argsort(opens - closes, kind="stable")[:_MOST_GAPS]
        migrates = timeline.migrations(own)
        for place in longest:
            why = _CAUSES[timeline.CAUSES[cause[place]]]
            if why == "other_idle_ns" and not own.launched[place]:
                why = "managed_ns" if migrates[place] else "untold_ns"
            found.append((closes[place] - opens[place], opens[place], closes[place], IDLE[why]))
    for gap, begin, end, words in sorted(found, reverse=True)[:_MOST_GAPS]:
        if gap >= _LEAST_GAP * span_ns:
            yield f"idle: {words}", int(gap), 1, "", "", int(begin), int(end)
