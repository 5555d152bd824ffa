"""An imported profile as text: where the time of the device goes, the largest parts of it, the steps, and what to do next."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd

from warpladder.dashboard.core import counted, counters
from warpladder.dashboard.core.numbers import NOTHING, format_bytes, format_duration, format_percent, format_rate
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.text.formats import Form, json_text
from warpladder.dashboard.text.parts import (
    HINTS,
    SCREEN,
    UNTOLD,
    Parts,
    Row,
    Steps,
    apart,
    middle_cut,
    row,
    summed,
    table,
    wrapped,
)
from warpladder.dashboard.trace.describe import short_names
from warpladder.dashboard.ui.tables import csv, markdown_table, markdown_text
from warpladder.dashboard.ui.text import plain_lines
from warpladder.dashboard.views.time.calls import query as calls
from warpladder.dashboard.views.transfers import query as transfers

#: Collector -> the program that wrote the profile.
PROGRAMS: Final = {
    "pytorch_profiler": "PyTorch's profiler",
    "xla_profiler": "XLA's profiler (JAX)",
    "nsight_systems": "Nsight Systems",
    "nsight_compute": "Nsight Compute",
}
_MOST_KERNELS, _MOST_COPIES, _MOST_COUNTED = 6, 2, 16
_COUNTED_CHARACTERS: Final = 28
#: A profile whose device work takes less shows what launches cost, and not what kernels do.
_TINY_NS: Final = 100_000
_NAMES: Final = 42
#: In the names of AMD's GPUs.
_OF_AMD: Final = re.compile(r"\b(?:AMD|Instinct|Radeon|gfx\w*)\b")
_PREFETCH: Final = "cudaMemPrefetchAsync"
#: How a profile has device work, by the program that wrote it.
_WITH_DEVICE_WORK: Final = {
    "pytorch_profiler": "profile with activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], on a machine with a GPU",
    "nsight_systems": "profile with nsys profile --trace=cuda,nvtx a part of the program that uses the GPU",
}


class Sums(NamedTuple):
    """What an import of a job computes of each rank: its times, as columns of table `ranks`, and the rows of table `iterations`.

    `untold` has the part of its idle times before work whose launch is not in the profile, as `Parts` has it. `migrates` tells that all
    such work is migrations of managed memory, which have no launch.
    """

    times: Mapping[str, int]
    iterations: pd.DataFrame
    untold: Mapping[str, int]
    migrates: bool


@dataclass(frozen=True)
class Profile:
    """What a profile comes to.

    Attributes:
        parts: where the time of its devices goes; None without device work.
        devices: number of GPUs with work.
        kernels: the longest kernels: `name` (short), `full_name`, `executions`, `total_ns`, `share_percent` of the kernels' time.
        kernel_ns: the time of all kernels in sum; of kernels that overlap, each counts.
        graphs: launches of graphs that were traced as a whole, and their time.
        copies: copies, sets and migrations by kind, as the page Transfers has them.
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


def profile(data: RunData, sums: Sums) -> Profile:
    """Sum a profile up, with the queries of the pages API & kernels, Transfers and Counters."""
    has = set(data.traces.tables)
    of_graphs = calls.graph_launches(data) if calls.GRAPHS in calls.available(data) else pd.DataFrame()
    graphs = tuple(int(of_graphs[name].sum()) if len(of_graphs) else 0 for name in ("Instances", "Total Time (ns)"))
    kernels = _kernels(data, graphs[1])
    used = [data.traces.numbers(name, "device") for name in ("kernels", "memory_ops") if name in has]
    devices = len(np.unique(np.concatenate(used))) if used else 0
    whole = "first to last device work" + (f", {devices} devices" if devices > 1 else "")
    why = "idle: until managed memory migrates" if sums.migrates else ""
    return Profile(
        Parts.of(sums.times, whole, sums.untold, why) if sums.times["span_ns"] else None,
        devices,
        kernels,
        int(kernels["total_ns"].sum()) + graphs[1],
        (graphs[0], graphs[1]),
        transfers.transfers(data) if "memory_ops" in has else pd.DataFrame(),
        Steps.of(sums.iterations),
        _limits(data),
    )


def _kernels(data: RunData, graphs_ns: int) -> pd.DataFrame:
    found = calls.cuda_gpu_kern_sum(data) if "cuda_gpu_kern_sum" in calls.available(data) else None
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


