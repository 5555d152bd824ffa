"""Variants under the measured roofs of their device, on logarithmic axes."""

import math
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from warpladder.dashboard.compare.within_run import word
from warpladder.dashboard.core.cell import Cell, name_of, records
from warpladder.dashboard.core.cells import doubt
from warpladder.dashboard.core.numbers import format_duration, format_estimate, format_percent, format_rate, significant
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.ui.template import BESIDE, Chart, Look, add_points, blank, hover, measured, slug, text, ticks
from warpladder.dashboard.views.ladder.roofline import query
from warpladder.dashboard.views.ladder.roofline.query import Roof, has_floor_by_size
from warpladder.dashboard.views.ladder.roofline.query import slopes as memory_roofs

#: About the height of the plot without the ticks and titles below it, and half the height of a name with what is to be free around it.
_PLOT_PX: Final = 340
_TEXT_PX: Final = 11
#: The same on the side of a roof where the name of the roof is.
_NAMED_PX: Final = 32
#: The axes extend by this factor past the marks and ridges, so that the roofs are visible beside them.
_LEFT_FACTOR: Final = 6.0
_RIGHT_FACTOR: Final = 2.5
_BELOW_FACTOR: Final = 1.8
_ABOVE_FACTOR: Final = 1.9
#: The name of a flat roof begins at its ridge times this.
_BESIDE: Final = 1.1
#: Points of a roof's line. Plotly shows a hover text at points only.
_VERTICES: Final = 40


def charts(data: RunData, look: Look, workload: str) -> Iterator[Chart]:
    """The variants at the largest case.

    They are drawn with the operations and bytes of the case, and where the run has counters also with the counted ones.
    """
    for timing in query.timings(data, workload)[:1]:
        roofs = query.roofs(data)
        for counted, counted_in in ((None, ""), (query.executed(data, workload), "this run")):
            frame = query.points(data, workload, timing, counted)
            if frame["roof_gflop_per_s"].isna().all():
                continue
            largest = frame[frame["size_rank"] == frame["size_rank"].max()]
            yield roofline(largest[largest["case"] == largest["case"].iloc[-1]], roofs, look, counted_in)


def roofline(frame: pd.DataFrame, roofs: Sequence[Roof], look: Look, counted_in: str = "") -> Chart:
    """The variants of one case as points, and the ladder as a path in the order of its rungs.

    Args:
        frame: `query.points` of one case, not empty, with at least one known roof.
        roofs: `query.roofs`.
        counted_in: the run whose counters gave the operations and bytes; empty where the case gave them.
    """
    figure, ends = _under_roofs(frame, roofs, look, counted_in)
    points = records(frame)
    rungs = sorted((point for point in points if point.role == "rung"), key=lambda point: point.rung)
    _draw_path(figure, rungs, look)
    for point in sorted(points, key=lambda point: -point.gflop_per_s.value):
        _draw_point(figure, point, look, f"{look.variant_name(point.workload, point.variant)}, {_percent(point)}", counted_in)
    best = _nearest(points)
    first, title = points[0], f"{points[0].workload}, {points[0].case}: no variant may be called nearest to its roof"
    if best:
        subject = look.variant_name(best.workload, best.variant)
        _name_point(figure, best, best.variant, ends, _flats(frame, roofs, look), look)
        title = f"{best.workload}, {best.case}: {subject} is nearest to its roof, {_share(best, roofs)}"
    name = slug("roofline", first.workload, first.case, first.cache, "counted" if counted_in else "")
    return Chart(name, title, figure, frame, _note(frame, roofs, look, counted_in))


