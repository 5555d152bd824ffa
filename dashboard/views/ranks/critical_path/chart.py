"""The critical path over time, and what a faster kernel would give."""

from collections.abc import Iterator
from typing import Any, Final

import pandas as pd

from warpladder.dashboard.core import critical_path as paths
from warpladder.dashboard.core.critical_path import CriticalPath
from warpladder.dashboard.core.numbers import format_duration, format_percent
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.ui.bars import LEGEND, add_bars, rows_of_bars, scale, write_beside
from warpladder.dashboard.ui.template import Chart, Look, hatch, palette, text
from warpladder.dashboard.ui.text import apart, cut
from warpladder.dashboard.views.ranks.critical_path import query
from warpladder.data.store import StoreError

_LANE_PX: Final = 26
#: Of more lanes than fit one screen so.
_LOW_LANE_PX: Final = 15
_HIGH_LANES: Final = 10
_AROUND_PX: Final = 110
#: Height of a kind in parts of its lane, so that a print without colours tells them apart.
_HEIGHTS: Final = {
    "compute": 0.65,
    "communication": 0.4,
    "memory": 0.55,
    "graph": 0.6,
    "launch": 0.3,
    "host": 0.22,
    "idle": 0.08,
}
#: A gain below this percentage of the iteration is none to speak of.
_LEAST_PERCENT: Final = 0.1
_MOST_BARS: Final = 12
_NAME_CHARACTERS: Final = 40
_HOVER_CHARACTERS: Final = 100


def over_time(found: CriticalPath, look: Look) -> Chart:
    """The path over the time of the iteration: a lane for each rank, coloured by kind, and a line from lane to lane."""
    pieces = query.pieces(found)
    lanes = sorted(lane for lane in pieces["lane"].unique().tolist() if lane != query.OTHERS)
    names = [*map(str, lanes), *(["others"] if query.OTHERS in set(pieces["lane"]) else [])]
    place = {lane: number for number, lane in enumerate([*lanes, query.OTHERS])}
    rows = pieces.assign(y=pieces["lane"].map(place)).to_dict("records")
    lane_px = _LANE_PX if len(names) <= _HIGH_LANES else _LOW_LANE_PX
    figure = rows_of_bars(look, names, lane_px, _AROUND_PX, least=2, title_text="rank", zeroline=False)
    figure.add_scatter(
        x=[time for row in rows for time in (row["start_ns"], row["end_ns"])],
        y=[row["y"] for row in rows for _ in range(2)],
        mode="lines",
        line={"color": look.tones.muted, "width": 1},
        hoverinfo="skip",
        showlegend=False,
    )
    # One line for each kind, with gaps: thousands of bars would take seconds to draw.
    for kind, color in _colors(look).items():
        of_kind = [row for row in rows if row["kind"] == kind]
        if of_kind:
            figure.add_scatter(
                x=[
                    time
                    for row in of_kind
                    for time in (row["start_ns"], (row["start_ns"] + row["end_ns"]) / 2, row["end_ns"], None)
                ],
                y=[y for row in of_kind for y in (row["y"],) * 4],
                mode="lines",
                name=query.word(found, kind),
                line={"color": color, "width": max(_HEIGHTS[kind] * lane_px, 2)},
                hoverinfo="text",
                hovertext=[hover for row in of_kind for hover in (_hover(row, found),) * 4],
            )
    inferred = [row for row in rows if row["inferred"]]
    if inferred:
        figure.add_scatter(
            x=[row["end_ns"] for row in inferred],
            y=[row["y"] for row in inferred],
            mode="markers",
            name="inferred",
            marker={"symbol": "circle-open", "size": 9, "color": look.tones.text},
            hoverinfo="text",
            hovertext=[_hover(row, found) for row in inferred],
        )
    scale(figure, "since the start of the iteration", found.span.duration_ns)
    figure.update_layout(**LEGEND)
    which = "the whole profile" if found.span.iteration is None else f"iteration {found.span.iteration}"
    note = look.note(
        f"{which}; path of {len(found.segments)} segments through {pieces['rank'].nunique()} of {len(found.ranks)} ranks. At each time, what "
        f"runs is what the end of the iteration waits for.{_kinds(found)}{_INFERRED if len(inferred) else ''}"
    )
    return Chart("critical-path", query.headline(found), figure, found.segments, note)


