"""The agreement of collectors: the ratio of their device times over the time, with the tolerance band above 20 µs."""

import math
from typing import Any, Final

import pandas as pd
from plotly.subplots import make_subplots

from warpladder.dashboard.ui.numbers import format_duration, format_interval, format_ratio, significant
from warpladder.dashboard.ui.template import Chart, Look, blank, samples, text
from warpladder.dashboard.ui.ticks import ticks
from warpladder.data.statistics import AGREE_ABOVE_NS, AGREE_WITHIN

_HEIGHT: Final = 270
_SYMBOLS: Final = {
    "cuda_events": "circle",
    "cupti": "square",
    "nsight_systems": "diamond",
    "nsight_compute": "triangle-up",
}
_COLORS: Final = {"cuda_events": 0, "cupti": 1, "nsight_systems": 2, "nsight_compute": 3}


def agreement(frame: pd.DataFrame, look: Look, collector: str) -> Chart:
    """Differences of `agreement.compare`, not empty. Short and long cells have separate panels, because their scales differ.

    Args:
        collector: the collector of this run.
    """
    parts = [part for part in (frame[~frame["above"]], frame[frame["above"]]) if len(part)]
    figure = make_subplots(rows=1, cols=len(parts), horizontal_spacing=0.09, figure=blank(look.theme, _HEIGHT))
    palette = figure.layout.template.layout.colorway
    named = set[str]()
    for column, part in enumerate(parts, start=1):
        place = {"row": 1, "col": column}
        for key, cells in part.groupby(["collector", "cache"], sort=False):
            other, cache = (str(each) for each in key)
            symbol = _SYMBOLS.get(other, "circle")
            percent, low, high = (100 * (cells[name] - 1) for name in ("ratio", "low", "high"))
            name = f"{other}, {cache} L2"
            figure.add_scatter(
                x=cells["median_ns"],
                y=percent,
                mode="markers",
                name=text(name),
                legendgroup=name,
                showlegend=name not in named,
                error_y={"type": "data", "array": high - percent, "arrayminus": percent - low, "width": 0, "thickness": 1},
                marker={
                    "symbol": symbol if cache == "cold" else f"{symbol}-open",
                    "size": 7,
                    "color": palette[_COLORS.get(other, 4)],
                    "opacity": 0.85,
                },
                hoverinfo="text",
                hovertext=[_hover(row, collector) for row in cells.to_dict("records")],
                **place,
            )
            named.add(name)
        first, last = float(part["median_ns"].min()) / 1.15, float(part["median_ns"].max()) * 1.15
        figure.update_xaxes(
            type="log",
            range=[math.log10(first), math.log10(last)],
            title_text=f"device time by {text(collector)}",
            **ticks(first, last, format_duration, logarithmic=True),
            row=1,
            col=column,
        )
        figure.add_hline(y=0, line={"color": look.tones.muted, "width": 1}, row=1, col=column)
        if bool(part["above"].iloc[0]):
            band = 100 * AGREE_WITHIN
            figure.add_hrect(y0=-band, y1=band, fillcolor=look.tones.good, opacity=0.13, line_width=0, row=1, col=column)
            reach = max(1.5 * band, 1.1 * float((100 * (part["ratio"] - 1)).abs().max()))
            figure.update_yaxes(range=[-reach, reach], row=1, col=column)
        figure.update_yaxes(ticksuffix=" %", row=1, col=column)
    figure.update_yaxes(title_text="difference from it", row=1, col=1)
    figure.update_layout(legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0}, margin={"t": 34})
    note = (
        f"{look.device}; medians of device time of the same cell and source in runs of different collectors; "
        f"{samples(frame['n'])} by {collector}, {samples(frame['other_n'])} by the others. Interval: both medians' relative "
        f"half-widths, added as independent errors. Band: ±{100 * AGREE_WITHIN:g} % above {format_duration(AGREE_ABOVE_NS)}."
    )
    return Chart("agreement", verdict(frame), figure, frame, note)


def verdict(frame: pd.DataFrame) -> str:
    """The title: the number of cells above 20 µs that agree, and the largest difference. Shorter cells count only without others."""
    above = frame[frame["above"]]
    shown = above if len(above) else frame
    worst = shown.iloc[int((shown["ratio"] - 1).abs().to_numpy().argmax())]
    largest = f"{worst['collector']} {_percent(worst['ratio'])} for {worst['variant']} at {worst['case']}"
    if above.empty:
        return (
            f"No cell above {format_duration(AGREE_ABOVE_NS)} to compare; the largest difference of shorter cells is {largest}"
        )
    return (
        f"{int(above['agrees'].sum())} of {len(above)} cells above {format_duration(AGREE_ABOVE_NS)} agree within "
        f"{100 * AGREE_WITHIN:g} %; the largest difference is {largest}"
    )


def in_words(row: dict[Any, Any], collector: str) -> str:
    """A sentence on one row of `agreement.by_collector`.

    Args:
        collector: the collector of this run.
    """
    limit = format_duration(AGREE_ABOVE_NS)
    parts = []
    if row["above"]:
        parts.append(f"{row['agree']} of {row['above']} cells above {limit} within {100 * AGREE_WITHIN:g} % of {collector}")
    if row["below"]:
        parts.append(
            f"below {limit} it differs from {collector} by {format_duration(row['difference_ns'])} (median of {row['below']}) "
            f"and measures less in {row['less']}"
        )
    return f"{row['collector']}: {'; '.join(parts)}."


def _percent(ratio: float) -> str:
    percent = 100 * (ratio - 1)
    return f"{'+' if percent >= 0 else '−'}{significant(abs(percent))} %"


def _hover(row: dict[Any, Any], collector: str) -> str:
    config = f" [{row['config']}]" if row["config"] else ""
    ends = format_interval(format_ratio(row["low"]), format_ratio(row["high"]))
    return "<br>".join(
        [
            f"<b>{text(row['variant'])}</b>{text(config)}",
            text(f"{row['case']}, {row['cache']} L2"),
            f"{text(collector)}: <b>{text(format_duration(row['median_ns']))}</b>, n = {row['n']}",
            f"{text(row['collector'])}: <b>{text(format_duration(row['other_ns']))}</b>, n = {row['other_n']}",
            f"ratio <b>{format_ratio(row['ratio'])}</b> ({ends})",
        ]
    )
