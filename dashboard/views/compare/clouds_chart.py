"""The samples of a cell on both sides, round by round."""

from typing import Any, Final

import numpy as np
import pandas as pd
from plotly.subplots import make_subplots

from warpladder.dashboard.core.cell import name_of
from warpladder.dashboard.core.changes import Change
from warpladder.dashboard.core.intervals import interval_kind, median_interval
from warpladder.dashboard.ui.numbers import format_duration, format_interval
from warpladder.dashboard.ui.template import Chart, Look, blank, palette, slug, text, timing
from warpladder.dashboard.ui.text import cut

_HEIGHT: Final = 270
#: Samples that are further from the quartiles of their side than so many distances between the quartiles are drawn at the edge.
_FAR: Final = 3.0
_SIDES: Final = ("A", "B")
_NAME_LENGTH: Final = 22


def clouds(samples: pd.DataFrame, change: Change, look: Look) -> Chart:
    """Every sample of A and of B over the rounds on one axis, with the medians and their intervals.

    Args:
        samples: `query.clouds`.
    """
    titles = [
        f"{side}: {text(cut(name_of(*cell), _NAME_LENGTH))}"
        for side, cell in zip(_SIDES, (change.of_a, _of_b(change)), strict=True)
    ]
    figure = make_subplots(
        cols=2, shared_yaxes=True, horizontal_spacing=0.03, subplot_titles=titles, figure=blank(look.theme, _HEIGHT)
    )
    low, high = _axis(samples)
    reference = median_interval(samples.loc[samples["side"] == "A", "duration_ns"])[0]
    told = []
    for column, (side, color) in enumerate(zip(_SIDES, palette(look.theme), strict=False), start=1):
        own = samples[samples["side"] == side]
        median, *ends = median_interval(own["duration_ns"])
        drawn = own["duration_ns"].clip(low, high)
        outside = drawn.ne(own["duration_ns"])
        symbols = np.select([outside & (drawn == high), outside], ["triangle-up", "triangle-down"], "circle")
        figure.add_scatter(
            x=own["round"],
            y=_percent(drawn, reference),
            mode="markers",
            showlegend=False,
            marker={"color": color, "symbol": symbols, "size": np.where(outside, 10, 7), "opacity": 0.85},
            hovertext=[f"round {number}: {text(format_duration(ns))}" for number, ns in _pairs(own)],
            hoverinfo="text",
            row=1,
            col=column,
        )
        band = {"y0": _percent(ends[0], reference), "y1": _percent(ends[1], reference)}
        figure.add_hrect(**band, fillcolor=color, opacity=0.2, line_width=0, row=1, col=column)
        figure.add_hline(y=_percent(median, reference), line={"color": color, "width": 1.5}, row=1, col=column)
        interval = format_interval(*map(format_duration, ends))
        beyond = f", {outside.sum()} beyond the axis" if outside.any() else ""
        told.append(f"{side}: {format_duration(median)}, {interval_kind(len(own))} {interval}, n = {len(own)}{beyond}.")
    figure.update_xaxes(title_text="round", nticks=5)
    words = f"from A's median of {format_duration(reference)}"
    figure.update_yaxes(ticksuffix=" %", tickformat="+.3~g", title_text=words, row=1, col=1)
    edge = 0.04 * (high - low)
    figure.update_yaxes(range=[_percent(low - edge, reference), _percent(high + edge, reference)])
    figure.update_annotations(font={"size": 12})
    figure.update_layout(margin={"t": 26})
    how = timing(change.timing.scope, change.timing.cache, change.gpus)
    note = look.note(f"{how}; line and band: median and its interval. {' '.join(told)}")
    return Chart(slug("compare", "samples", *change.key), title(change), figure, samples, note)


def title(change: Change) -> str:
    """`n=512 v03_tile: B takes 1.043 (1.040 to 1.046) times as long as A; slower`."""
    ratio = change.ratio
    figures = f"{ratio.value:.3f} ({ratio.low:.3f} to {ratio.high:.3f})"
    return f"{change.workload} {change.case} {change.name}: B takes {figures} times as long as A; {change.verdict}"


def _of_b(change: Change) -> tuple[str, str]:
    return change.variant, change.config


def _pairs(own: pd.DataFrame) -> Any:
    return own[["round", "duration_ns"]].itertuples(index=False, name=None)


def _percent(duration_ns: Any, reference_ns: float) -> Any:
    return 100 * (duration_ns / reference_ns - 1)


def _axis(samples: pd.DataFrame) -> tuple[float, float]:
    """The ends of the axis, in nanoseconds: all samples but those that are far from the quartiles of their side."""
    lows, highs = [], []
    for _, own in samples.groupby("side")["duration_ns"]:
        first, third = np.quantile(own, (0.25, 0.75))
        reach = _FAR * max(third - first, 1e-3 * third)
        near = own[(own >= first - reach) & (own <= third + reach)]
        lows.append(near.min())
        highs.append(near.max())
    low, high = float(min(lows)), float(max(highs))
    return (low, high) if high > low else (low * 0.999, high * 1.001 + 1)
