"""The samples of a cell over the rounds."""

from collections.abc import Iterator
from typing import Any, Final

import pandas as pd
from plotly.subplots import make_subplots

from warpladder.dashboard.compare import winners
from warpladder.dashboard.core.cell import Timing
from warpladder.dashboard.core.intervals import interval_kind
from warpladder.dashboard.core.numbers import format_duration, format_interval, significant
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.ui.template import ABOVE, Chart, Look, blank, slug, text, timing
from warpladder.data.statistics import median_interval

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
        held = f"held {row['held_clock_mhz']:,.0f} MHz; " if pd.notna(row["held_clock_mhz"]) else ""
        lines.append(f"{held}NVML: {row['sm_clock_mhz']} MHz, {row['temperature_c']} °C")
    if pd.notna(row["throttle_reasons"]) and row["throttle_reasons"]:
        lines.append(f"throttled: NVML reasons {row['throttle_reasons']:#x}")
    return "<br>".join(lines)