def render(data: RunData, sums: Sums, form: Form, lines: int = SCREEN) -> str:
    """A profile as text that ends with a line feed; as a table, of at most so many lines of 80 columns."""
    found = profile(data, sums)
    if form == "json":
        return json_text(_facts(data, found))
    if form == "csv":
        return csv(found.kernels if found.parts else found.limits)
    title, hint = list(_title(data, found)), f"next: {_next(data, found)}"
    if form == "table":
        around = wrapped(title), wrapped([hint])
        return plain_lines([*around[0], *_fitting(found, lines - sum(map(len, around))), *around[1]])
    points = [f"- {markdown_text(line)}" for line in (*title, hint)]
    return plain_lines([*points, *(line for each in _tables(found) if each[1] for line in ("", *markdown_table(*each)))])


def _fitting(found: Profile, lines: int) -> list[str]:
    """The tables, with as many kernels and kinds of copies as there are lines for."""
    for most in (*((kernels, _MOST_COPIES) for kernels in range(_MOST_KERNELS, 1, -1)), (2, 1), (1, 1), (1, 0)):
        every = [
            line
            for headings, rows in _tables(found, *most)
            for line in table(headings, rows, 0 if found.parts is None else _NAMES)
        ]
        if len(every) <= lines:
            break
    return every


def _title(data: RunData, found: Profile) -> Iterator[str]:
    """What was profiled, what most of the time is, and the steps."""
    info = data.info
    device = f", {info['device_name']}" if info["device_name"] else ""
    program = PROGRAMS.get(str(info["collector"]), info["collector"])
    yield f"{info['source']}: {program}{device}"
    if found.parts is not None:
        yield found.parts.headline
    elif not len(found.limits):
        yield "no device work in this profile"
    if found.steps is not None:
        on = f" on {found.devices} devices" if found.devices > 1 else ""
        yield found.steps.sentence(found.parts.span_ns if found.parts else 0, on=on)


def _tables(found: Profile, most: int = _MOST_KERNELS, most_copies: int = _MOST_COPIES) -> Iterator[tuple[Row, list[Row]]]:
    """Headings and rows: the parts of the span, the longest kernels, the copies, and the limits of kernels."""
    if found.parts is not None:
        yield ("where the time goes", "time", "share"), found.parts.rows()
    covered = sum(found.parts.times[name] for name in ("compute_ns", "exposed_ns", "graph_ns")) if found.parts else 0
    yield (f"kernels: {summed(found.kernel_ns, covered)}", "time", "share", "runs"), list(_kernel_rows(found, most))
    yield ("copies and memsets", "time", "number", "bytes", "rate"), list(_copy_rows(found, most_copies))
    shown = found.limits.head(_MOST_COUNTED).to_dict("records")
    rows: list[Row] = [_limit_row(each) for each in shown]
    if more := len(found.limits) - len(shown):
        rows.append((f"{more} more: --format json", "", ""))
    yield ("kernels under the profiler", "time", "limit, and how much of its peak is reached"), rows


def _kernel_rows(found: Profile, most: int) -> Iterator[Row]:
    whole = found.kernel_ns
    most = most if len(found.kernels) > most + 1 else len(found.kernels)
    shown, rest = found.kernels[:most], found.kernels[most:]
    names = apart(shown["name"].tolist(), shown["full_name"].tolist())
    rows = list(zip(names, shown["total_ns"].tolist(), shown["executions"].tolist(), strict=True))
    if found.graphs[0]:
        rows.append(("CUDA graphs, whose kernels are not known", found.graphs[1], found.graphs[0]))
    for name, time, number in sorted(rows, key=lambda each: -each[1]):
        yield row(name, time, whole, f"{number:,}")
    if len(rest):
        yield row(f"{len(rest)} other kernels", rest["total_ns"].sum(), whole, f"{rest['executions'].sum():,}")


#: Kind of a copy, set or migration -> its words.
KINDS: Final = {
    "h2d": "host to device",
    "d2h": "device to host",
    "d2d": "within a device",
    "p2p": "device to device",
    "h2h": "within the host",
    "memset": "memset",
    "unified_h2d": "migration to the device",
    "unified_d2h": "migration to the host",
}


