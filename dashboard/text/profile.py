"""An imported profile as text: where the time of the device goes, the largest parts of it, the steps, and what to do next."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any, Final

import pandas as pd

from warpladder.dashboard.core.numbers import NOTHING, format_bytes, format_duration, format_percent, format_rate
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.core.traces import MEMORY_OPERATIONS
from warpladder.dashboard.text.formats import Form, json_text
from warpladder.dashboard.text.parts import NAME_CHARACTERS, SCREEN, Row, middle_cut, row, summed, table, time_rows, wrapped
from warpladder.dashboard.trace.parts import Steps
from warpladder.dashboard.ui.tables import csv, markdown_table, markdown_text
from warpladder.dashboard.ui.text import apart, plain_lines
from warpladder.dashboard.views.home import query
from warpladder.data.words import first_of

#: Collector -> the program that wrote the profile.
PROGRAMS: Final = {
    "pytorch_profiler": "PyTorch's profiler",
    "xla_profiler": "XLA's profiler (JAX)",
    "nsight_systems": "Nsight Systems",
    "nsight_compute": "Nsight Compute",
    "proton": "Proton, the profiler of Triton",
}
_MOST_KERNELS, _MOST_COPIES, _MOST_COUNTED = 6, 2, 16
_COUNTED_CHARACTERS: Final = 28
_NAMES: Final = 42
#: Kinds of GPUs that the title of a job names.
_MOST_KINDS: Final = 2


def render(data: RunData, form: Form, lines: int = SCREEN) -> str:
    """A profile as text that ends with a line feed; as a table, of at most so many lines of 80 columns."""
    found = query.profile(data)
    if form == "json":
        return json_text(_facts(data, found))
    if form == "csv":
        return csv(found.kernels if found.parts else found.limits)
    *title, hint = title_of(data), *query.told(data).lines
    if form == "table":
        around = wrapped(title), wrapped([hint])
        return plain_lines([*around[0], *_fitting(found, lines - sum(map(len, around))), *around[1]])
    points = [f"- {markdown_text(line)}" for line in (*title, hint)]
    return plain_lines([*points, *(line for each in _tables(found) if each[1] for line in ("", *markdown_table(*each)))])


def _fitting(found: query.Profile, lines: int) -> list[str]:
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


def title_of(data: RunData, what: str = "") -> str:
    """What was imported.

    Args:
        what: such as `job of 2 ranks, `.
    """
    info = data.info
    program = PROGRAMS.get(str(info["collector"]), info["collector"])
    named = data.job.frame("ranks", "device_name")["device_name"].astype(str) if data.job else ()
    kinds = dict.fromkeys(each for each in named if each)
    device = (
        first_of(kinds, _MOST_KINDS)
        or info["device_name"]
        or ("GPU not named" if data.job or {"kernels", "memory_ops"} & set(data.traces.tables) else "")
    )
    return f"{info['source']}: {what}{program}{device and f', {device}'}"


def _tables(
    found: query.Profile, most: int = _MOST_KERNELS, most_copies: int = _MOST_COPIES
) -> Iterator[tuple[Row, list[Row]]]:
    """Headings and rows: the parts of the span, the longest kernels, the copies, and the limits of kernels."""
    if found.parts is not None:
        yield (found.parts.heading, "time", "share"), list(time_rows(found.parts))
    covered = sum(found.parts.times[name] for name in ("compute_ns", "exposed_ns", "graph_ns")) if found.parts else 0
    yield (f"kernels: {summed(found.kernel_ns, covered)}", "time", "share", "runs"), list(_kernel_rows(found, most))
    yield ("copies and memsets", "time", "number", "bytes", "rate"), list(_copy_rows(found, most_copies))
    shown = found.limits.head(_MOST_COUNTED).to_dict("records")
    rows: list[Row] = [
        (
            middle_cut(each["kernel"], _COUNTED_CHARACTERS),
            format_duration(each["time_ns"]),
            f"{each['limit']}: {format_percent(each['limit_percent'])}",
        )
        for each in shown
    ]
    if more := len(found.limits) - len(shown):
        rows.append((f"{more} more: --format json", "", ""))
    yield ("kernels under the profiler", "time", "limit, and how much of its peak is reached"), rows


def _kernel_rows(found: query.Profile, most: int) -> Iterator[Row]:
    whole = found.kernel_ns
    most = most if len(found.kernels) > most + 1 else len(found.kernels)
    shown, rest = found.kernels[:most], found.kernels[most:]
    names = apart(shown["name"].tolist(), shown["full_name"].tolist(), NAME_CHARACTERS)
    rows = list(zip(names, shown["total_ns"].tolist(), shown["executions"].tolist(), strict=True))
    if found.graphs[0]:
        rows.append(("CUDA graphs, whose kernels are not known", found.graphs[1], found.graphs[0]))
    for name, time, number in sorted(rows, key=lambda each: -each[1]):
        yield row(name, time, whole, f"{number:,}")
    if len(rest):
        yield row(f"{len(rest)} other kernels", rest["total_ns"].sum(), whole, f"{rest['executions'].sum():,}")


def _copy_rows(found: query.Profile, most: int) -> Iterator[Row]:
    copies = found.copies.to_dict("records") if most else []
    most = most if len(copies) > most + 1 else len(copies)
    for each in copies[:most]:
        memory = f", {each['host_memory']}" if each["host_memory"] not in ("", "unknown") else ""
        memory += " memory" if memory and not each["unknown"] else ""
        known = pd.notna(each["gb_per_s"]) and each["gb_per_s"] > 0 and not each["unknown"]
        rate = format_rate(float(each["gb_per_s"])) if known else NOTHING
        what = f"{MEMORY_OPERATIONS.get(each['kind'], each['kind'])}{memory}"
        unsized = f" ({each['unknown']:,} without size)" if each["unknown"] else ""
        size = format_bytes(float(each["bytes"])) if pd.notna(each["bytes"]) else NOTHING
        yield middle_cut(f"{what}{unsized}"), format_duration(each["time_ns"]), f"{each['n']:,}", size, rate
    if rest := copies[most:]:
        time, number = (sum(each[name] for each in rest) for name in ("time_ns", "n"))
        size = sum(each["bytes"] for each in rest if pd.notna(each["bytes"]))
        yield f"{len(rest)} other kinds", format_duration(time), f"{number:,}", format_bytes(float(size)), NOTHING


def _facts(data: RunData, found: query.Profile) -> dict[str, Any]:
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
        "steps": steps_facts(found.steps),
        "counters": found.limits,
        "next": query.told(data).to_do,
    }


def steps_facts(steps: Steps | None) -> dict[str, Any] | None:
    """Steps for programs."""
    return {name: value for name, value in asdict(steps).items() if name in Steps.FACTS} if steps else None