def _under_roofs(
    frame: pd.DataFrame, roofs: Sequence[Roof], look: Look, counted_in: str
) -> tuple[go.Figure, tuple[float, ...]]:
    """A figure with the roofs of the rows, and the ends of its axes: left, right, low, high."""
    figure = blank(look.theme, 410)
    slopes = memory_roofs(frame, roofs)
    flats = _flats(frame, roofs, look)
    ridges = [flat.value / slope.value for slope in slopes for flat in flats]
    x, y = frame["flop_per_byte"], frame["gflop_per_s"]
    left, right = min([*ridges, *x]) / _LEFT_FACTOR, max([*ridges, *x]) * _RIGHT_FACTOR
    highest = max([*(flat.value for flat in flats), *frame["roof_gflop_per_s"].dropna(), *y])
    low, high = min(y) / _BELOW_FACTOR, highest * _ABOVE_FACTOR
    for slope in slopes:
        end = min(right, max(ridges, default=right))
        start = max(left, low / slope.value)
        across = np.geomspace(min(start, end / 2), end, _VERTICES)
        _draw_roof(figure, across, across * slope.value, slope, look)
        # Below the line, or above the higher one of two, so that no line crosses the words.
        place = {"xanchor": "left", "yanchor": "top", "xshift": 10}
        if start > left:  # it begins at the axis, below which are the ticks
            place = {"xanchor": "left", "yanchor": "bottom", "xshift": 16}
        if slope is not slopes[0]:
            place = {"xanchor": "left", "yanchor": "bottom", "yshift": 10}
        _name_roof(figure, across[0], across[0] * slope.value, slope, look, **place)
    for flat in flats:
        start = flat.value / slopes[0].value if slopes else left
        _draw_roof(figure, np.geomspace(start, right, _VERTICES), np.full(_VERTICES, flat.value), flat, look)
        # At the end that has no marks.
        at_left = max(x) > math.sqrt(start * right)
        place = {"xanchor": "left", "yanchor": "top"} if at_left else {"xanchor": "right", "yanchor": "bottom"}
        _name_roof(figure, start * _BESIDE if at_left else right, flat.value, flat, look, **place)
    what = (
        "by counters, FLOP/byte: operations executed over bytes of device memory moved"
        if counted_in
        else "on paper, FLOP/byte: operations over least bytes of the case"
    )
    x_ticks = ticks(left, right, significant, logarithmic=True)
    y_ticks = ticks(low, high, lambda value: format_rate(value, "GFLOP/s"), logarithmic=True)
    reach = [[math.log10(end) for end in ends] for ends in ((left, right), (low, high))]
    figure.update_xaxes(type="log", range=reach[0], title_text=f"intensity {what}", **x_ticks)
    figure.update_yaxes(type="log", range=reach[1], title_text="executed rate" if counted_in else "rate", **y_ticks)
    figure.update_layout(legend={**BESIDE, "traceorder": "normal"})
    return figure, (left, right, low, high)


def _flats(frame: pd.DataFrame, roofs: Sequence[Roof], look: Look) -> list[Roof]:
    """The roofs of the rows' precisions. Those of arithmetic are flat."""
    precisions = {*frame["precision"]} if look.on_gpu else {"fp32"}
    return [roof for roof in roofs if roof.kind == "compute" and roof.precision in precisions]


def _draw_roof(figure: go.Figure, x: Any, y: Any, roof: Roof, look: Look) -> None:
    words = f"<b>{text(_roof_words(roof))}</b><br>{text(f'{roof.name}: {roof.method}')}"
    line = {"color": look.tones.good, "width": 1.8}
    figure.add_scatter(x=x, y=y, mode="lines", showlegend=False, line=line, hoverinfo="text", hovertext=words)


def _name_roof(figure: go.Figure, x: float, y: float, roof: Roof, look: Look, **place: Any) -> None:
    words = {
        "text": text(_roof_words(roof)),
        "hovertext": text(f"{roof.name}: {roof.method}"),
        "font": {"size": 11, "color": look.tones.good},
    }
    figure.add_annotation(x=math.log10(x), y=math.log10(y), showarrow=False, **words, **place)


def _draw_path(figure: go.Figure, points: list[Cell], look: Look) -> None:
    if len(points) > 1:
        x, y = [point.flop_per_byte for point in points], [point.gflop_per_s.value for point in points]
        line = {"color": look.tones.muted, "width": 1.2, "dash": "dot"}
        figure.add_scatter(
            x=x, y=y, mode="lines", name="the ladder, rung by rung", hoverinfo="skip", legendrank=2000, line=line
        )


def _draw_point(figure: go.Figure, point: Cell, look: Look, name: str, counted_in: str) -> None:
    style = look.style(point.workload, point.variant)
    hovers = [_hover(point, counted_in)]
    add_points(figure, style, text(name), [point.flop_per_byte], [point.gflop_per_s], hovers, size=10)