def _copy_rows(found: Profile, most: int) -> Iterator[Row]:
    copies = found.copies.to_dict("records") if most else []
    most = most if len(copies) > most + 1 else len(copies)
    for each in copies[:most]:
        memory = f", {each['host_memory']}" if each["host_memory"] not in ("", "unknown") else ""
        memory += " memory" if memory and not each["unknown"] else ""
        known = pd.notna(each["gb_per_s"]) and each["gb_per_s"] > 0 and not each["unknown"]
        rate = format_rate(float(each["gb_per_s"])) if known else NOTHING
        what = f"{KINDS.get(each['kind'], each['kind'])}{memory}"
        unsized = f" ({each['unknown']:,} without size)" if each["unknown"] else ""
        size = format_bytes(float(each["bytes"])) if pd.notna(each["bytes"]) else NOTHING
        yield middle_cut(f"{what}{unsized}"), format_duration(each["time_ns"]), f"{each['n']:,}", size, rate
    if rest := copies[most:]:
        time, number = (sum(each[name] for each in rest) for name in ("time_ns", "n"))
        size = sum(each["bytes"] for each in rest if pd.notna(each["bytes"]))
        yield f"{len(rest)} other kinds", format_duration(time), f"{number:,}", format_bytes(float(size)), NOTHING


def _limit_row(each: Mapping[Any, Any]) -> Row:
    return (
        middle_cut(each["kernel"], _COUNTED_CHARACTERS),
        format_duration(each["time_ns"]),
        f"{each['limit']}: {format_percent(each['limit_percent'])}",
    )


def _next(data: RunData, found: Profile) -> str:
    """What to do first, about the largest part."""
    parts = found.parts
    if parts is None and len(found.limits):
        return "see why each kernel is not faster: warpladder app, page Why"
    if parts is None:
        return _WITH_DEVICE_WORK.get(str(data.info["collector"]), "profile a part of the program that uses the device")
    if parts.span_ns < _TINY_NS:
        return f"profile a longer part of the program: {format_duration(parts.span_ns)} is too short to tell what limits it"
    most = parts.largest
    if most == "compute_ns":
        return _about_kernels(data, found)
    if most == "exposed_ns":
        return "see which rank the others wait for: warpladder import --job FOLDER, with the profiles of all ranks in it"
    kind, memory = map(str, found.copies[["kind", "host_memory"]].iloc[0]) if len(found.copies) else ("", "")
    if kind.startswith("unified") and most in ("copies_ns", UNTOLD):
        return f"prefetch managed memory ({_PREFETCH}) to where it is used next, so that its pages do not migrate one after another"
    if most != "copies_ns":
        return HINTS[most]
    cures = {"pageable": "pinned memory makes them faster", "": "fewer or larger ones help"}
    hides = parts.times["compute_ns"] > parts.times["copies_ns"]
    beside = "a stream of their own hides them behind kernels" if hides else "kernels are too short to hide them, so copy less"
    cure = cures.get(memory if kind in ("h2d", "d2h") else "", beside)
    return f"see what the copies cost: warpladder app, page Transfers; {cure}"


def _about_kernels(data: RunData, found: Profile) -> str:
    if data.traces.has_operators:
        return f"see which operations a better kernel could make faster: warpladder extract {data.info['run_id']}"
    longest = str(found.kernels.iloc[0]["name"]).split("<")[0].split(" ")[0].split("::")[-1][:_NAMES]
    if _OF_AMD.search(str(data.info["device_name"] or "")):
        return f"see what limits {longest}: rocprof-compute profile -n NAME -k {longest} -- PROGRAM"
    command = f"ncu --set full --export report -k regex:{longest} PROGRAM"
    return f"see what limits {longest}: {command}, then warpladder import report.ncu-rep"


def _facts(data: RunData, found: Profile) -> dict[str, Any]:
    """The profile for programs, with units in the names; null where something is not known."""
    info = data.info
    return {
        "run_id": str(info["run_id"]),
        "source": str(info["source"]),
        "collector": str(info["collector"]),
        "device_name": str(info["device_name"] or ""),
        "devices": found.devices,
        "device_time": found.parts.facts() if found.parts else None,
        "kernels_total_ns": found.kernel_ns,
        "kernels": found.kernels,
        "graphs_traced_whole": {"launches": found.graphs[0], "total_ns": found.graphs[1]},
        "copies": found.copies,
        "steps": asdict(found.steps) if found.steps else None,
        "counters": found.limits,
        "next": _next(data, found),
    }
