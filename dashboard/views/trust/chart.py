"""The samples of a cell over the rounds, and how far collectors agree."""

import math
from collections.abc import Iterator
from typing import Any, Final

import pandas as pd
from plotly.subplots import make_subplots

from warpladder.dashboard.compare import winners
from warpladder.dashboard.core.cell import Timing
from warpladder.dashboard.core.intervals import interval_kind
from warpladder.dashboard.core.numbers import format_duration, format_interval, format_ratio, significant
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.ui.template import ABOVE, Chart, Look, blank, bold_name, samples, slug, text, ticks, timing
from warpladder.data.statistics import AGREE_ABOVE_NS, AGREE_WITHIN, median_interval

_MOST_MARKS: Final = 500


def charts(data: RunData, look: Look, workload: str, timing: Timing) -> Iterator[Chart]:
    """The samples of the winner of the last case of the largest size."""
    largest = winners.at_largest(data, workload, timing)
    if largest.empty:
        return
    last = largest.iloc[-1]
    own = data.samples
    for column in ("workload", "case", "variant", "config"):
        own = own[own[column] == last[column]]
    own = own[(own["scope"] == timing.scope) & (own["cache"] == timing.cache)]
    yield samples_over_rounds(own, look)


def samples_over_rounds(samples: pd.DataFrame, look: Look) -> Chart:
    """The distance of every sample from the median over the rounds, with the median's interval and the distribution.

    With more than 500 samples, 1 of k is drawn. Median, interval and distribution are computed from all samples.

    Args:
        samples: rows of table `samples` of one cell, not empty. Twins (twin = 1) have another mark.
    """
    first = samples.iloc[0]
    style = look.style(first["workload"], first["variant"])
    panels = {"cols": 2, "column_widths": [0.8, 0.2], "shared_yaxes": True, "horizontal_spacing": 0.015}
    figure = make_subplots(rows=1, figure=blank(look.theme, 320), **panels)
    own = samples.loc[samples["twin"] == samples["twin"].min(), "duration_ns"]
    median, low, high = median_interval(own)
    step = -(-len(samples) // _MOST_MARKS)
    for twin, color, symbol in ((0, style.color, style.symbol), (1, look.tones.muted, "circle-open")):
        every = samples[samples["twin"] == twin]
        if every.empty:
            continue
        shown = every.sort_values("round").iloc[::step]
        figure.add_scatter(
            x=shown["round"],
            y=_percent(shown["duration_ns"], median),
            mode="markers",
            name=("samples", "second copy (A/A)")[twin],
            row=1,
            col=1,
            marker={"color": color, "symbol": symbol, "size": 6, "opacity": 0.85},
            hovertext=[_sample_hover(row) for row in shown.to_dict("records")],
            hoverinfo="text",
        )
        figure.add_histogram(
            y=_percent(every["duration_ns"], median),
            nbinsy=30,
            row=1,
            col=2,
            showlegend=False,
            marker={"color": color, "line": {"width": 0}, "opacity": 0.8 if not twin else 0.45},
            hovertemplate="%{x} samples<extra></extra>",
        )
    ends = {"y0": _percent(low, median), "y1": _percent(high, median)}
    figure.add_hrect(fillcolor=style.color, opacity=0.18, line_width=0, row=1, col=1, **ends)
    figure.add_hline(y=0, line={"color": look.tones.text, "width": 1.2}, row=1, col=1)
    figure.update_yaxes(
        title_text=f"from the median of {format_duration(median)}", ticksuffix=" %", tickformat="+.3~g", row=1, col=1
    )
    figure.update_xaxes(title_text="round", row=1, col=1)
    figure.update_xaxes(title_text="samples", row=1, col=2, nticks=4)
    figure.update_yaxes(showgrid=True, row=1, col=2)
    figure.update_layout(barmode="overlay", legend=ABOVE, margin={"t": 34}, bargap=0.05)
    who = look.variant_name(first["workload"], first["variant"]) + (f" [{first['config']}]" if first["config"] else "")
    title = f"{who}, {first['case']}: median {format_duration(median)}, half-width {significant(50 * (high - low) / median)} %"
    note = (
        f"{look.device}; {timing(first['scope'], first['cache'], first['gpus'])}; n = {len(own)}; line and band: median and "
        f"its {interval_kind(len(own))}, {format_interval(format_duration(low), format_duration(high))}."
        + (f" 1 sample of {step} is drawn." if step > 1 else "")
    )
    name = slug("samples", *(str(first[column]) for column in ("workload", "variant", "config", "case", "scope", "cache")))
    return Chart(name, title, figure, samples, note)


def _percent(duration_ns: Any, median_ns: float) -> Any:
    return 100 * (duration_ns / median_ns - 1)


def _sample_hover(row: dict[Any, Any]) -> str:
    lines = [f"<b>{text(format_duration(row['duration_ns']))}</b>", f"round {row['round']}, place {row['position']}"]
    if pd.notna(row["sm_clock_mhz"]):
        lines.append(f"NVML: {row['sm_clock_mhz']} MHz, {row['temperature_c']} °C")
    if pd.notna(row["throttle_reasons"]) and row["throttle_reasons"]:
        lines.append(f"throttled: NVML reasons {row['throttle_reasons']:#x}")
    return "<br>".join(lines)


#: Symbol, and place in the palette.
_LOOKS: Final = {
    "cuda_events": ("circle", 0),
    "cupti": ("square", 1),
    "nsight_systems": ("diamond", 2),
    "nsight_compute": ("triangle-up", 3),
}


def agreement(frame: pd.DataFrame, look: Look, collector: str) -> Chart:
    """Differences of `agreement.compare`, not empty. Short and long cells have separate panels, because their scales differ.

    Args:
        collector: the collector of this run.
    """
    parts = [part for part in (frame[~frame["above"]], frame[frame["above"]]) if len(part)]
    figure = make_subplots(rows=1, cols=len(parts), horizontal_spacing=0.09, figure=blank(look.theme, 270))
    palette = figure.layout.template.layout.colorway
    in_legend = set[str]()
    for column, part in enumerate(parts, start=1):
        place = {"row": 1, "col": column}
        for key, cells in part.groupby(["collector", "cache"], sort=False):
            other, cache = (str(each) for each in key)
            symbol, color = _LOOKS.get(other, ("circle", 4))
            percent, low, high = (100 * (cells[name] - 1) for name in ("ratio", "low", "high"))
            name, mark = f"{other}, {cache} L2", {"size": 7, "color": palette[color], "opacity": 0.85}
            figure.add_scatter(
                x=cells["median_ns"],
                y=percent,
                mode="markers",
                name=text(name),
                legendgroup=name,
                showlegend=name not in in_legend,
                error_y={"type": "data", "array": high - percent, "arrayminus": percent - low, "width": 0, "thickness": 1},
                marker={**mark, "symbol": symbol if cache == "cold" else f"{symbol}-open"},
                hoverinfo="text",
                hovertext=[_hover(row, collector) for row in cells.to_dict("records")],
                **place,
            )
            in_legend.add(name)
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
    figure.update_layout(legend=ABOVE, margin={"t": 34})
    note = (
        f"{look.device}; medians of device time of the same cell and source in runs of different collectors; "
        f"{samples(frame['n'])} by {collector}, {samples(frame['other_n'])} by the others. Interval: both medians' relative "
        f"half-widths, added as independent errors. Band: ±{100 * AGREE_WITHIN:g} % above {format_duration(AGREE_ABOVE_NS)}."
    )
    return Chart("agreement", agreement_title(frame), figure, frame, note)


def agreement_title(frame: pd.DataFrame) -> str:
    """The title: the number of cells above 20 µs that agree, and the largest difference. Shorter cells count only without others."""
    above = frame[frame["above"]]
    shown = above if len(above) else frame
    worst = shown.iloc[int((shown["ratio"] - 1).abs().to_numpy().argmax())]
    percent = 100 * (worst["ratio"] - 1)
    signed = f"{'+' if percent >= 0 else '−'}{significant(abs(percent))} %"
    largest = f"{worst['collector']} {signed} for {worst['variant']} at {worst['case']}"
    limit, within = format_duration(AGREE_ABOVE_NS), f"{100 * AGREE_WITHIN:g} %"
    if above.empty:
        return f"No cell above {limit} to compare; the largest difference of shorter cells is {largest}"
    agree = int(above["agrees"].sum())
    return f"{agree} of {len(above)} cells above {limit} agree within {within}; the largest difference is {largest}"


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


def _hover(row: dict[Any, Any], collector: str) -> str:
    ends = format_interval(format_ratio(row["low"]), format_ratio(row["high"]))
    return "<br>".join(
        [
            bold_name(row["variant"], row["config"]),
            text(f"{row['case']}, {row['cache']} L2"),
            f"{text(collector)}: <b>{text(format_duration(row['median_ns']))}</b>, n = {row['n']}",
            f"{text(row['collector'])}: <b>{text(format_duration(row['other_ns']))}</b>, n = {row['other_n']}",
            f"ratio <b>{format_ratio(row['ratio'])}</b> ({ends})",
        ]
    )
