"""The contents of a timeline for the canvas of the page, with its colours and words, and its data as a table."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pandas as pd

from warpladder.dashboard.core.numbers import format_bytes, format_rate
from warpladder.dashboard.core.traces import Traces
from warpladder.dashboard.trace.lanes import Int32s, Lane, Lanes, MemoryInUse
from warpladder.dashboard.ui.template import Look, palette
from warpladder.dashboard.ui.text import apart
from warpladder.dashboard.views.timeline.query import OPERATIONS, Coloring, LaneInWindow, Swatch, Window, facts, names
from warpladder.data.arrays import NONE, Int64s

#: Colours of the swatches that are neither a variant nor a kernel, by place. They are paler than the colours of variants and
#: kernels.
_QUIET: Final = {
    "light": ("#8b93a1", "#cdd4de", "#8dbfa9", "#d3a98c", "#b9b1cc", "#a9bdd6", "#c9bd9d", "#d6aeb2", "#c9cdd3"),
    "dark": ("#7d8694", "#3c4552", "#4f7d6a", "#8a664e", "#6b6482", "#51677f", "#766b4d", "#805a5f", "#535962"),
}
#: Width of the lanes in pixels until the browser has sent its own.
PIXELS: Final = 1000
_LEGEND: Final = 10
_LEGEND_CHARACTERS: Final = 24


def colors(swatches: Sequence[Swatch], look: Look) -> list[str]:
    """A colour for each swatch. A variant has the same colour as on every other chart."""
    quiet, loud = _QUIET[look.theme], palette(look.theme)
    result = []
    for place, swatch in enumerate(swatches):
        if swatch.kind == "variant":
            result.append(look.style(swatch.workload, swatch.name).color)
        else:
            result.append(quiet[place] if place < len(quiet) else loud[(place - len(quiet)) % len(loud)])
    return result


def legend(scene: Sequence[LaneInWindow], coloring: Coloring, look: Look) -> list[int]:
    """The swatches for the legend: variants and kernels first, and within each kind those with the most time; at most `_LEGEND`.

    Swatches of one name and one colour, such as variants of that name in several workloads, share an entry.
    """
    time, entry = np.zeros(len(coloring.swatches)), np.array(_entries(coloring, look))
    for shown in scene:
        lasts = shown.lane.covered[shown.detail.alone + 1] - shown.lane.covered[shown.detail.alone]
        np.add.at(time, entry[shown.alone_color], np.maximum(lasts, 1))
        np.add.at(time, entry[shown.bar_color], np.maximum(shown.detail.busy_ns, 1))
    order = {"variant": 0, "kernel": 0, "other": 1, "copy": 2, "call": 3, "range": 4}
    places = [int(place) for place in np.flatnonzero(time)]
    places.sort(key=lambda place: (order[coloring.swatches[place].kind], -time[place]))
    return places[:_LEGEND]


def _entries(coloring: Coloring, look: Look) -> list[int]:
    """For each swatch, the first swatch with its kind, name and colour."""
    first: dict[tuple[str, str, str], int] = {}
    kinds = [swatch.kind for swatch in coloring.swatches]
    looks = zip(kinds, swatch_names(coloring, look), colors(coloring.swatches, look), strict=True)
    return [first.setdefault(each, place) for place, each in enumerate(looks)]


def swatch_names(coloring: Coloring, look: Look) -> list[str]:
    """The meaning of each colour, as plain text: of a kernel its short name.

    A variant's name is followed by its workload where variants of that name have several colours.
    """
    lone = coloring.by == "variant" and not any(swatch.kind == "variant" for swatch in coloring.swatches)
    kernels = "kernel" if lone else "kernel of no variant" if coloring.by == "variant" else "other kernels"
    shades: dict[str, set[str]] = {}
    for swatch, color in zip(coloring.swatches, colors(coloring.swatches, look), strict=True):
        if swatch.workload:
            shades.setdefault(swatch.name, set()).add(color)

    def called(swatch: Swatch) -> str:
        if swatch.workload:
            return f"{swatch.name} ({swatch.workload})" if len(shades[swatch.name]) > 1 else swatch.name
        return kernels if swatch.kind == "other" else coloring.short.get(swatch.name, swatch.name)

    return [called(swatch) for swatch in coloring.swatches]


def _legend_names(coloring: Coloring, look: Look) -> list[str]:
    """The same, as long as the legend has room for; kernels whose names differ at their ends show where."""
    names = swatch_names(coloring, look)
    return apart(
        names, [swatch.name or name for swatch, name in zip(coloring.swatches, names, strict=True)], _LEGEND_CHARACTERS
    )


def swatch_titles(coloring: Coloring, look: Look) -> list[str]:
    """The meaning of each colour in full: of a kernel its name with namespaces and arguments."""
    names = swatch_names(coloring, look)
    return [
        swatch.name.removeprefix("void ") if swatch.kind == "kernel" else name
        for swatch, name in zip(coloring.swatches, names, strict=True)
    ]


def words(traces: Traces, lanes: Lanes, shown: LaneInWindow) -> tuple[list[str], list[str]]:
    """The name of each event that is drawn alone, and the further lines of its hover text, as plain text."""
    lane, places = shown.lane, shown.detail.alone
    called = names(traces, lanes, lane, places)
    if lane.kind == "ranges":
        open_ = traces.numbers("ranges", "end_ns")[lane.row[places]] < 0
        return called, ["never closed" if each else "" for each in open_]
    fact_rows = facts(traces, lanes, lane, places)
    lasts = lane.covered[places + 1] - lane.covered[places]
    notes = ["\n".join(_lines(row, int(ns))) for row, ns in zip(fact_rows.to_dict("records"), lasts, strict=True)]
    return [OPERATIONS.get(name, name) if lane.kind == "device" else name for name in called], notes


def _lines(row: dict[Any, Any], duration_ns: int) -> list[str]:
    lines = []
    if pd.notna(row.get("grid_x")):
        grid, block = ("×".join(f"{row[f'{what}_{axis}']:.0f}" for axis in "xyz") for what in ("grid", "block"))
        registers = f", {row['registers']:.0f} registers" if pd.notna(row["registers"]) else ""
        lines.append(f"grid {grid}, block {block}{registers}")
    if pd.notna(row.get("bytes")):
        rate = f" at {format_rate(row['bytes'] / duration_ns)}" if duration_ns else ""
        memory = " to ".join(
            str(row[side]) for side in ("src_memory", "dst_memory") if isinstance(row[side], str) and row[side]
        )
        lines.append(f"{format_bytes(row['bytes'])}{rate}{', ' if memory else ''}{memory}")
    if row["range"]:
        lines.append(f"in range {row['range']}")
    return lines


def table(
    scene: Sequence[LaneInWindow], window: Window, traces: Traces, lanes: Lanes, coloring: Coloring, look: Look
) -> pd.DataFrame:
    """The data of the timeline: one row for each event that is drawn alone, and one for each bar.

    Times are from the start of the trace.
    """
    edges = window.edges - lanes.begin_ns
    labels, parts = np.array(swatch_names(coloring, look), dtype=object), []
    for shown in scene:
        lane, part = shown.lane, shown.detail
        start, end = lane.start[part.alone] - lanes.begin_ns, lane.end(part.alone) - lanes.begin_ns
        name = words(traces, lanes, shown)[0]
        alone = pd.DataFrame({"name": name, "start_ns": start, "end_ns": end, "busy_ns": end - start, "count": 1})
        bars = pd.DataFrame(
            {
                "name": "",
                "start_ns": edges[part.bin],
                "end_ns": edges[part.bin + 1],
                "busy_ns": part.busy_ns,
                "count": part.count,
            }
        )
        both = pd.concat([each for each in (alone, bars) if len(each)] or [alone])
        both.insert(0, "lane", _title(lane))
        both["color"] = labels[np.concatenate([shown.alone_color, shown.bar_color])]
        parts.append(both.sort_values("start_ns"))
    return pd.concat(parts, ignore_index=True)


def _title(lane: Lane) -> str:
    return f"{lane.group} · {lane.label}"


def contents(
    scene: Sequence[LaneInWindow],
    window: Window,
    traces: Traces,
    lanes: Lanes,
    coloring: Coloring,
    look: Look,
    matches: Int64s,
    memory: Sequence[MemoryInUse] = (),
) -> dict[str, Any]:
    """The lanes in a window and the meaning of their colours, for the browser's script.

    Args:
        matches: see `collectives.matches`.
        memory: what is drawn as lanes of memory in use.

    Returns:
        - `lanes`: each with its headings, and its events and bars as lists; `texts`, to which they refer by place;
        - `window`: start and end, in nanoseconds from the start of the trace; `bins` of it; `length` of the trace;
        - `colors` of the swatches, their `swatches` in short and `titles` in full, those in the `legend`, and those whose events are `thin`;
        - `short` names of kernels, by the places of their full names in `texts`;
        - `tones` of the theme.
    """
    texts: dict[str, int] = {}
    drawn = []
    for shown in scene:
        lane, part = shown.lane, shown.detail
        called, notes = words(traces, lanes, shown)
        drawn.append(
            {
                "group": lane.group,
                "label": lane.label,
                "kind": lane.kind,
                "start": (lane.start[part.alone] - lanes.begin_ns).tolist(),
                "end": (lane.end(part.alone) - lanes.begin_ns).tolist(),
                "color": shown.alone_color.tolist(),
                "lit": shown.alone_lit.astype(int).tolist(),
                "row": lane.row[part.alone].tolist(),
                "match": _matches(lane, lane.row[part.alone], matches),
                "name": [texts.setdefault(name, len(texts)) for name in called],
                "note": [texts.setdefault(note, len(texts)) for note in notes],
                "bin": part.bin.tolist(),
                "busy": part.busy_ns.tolist(),
                "count": part.count.tolist(),
                "barColor": shown.bar_color.tolist(),
                "barLit": shown.bar_lit.astype(int).tolist(),
            }
        )
    drawn += [_memory_lane(each, window) for each in memory]
    shorter = {name.removeprefix("void "): brief for name, brief in coloring.short.items()}
    return {
        "lanes": drawn,
        "texts": list(texts),
        "window": [window.begin_ns - lanes.begin_ns, window.end_ns - lanes.begin_ns],
        "bins": window.bins,
        "length": lanes.end_ns - lanes.begin_ns,
        "colors": colors(coloring.swatches, look),
        "swatches": swatch_names(coloring, look),
        "brief": _legend_names(coloring, look),
        "titles": swatch_titles(coloring, look),
        "short": {str(place): shorter[name] for name, place in texts.items() if name in shorter},
        "legend": legend(scene, coloring, look),
        "thin": [place for place, each in enumerate(coloring.swatches) if each.kind == "copy"],
        "tones": {name: getattr(look.tones, name) for name in ("text", "muted", "grid", "paper")},
    }


def _memory_lane(memory: MemoryInUse, window: Window) -> dict[str, Any]:
    """Memory in use as a lane without events: the most of each bin."""
    lists = ("start", "end", "color", "lit", "row", "match", "name", "note", "bin", "busy", "count", "barColor", "barLit")
    label = f"memory ≤ {format_bytes(memory.most)}"
    used = memory.peaks(window.edges).tolist()
    return {"group": memory.group, "label": label, "kind": "memory", **{each: [] for each in lists}} | {
        "used": used,
        "most": memory.most,
    }


def _matches(lane: Lane, rows: Int32s, matches: Int64s) -> list[int]:
    """The collective of each event that is drawn alone, or `NONE`; empty for a lane without any."""
    if lane.kind != "device" or not len(matches):
        return []
    found = np.append(matches, NONE)[np.minimum(rows, len(matches))]
    return found.tolist() if (found != NONE).any() else []