def gains(found: CriticalPath, look: Look) -> Chart:
    """What the iteration gains where a kernel on the path takes a tenth less time, the largest gain first.

    Args:
        found: with a kernel on the path.
    """
    frame = found.kernels
    by = "gain_ns" if found.replayed else "tenth_ns"
    shown = frame.sort_values([by, "time_ns"], ascending=False, kind="stable").head(_MOST_BARS)
    rows = shown.to_dict("records")
    names = apart(list(shown["kernel"]), list(shown["name"]), _NAME_CHARACTERS)
    figure = rows_of_bars(look, list(map(text, names)), 28, 100)
    bars = [("tenth_ns", "a tenth of its time on the path", look.tones.muted, "/")]
    bars += [("gain_ns", "replayed", palette(look.theme)[2], "")] if found.replayed else []
    for column, name, color, pattern in bars:
        width, opacity = (0.7, 0.55) if column == "tenth_ns" else (0.45, 1.0)
        marker = {"color": color, "pattern": hatch(pattern, 0.25), "opacity": opacity}
        add_bars(figure, shown[column], [_gain_hover(row, found) for row in rows], name=name, width=width, marker=marker)
    ends, lasts = shown[["tenth_ns", by]].max(axis=1), found.span.duration_ns
    words = [text(f"{format_duration(row[by])}, {format_percent(100 * row[by] / lasts)}") for row in rows]
    write_beside(figure, ends, words)
    scale(figure, "gain of the iteration", max(float(ends.max()), 1.0), 1.35)
    figure.update_layout(barmode="overlay", **LEGEND)
    bound = query.bound(found)
    more = f" The first {len(rows)} of {len(frame)} are drawn." if len(rows) < len(frame) else ""
    note = look.note(
        "gain of the iteration if one kernel takes 10 % less time on all ranks. If the path stayed where it is, the gain would be a tenth of "
        f"the kernel's time on it, with the part that overlaps the kernel before it. The replay lets the path move.{' ' + bound if bound else ''}{more}"
    )
    return Chart("critical-path-gains", _title(found, rows[0], by), figure, frame, note)


def _title(found: CriticalPath, first: dict[Any, Any], by: str) -> str:
    """`gemm 10 % faster shortens the iteration by 1.20 ms, 2.9 %`."""
    percent = 100 * first[by] / found.span.duration_ns
    share = format_percent(percent)
    if not percent > 0:
        return "No kernel on the path shortens the iteration if it is 10 % faster"
    if percent < _LEAST_PERCENT:
        return f"No kernel on the path shortens the iteration by more than {share} if it is 10 % faster"
    exact = not query.bound(found)
    name = cut(first["kernel"], _NAME_CHARACTERS)
    return f"{name} 10 % faster shortens the iteration by {'' if exact else 'at most '}{format_duration(first[by])}, {share}"


def _colors(look: Look) -> dict[str, str]:
    shades = palette(look.theme)
    return {
        "compute": shades[0],
        "communication": shades[1],
        "memory": shades[4],
        "graph": shades[5],
        "launch": shades[3],
        "host": shades[2],
        "idle": look.tones.text,
    }


_MEANING: Final = {
    "communication": "transfers: collectives from the arrival of the last rank",
    "graph": "CUDA graphs: traced as a whole, so that their inside is not known",
    "launch": "launches: from the end of the launch call to the start of its work",
    "host": "host: calls, operators and what else the thread did",
    "idle": "idle: between work and the work that waited for it",
}


_INFERRED: Final = " A circle: the profile does not name what ends here as what the next segment waited for."


def _kinds(found: CriticalPath) -> str:
    """What the kinds on the path mean."""
    there = set(found.segments["kind"])
    words = [meaning for kind, meaning in _MEANING.items() if kind in there and (kind != "communication" or found.aligned)]
    joined = "; ".join(words)
    return f" {joined[0].upper()}{joined[1:]}." if joined else ""


def _hover(row: dict[Any, Any], found: CriticalPath) -> str:
    name = f"<b>{text(cut(row['name'], _HOVER_CHARACTERS))}</b><br>" if row["name"] else ""
    several = f", {row['segments']} segments" if row["segments"] > 1 else ""
    several += ", inferred" if row["inferred"] else ""
    lasts = text(format_duration(row["end_ns"] - row["start_ns"]))
    return f"{name}rank {row['rank']}, {query.word(found, row['kind'])}<br>{lasts}{several}, at {text(format_duration(row['start_ns']))}"


def _gain_hover(row: dict[Any, Any], found: CriticalPath) -> str:
    lines = [
        f"<b>{text(cut(row['name'], _HOVER_CHARACTERS))}</b>",
        f"{row['kind']}, {row['executions']} executions on {row['ranks']} ranks of the path",
        f"{text(format_duration(row['time_ns']))}, {text(format_percent(row['percent']))} of the iteration",
        f"a tenth of it: {text(format_duration(row['tenth_ns']))}"
        + (f", replayed: {text(format_duration(row['gain_ns']))}" if found.replayed else ""),
    ]
    return "<br>".join(lines)


def charts(data: RunData, look: Look) -> Iterator[Chart]:
    """The path of the typical iteration, and the gains; nothing where the profiles of its ranks cannot be read."""
    try:
        iterations = query.iterations(data) if data.job else pd.DataFrame()
        found = query.path(data, paths.typical(iterations)) if len(iterations) else None
    except StoreError:
        return
    if found is not None:
        yield over_time(found, look)
        if len(found.kernels):
            yield gains(found, look)
