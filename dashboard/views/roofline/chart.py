"""Variants, or sizes of one, under the roofs measured on their device, on logarithmic axes."""

import math
from typing import Any, Final

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from warpladder.dashboard.core.estimate import Estimate
from warpladder.dashboard.core.precision import word
from warpladder.dashboard.ui.numbers import format_duration, format_ends, format_percent, format_rate, significant
from warpladder.dashboard.ui.template import Chart, Look, blank, hover, measured, slug, text
from warpladder.dashboard.ui.ticks import ticks

_HEIGHT: Final = 410
#: The plot begins and ends this many times beyond the marks and ridges, so that roofs can be read beside them.
_LEFT: Final = 6.0
_RIGHT: Final = 2.5
_BELOW: Final = 1.8
_ABOVE: Final = 1.9
#: The name of a flat roof begins so far right of its ridge.
_BESIDE: Final = 1.1
#: A line answers the pointer at its vertices alone.
_VERTICES: Final = 40
_SMALLEST, _LARGEST = 7.0, 14.0


def roofline(frame: pd.DataFrame, roofs: pd.DataFrame, look: Look, counted_in: str = "") -> Chart:
    """The variants of one case, each a point, and the ladder as a path in the order of its rungs.

    Args:
        frame: `query.points` of one case, not empty, with at least one roof known.
        roofs: `query.roofs`.
        counted_in: the run whose counters gave operations and bytes; empty where they are those of the case.
    """
    figure, ends = _under_roofs(frame, roofs, look, counted_in)
    rungs = frame[frame["role"] == "rung"].sort_values("rung", kind="stable")
    _draw_path(figure, rungs, "the ladder, rung by rung", look)
    for row in frame.sort_values("gflop_per_s", ascending=False).to_dict("records"):
        _draw_point(figure, row, look, f"{look.named(row['workload'], row['variant'])}, {_percent(row)}", counted_in)
    best = _nearest(frame)
    _name_point(figure, best, look.named(best["workload"], best["variant"]), ends, look)
    where = f"{best['workload']}, {best['case']}"
    title = f"{where}: {look.named(best['workload'], best['variant'])} is nearest to its roof, {_share(best, roofs)}"
    name = slug("roofline", best["workload"], best["case"], best["cache"], "counted" if counted_in else "")
    return Chart(name, title, figure, frame, _note(frame, roofs, look, counted_in, "Each variant with its fastest config."))


def over_sizes(frame: pd.DataFrame, roofs: pd.DataFrame, look: Look, counted_in: str = "") -> Chart:
    """One variant over its sizes, a point each, the larger the size the larger the point; arguments as those of `roofline`."""
    figure, ends = _under_roofs(frame, roofs, look, counted_in)
    frame = frame.sort_values("size_rank", kind="stable")
    _draw_path(figure, frame, "from the smallest to the largest", look)
    sizes = np.linspace(_SMALLEST, _LARGEST, len(frame))
    for row, marker in sorted(zip(frame.to_dict("records"), sizes, strict=True), key=lambda pair: -pair[0]["gflop_per_s"]):
        _draw_point(figure, row, look, f"{row['size']}, {_percent(row)}", counted_in, marker)
    best = _nearest(frame)
    _name_point(figure, best, best["size"], ends, look)
    who = f"{look.named(best['workload'], best['variant'])} of {best['workload']}"
    title = (
        f"{who}{', ' + best['series'] if best['series'] else ''}: nearest to its roof at {best['size']}, {_share(best, roofs)}"
    )
    name = slug("roofline", best["workload"], best["variant"], best["series"], best["cache"], "counted" if counted_in else "")
    return Chart(name, title, figure, frame, _note(frame, roofs, look, counted_in, "The fastest config at each size."))