def _name_point(figure: go.Figure, point: Cell, name: str, ends: tuple[float, ...], flats: Sequence[Roof], look: Look) -> None:
    """Write the name of a point on the side of the plot that has room, and as near to it as no flat roof and no name of one lies."""
    left, right, low, high = ends
    to_the_right = point.flop_per_byte < math.sqrt(left * right)
    pixel = math.log10(high / low) / _PLOT_PX
    named_above = {note.text for note in figure.layout.annotations if note.yanchor == "bottom"}
    spans = []  # in pixels from the point: from below a roof or its name to above it
    for roof in flats:
        at = math.log10(roof.value / point.gflop_per_s.value) / pixel
        under, over = (_TEXT_PX, _NAMED_PX) if text(_roof_words(roof)) in named_above else (_NAMED_PX, _TEXT_PX)
        spans.append((at - under, at + over))
    places = sorted([0.0, *(end for span in spans for end in span)], key=abs)
    free = (place for place in places if not any(low < place < high for low, high in spans))
    figure.add_annotation(
        x=math.log10(point.flop_per_byte),
        y=math.log10(point.gflop_per_s.value),
        text=f"<b>{text(name)}</b>  {text(_percent(point))}",
        showarrow=False,
        xanchor="left" if to_the_right else "right",
        xshift=12 if to_the_right else -12,
        yshift=next(free, 0.0),
        font={"size": 12, "color": look.tones.text},
    )


def _nearest(points: list[Cell]) -> Cell | None:
    """The point with the largest percent of its roof, among the points that may be called best, or None."""
    rated = [point for point in points if point.percent_of_roof.known and not doubt(point.n, point.flags)]
    return max(rated, key=lambda point: point.percent_of_roof.value, default=None)


def _doubts(points: list[Cell]) -> str:
    """A sentence about the point nearest to its roof where it may not be called best; empty where it may."""
    rated = [point for point in points if point.percent_of_roof.known]
    top = max(rated, key=lambda point: point.percent_of_roof.value, default=None)
    why = doubt(top.n, top.flags) if top else ""
    if not top or not why:
        return ""
    return f"{name_of(top.variant, top.config)} at {top.size or top.case} is nearer ({_percent(top)}) but {why}."


def _percent(point: Cell) -> str:
    return format_percent(point.percent_of_roof.value)


def _share(point: Cell, roofs: Sequence[Roof]) -> str:
    """`at 95.7 % of what memory allows (4.26 TB/s)`."""
    roofs_of_point = [roof for roof in roofs if roof.kind == "compute" and roof.name == point.roof]
    binding = next((roof for roof in roofs_of_point if len(roofs_of_point) == 1 or roof.precision == point.precision), None)
    if binding is None:
        return f"at {_percent(point)} of what memory allows ({format_rate(point.memory_gb_per_s, 'GB/s')})"
    what = f"{word(binding.precision)} arithmetic"
    return f"at {_percent(point)} of what {what} allows ({_roof_words(binding)})"


def _roof_words(roof: Roof) -> str:
    """`memory 4.26 TB/s`, `fp32_fma 66.0 TFLOP/s`, or for a part of a ceiling `tf32_mma / 3, for 3xTF32, 103 TFLOP/s`."""
    if roof.kind == "memory":  # its ceilings are named by their mixes of reads and writes
        return f"memory {format_rate(roof.value, roof.unit)}"
    part = "" if roof.share == 1 else f" / {significant(1 / roof.share)[:1]}, for {word(roof.precision)},"
    return f"{roof.name}{part} {format_rate(roof.value, roof.unit)}"


def _hover(point: Cell, counted_in: str) -> str:
    return hover(
        point,
        ("rate", format_estimate(point.gflop_per_s, lambda rate: format_rate(rate, "GFLOP/s"))),
        ("intensity", f"{significant(point.flop_per_byte)} FLOP/byte{', counted' if counted_in else ''}"),
        (f"of its roof, {point.roof}", format_estimate(point.percent_of_roof, format_percent)),
        ("median", format_duration(point.median_ns.value)),
    )


def _note(frame: pd.DataFrame, roofs: Sequence[Roof], look: Look, counted_in: str) -> str:
    source = "Intensity and rate: the operations of the case, over its least bytes and over the time."
    if counted_in:
        source = (
            f"Operations executed and bytes of device memory: Nsight Compute's counters of the same source, {counted_in}. Data "
            "that stays in L2 counts no bytes. Variants on tensor cores are left out, since these counters lack their "
            "arithmetic."
        )
    above = "Above its roof: served by a cache, or faster than the ceiling measured in the same run."
    roof = "Roofs: ceilings measured in the same run." if len(roofs) else ""
    if has_floor_by_size(frame):
        roof += " Those of memory are rates of large arrays; a percent of floor is of the time that the case's bytes take with this L2."
    over = above if (frame["percent_of_roof"] > 100).any() else ""
    return measured(frame, look.device, "Each variant with its fastest config.", source, roof, over, _doubts(records(frame)))