def _under_roofs(frame: pd.DataFrame, roofs: pd.DataFrame, look: Look, counted_in: str) -> tuple[go.Figure, tuple[float, ...]]:
    """A figure with the roofs that hold for the rows, and where its axes end: left, right, low, high."""
    figure = blank(look.theme, _HEIGHT)
    slopes = roofs[roofs["kind"] == "memory"].to_dict("records")
    held = roofs[(roofs["kind"] == "compute") & roofs["precision"].isin([*frame["precision"]] if look.on_gpu else ["fp32"])]
    flats = held.to_dict("records")
    ridges = [flat["value"] / slope["value"] for slope in slopes for flat in flats]
    x, y = frame["flop_per_byte"], frame["gflop_per_s"]
    left, right = min([*ridges, *x]) / _LEFT, max([*ridges, *x]) * _RIGHT
    low, high = min(y) / _BELOW, max([*(flat["value"] for flat in flats), *frame["roof_gflop_per_s"].dropna(), *y]) * _ABOVE
    for slope in slopes:
        end = min(right, max(ridges, default=right))
        start = max(left, low / slope["value"])
        across = np.geomspace(min(start, end / 2), end, _VERTICES)
        _draw_roof(figure, across, across * slope["value"], slope, look)
        # Below the line, which rises away from the words.
        _name_roof(figure, across[0], across[0] * slope["value"], slope, look, xanchor="left", yanchor="top", xshift=10)
    for flat in flats:
        start = flat["value"] / slopes[0]["value"] if slopes else left
        _draw_roof(figure, np.geomspace(start, right, _VERTICES), np.full(_VERTICES, flat["value"]), flat, look)
        # At the end where the marks are not.
        at_left = max(x) > math.sqrt(start * right)
        if at_left:
            _name_roof(figure, start * _BESIDE, flat["value"], flat, look, xanchor="left", yanchor="top")
        else:
            _name_roof(figure, right, flat["value"], flat, look, xanchor="right", yanchor="bottom")
    what = (
        "by counters, FLOP/byte: operations executed over bytes of device memory moved"
        if counted_in else "on paper, FLOP/byte: operations over least bytes of the case"
    )  # fmt: skip
    figure.update_xaxes(
        type="log", range=[math.log10(left), math.log10(right)], title_text=f"intensity {what}",
        **ticks(left, right, significant, logarithmic=True),
    )  # fmt: skip
    figure.update_yaxes(
        type="log", range=[math.log10(low), math.log10(high)], title_text="executed rate" if counted_in else "rate",
        **ticks(low, high, lambda value: format_rate(value, "GFLOP/s"), logarithmic=True),
    )  # fmt: skip
    figure.update_layout(legend={"y": 1, "yanchor": "top", "x": 1.01, "xanchor": "left", "traceorder": "normal"})
    return figure, (left, right, low, high)


def _draw_roof(figure: go.Figure, x: Any, y: Any, roof: dict[Any, Any], look: Look) -> None:
    words = f"<b>{text(_roof_words(roof))}</b><br>{text(roof['method'])}"
    figure.add_scatter(
        x=x, y=y, mode="lines", showlegend=False, line={"color": look.tones.good, "width": 1.8}, hoverinfo="text", hovertext=words,
    )  # fmt: skip


def _name_roof(figure: go.Figure, x: float, y: float, roof: dict[Any, Any], look: Look, **place: Any) -> None:
    figure.add_annotation(
        x=math.log10(x), y=math.log10(y), text=text(_roof_words(roof)), hovertext=text(roof["method"]), showarrow=False,
        font={"size": 11, "color": look.tones.good}, **place,
    )  # fmt: skip


def _draw_path(figure: go.Figure, rows: pd.DataFrame, name: str, look: Look) -> None:
    if len(rows) > 1:
        figure.add_scatter(
            x=rows["flop_per_byte"], y=rows["gflop_per_s"], mode="lines", name=name, hoverinfo="skip", legendrank=2000,
            line={"color": look.tones.muted, "width": 1.2, "dash": "dot"},
        )  # fmt: skip


def _draw_point(figure: go.Figure, row: dict[Any, Any], look: Look, name: str, counted_in: str, size: float = 10) -> None:
    style = look.style(row["workload"], row["variant"])
    figure.add_scatter(
        x=[row["flop_per_byte"]], y=[row["gflop_per_s"]], mode="markers", name=text(name),
        marker={"symbol": style.symbol, "size": size, "color": style.color},
        error_y={
            "type": "data", "symmetric": False, "array": [row["gflop_per_s_high"] - row["gflop_per_s"]],
            "arrayminus": [row["gflop_per_s"] - row["gflop_per_s_low"]], "thickness": 1, "width": 3,
        },
        hoverinfo="text", hovertext=_hover(row, counted_in),
    )  # fmt: skip


def _name_point(figure: go.Figure, row: dict[Any, Any], name: str, ends: tuple[float, ...], look: Look) -> None:
    """The name of the point nearest to its roof, on the side of the plot that has room."""
    left, right, _, _ = ends
    to_the_right = row["flop_per_byte"] < math.sqrt(left * right)
    figure.add_annotation(
        x=math.log10(row["flop_per_byte"]), y=math.log10(row["gflop_per_s"]), text=f"<b>{text(name)}</b>  {text(_percent(row))}",
        showarrow=False, xanchor="left" if to_the_right else "right", xshift=12 if to_the_right else -12,
        font={"size": 12, "color": look.tones.text},
    )  # fmt: skip


def _nearest(frame: pd.DataFrame) -> dict[Any, Any]:
    row: dict[Any, Any] = frame.sort_values("percent_of_roof", ascending=False, na_position="last").iloc[0].to_dict()
    return row


def _percent(row: dict[Any, Any]) -> str:
    return format_percent(row["percent_of_roof"])


def _share(row: dict[Any, Any], roofs: pd.DataFrame) -> str:
    """`at 95.7 % of what memory allows (device_copy, 4.26 TB/s)`."""
    roof = roofs[roofs["name"] == row["roof"]]
    if len(roof) > 1:
        roof = roof[roof["precision"] == row["precision"]]
    binding = roof.iloc[0].to_dict()
    what = "memory" if binding["kind"] == "memory" else f"{word(binding['precision'])} arithmetic"
    return f"at {_percent(row)} of what {what} allows ({_roof_words(binding)})"


def _roof_words(roof: dict[Any, Any]) -> str:
    """`fp32_fma 66.0 TFLOP/s`; a part of a ceiling says which: `tf32_mma / 3, for 3xTF32, 103 TFLOP/s`."""
    part = "" if roof["share"] == 1 else f" / {significant(1 / roof['share'])[:1]}, for {word(roof['precision'])},"
    return f"{roof['name']}{part} {format_rate(roof['value'], roof['unit'])}"


def _hover(row: dict[Any, Any], counted_in: str) -> str:
    ends = format_ends(Estimate.of(row, "gflop_per_s"), lambda rate: format_rate(rate, "GFLOP/s"))
    share = format_ends(Estimate.of(row, "percent_of_roof"), format_percent)
    return hover(
        row, ("rate", f"{format_rate(row['gflop_per_s'], 'GFLOP/s')} ({ends})"),
        ("intensity", f"{significant(row['flop_per_byte'])} FLOP/byte{', counted' if counted_in else ''}"),
        (f"of its roof, {row['roof']}", f"{_percent(row)} ({share})"), ("median", format_duration(row["median_ns"])),
    )  # fmt: skip


def _note(frame: pd.DataFrame, roofs: pd.DataFrame, look: Look, counted_in: str, which: str) -> str:
    source = (
        f"Operations executed and bytes of device memory: Nsight Compute's counters of the same source, {counted_in}; what stays in L2 "
        "counts no bytes, and variants on tensor cores are left out, since their arithmetic is not in these counters."
        if counted_in else "Intensity and rate: the operations of the case, over its least bytes and over the time."
    )  # fmt: skip
    above = "Above its roof: served by a cache, or faster than the ceiling measured in the same run."
    roof = "Roofs: ceilings measured in the same run." if len(roofs) else ""
    return measured(frame, look.device, which, source, roof, above if (frame["percent_of_roof"] > 100).any() else "")
