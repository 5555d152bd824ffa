"""Ratios of two runs with their intervals and their noise, the slowest first; and the samples of both sides of a cell."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from math import isnan
from typing import Any, Final

import numpy as np
import pandas as pd
from plotly.subplots import make_subplots

from warpladder.dashboard.compare.between_runs import VERDICTS
from warpladder.dashboard.compare.changes import Change, Comparison, sentence
from warpladder.dashboard.core.cell import name_of
from warpladder.dashboard.core.intervals import interval_kind
from warpladder.dashboard.core.numbers import format_duration, format_estimate, format_interval
from warpladder.dashboard.ui.template import (
    Chart,
    Look,
    Theme,
    blank,
    error_bars,
    name_rows,
    palette,
    slug,
    text,
    ticks,
    timing,
)
from warpladder.dashboard.ui.text import cut
from warpladder.dashboard.views.compare.query import written
from warpladder.data.statistics import median_interval

#: The most cells that are drawn: half of them the slowest, half the fastest. They fit on one screen.
MOST_ROWS: Final = 18
_ROW_PX: Final = 21
#: The most characters of a row's name, which leave room for the ratios.
_NAME_LENGTH: Final = 40
_DRIFTED: Final[Mapping[Theme, str]] = {"light": "#6F42C1", "dark": "#BFA2F7"}
_SYMBOLS: Final[Mapping[str, str]] = {"drifted": "diamond", "unknown": "circle-open"}
_LEGEND: Final[Mapping[str, str]] = {"drifted": "◆", "unknown": "○"}


def forest(comparison: Comparison, look: Look, chosen: Change | None = None) -> Chart:
    """A row for each cell: the ratio of B over A with its 95 % interval, and the noise as a band around 1.

    Each point has the cell's text in a URL as `customdata`.

    Args:
        chosen: the cell whose name is bold; it is drawn also where it is neither among the slowest nor among the fastest.
    """
    shown, half = comparison.changes, MOST_ROWS // 2
    if len(shown) > MOST_ROWS:
        between = [chosen] if chosen in shown[half:-half] else []
        shown = (*shown[:half], *filter(None, between), *shown[-half:])
    figure = blank(look.theme, 90 + _ROW_PX * len(shown))
    rows = list(range(len(shown)))
    for row, change in enumerate(shown):
        if isnan(change.noise):
            continue
        ends = [1 / change.noise, change.noise]
        band = {"color": look.tones.grid, "width": _ROW_PX - 8}
        figure.add_scatter(x=ends, y=[row, row], mode="lines", line=band, hoverinfo="skip", showlegend=False)
    for verdict, color in _tones(look).items():
        places = [row for row in rows if shown[row].verdict == verdict]
        ratios = [shown[row].ratio for row in places]
        figure.add_scatter(
            x=[ratio.value for ratio in ratios],
            y=places,
            mode="markers",
            name=verdict,
            marker={"color": color, "size": 8, "symbol": _SYMBOLS.get(verdict, "circle")},
            error_x=error_bars(ratios, color=color),
            hovertext=[_hover(shown[row]) for row in places],
            hoverinfo="text",
            customdata=[written(shown[row]) for row in places],
            # A click chooses a row and fades no other.
            unselected={"marker": {"opacity": 1}},
        )
    figure.add_vline(x=1, line={"color": look.tones.text, "width": 1})
    several = len({change.timing for change in comparison.changes}) > 1
    end = _NAME_LENGTH // 2
    names = []
    for change in shown:
        name = _name(change, timed=several)  # the two ends of a long name tell configs and numbers of GPUs apart
        name = text(name if len(name) <= _NAME_LENGTH else f"{name[:end]}…{name[1 - end :]}")
        names.append(f"<b>{name}</b>" if change is chosen else name)
    name_rows(figure, names, look, range=[len(shown) - 0.4, -0.6])
    figure.update_xaxes(type="log", title_text="time of B over A", tickangle=0, **_ticks(shown))
    # A click anywhere on a row chooses it.
    figure.update_layout(hovermode="y", hoverdistance=_ROW_PX, dragmode="pan")
    figure.update_layout(showlegend=False, margin={"t": 30})
    words = [
        f'<span style="color:{tone}">{_LEGEND.get(verdict, "●")} {verdict}</span>'
        for verdict, tone in _tones(look).items()
        if verdict in VERDICTS[:3] or any(change.verdict == verdict for change in shown)
    ]
    at = {"x": 1, "xref": "paper", "xanchor": "right", "y": 1, "yref": "paper", "yanchor": "bottom", "yshift": 4}
    figure.add_annotation(text="   ".join(words), showarrow=False, font={"size": 12}, **at)
    relative = not all(isnan(change.shift) for change in shown)
    total, few = len(comparison.changes), len(shown) < len(comparison.changes)
    note = look.note(
        "ratios of medians with 95 % intervals. Grey: the noise, within which a ratio is tied. "
        f"{'Each is relative to the unchanged variants of its case. ' if relative else ''}"
        f"{f'{len(shown)} of {total} cells are drawn, the slowest and the fastest.' if few else ''}"
    )
    title = sentence(comparison.changes, comparison.lost)
    return Chart(slug("compare", "ratios"), title, figure, frame_of(comparison.changes), note.strip())


def _tones(look: Look) -> dict[str, str]:
    bad, muted, good = look.tones.bad, look.tones.muted, look.tones.good
    return {"slower": bad, "tied": muted, "faster": good, "drifted": _DRIFTED[look.theme], "unknown": muted}


def _ticks(shown: Sequence[Change]) -> dict[str, Any]:
    """Options of the axis of ratios. A few ticks at equal distances are clear on a logarithmic axis of less than a decade."""
    intervals = [change for change in shown if change.ratio.known and change.ratio.low > 0]
    noises = [1.0, *(change.noise for change in shown if not isnan(change.noise))]
    low = min([1 / noise for noise in noises] + [change.ratio.low for change in intervals])
    high = max(noises + [change.ratio.high for change in intervals])
    return ticks(low, high, lambda value: f"{value:.4g}", logarithmic=high > 10.0 * low, most=4)


def frame_of(changes: Sequence[Change]) -> pd.DataFrame:
    """The changes as a frame: a row for each cell, with ratios, noise and verdict. Times are in nanoseconds."""
    return pd.DataFrame([_row(change) for change in changes])


def facts_of(comparison: Comparison) -> pd.DataFrame:
    """The differences between the recordings, a row for each."""
    return pd.DataFrame([asdict(fact) for fact in comparison.facts], columns=["what", "a", "b", "warning"])


def lost_of(comparison: Comparison) -> pd.DataFrame:
    """The cells that A has and B lost, a row for each, those that fail first."""
    columns = ["workload", "case", "scope", "cache", "variant", "config", "gpus", "a_ns", "of_b", "status", "detail", "fails"]
    rows = [
        {**asdict(each), "scope": each.timing.scope, "cache": each.timing.cache, "a_ns": each.a_ns.value}
        for each in comparison.lost
    ]
    return pd.DataFrame(rows, columns=columns)


def _row(change: Change) -> dict[str, Any]:
    estimates = {"a_ns": change.a_ns, "b_ns": change.b_ns, "ratio": change.ratio}
    return {
        "workload": change.workload,
        "case": change.case,
        "scope": change.timing.scope,
        "cache": change.timing.cache,
        "variant": change.variant,
        "config": change.config,
        "gpus": change.gpus,
        "variant_of_a": change.of_a[0],
        "config_of_a": change.of_a[1],
        **{column: value for name, each in estimates.items() for column, value in each.columns(name).items()},
        "shift": change.shift,
        "noise": change.noise,
        "same_source": change.same_source,
        "n": change.n,
        "verdict": change.verdict,
        "least_effect": change.least_effect,
    }


def _name(change: Change, *, timed: bool = False) -> str:
    timing = f" {change.timing.scope} {change.timing.cache}" if timed else ""
    return f"{change.case} {change.name}{timing}"


def _hover(change: Change) -> str:
    lines = [
        f"<b>{text(_name(change))}</b>",
        text(f"A: {name_of(*change.of_a)} {format_estimate(change.a_ns, format_duration)}"),
        text(f"B: {change.name} {format_estimate(change.b_ns, format_duration)}"),
        f"B over A: {change.ratio.value:.3f} ({change.ratio.low:.3f} to {change.ratio.high:.3f})",
        f"noise: {'not known' if isnan(change.noise) else f'{100 * (change.noise - 1):.1f} %'}; {change.verdict}",
    ]
    return "<br>".join(lines)


#: Samples that are further from the quartiles of their side than so many distances between the quartiles are drawn at the edge.
_FAR: Final = 3.0
_SIDES: Final = ("A", "B")
_CLOUD_NAME_LENGTH: Final = 22


def clouds(samples: pd.DataFrame, change: Change, look: Look) -> Chart:
    """Every sample of A and of B over the rounds on one axis, with the medians and their intervals.

    Args:
        samples: `query.clouds`.
    """
    titles = [
        f"{side}: {text(cut(name_of(*cell), _CLOUD_NAME_LENGTH))}"
        for side, cell in zip(_SIDES, (change.of_a, (change.variant, change.config)), strict=True)
    ]
    figure = make_subplots(
        cols=2, shared_yaxes=True, horizontal_spacing=0.03, subplot_titles=titles, figure=blank(look.theme, 270)
    )
    low, high = _axis(samples)
    reference = median_interval(samples.loc[samples["side"] == "A", "duration_ns"])[0]
    sentences = []
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
            hovertext=[
                f"round {number}: {text(format_duration(ns))}"
                for number, ns in zip(own["round"], own["duration_ns"], strict=True)
            ],
            hoverinfo="text",
            row=1,
            col=column,
        )
        band = {"y0": _percent(ends[0], reference), "y1": _percent(ends[1], reference)}
        figure.add_hrect(**band, fillcolor=color, opacity=0.2, line_width=0, row=1, col=column)
        figure.add_hline(y=_percent(median, reference), line={"color": color, "width": 1.5}, row=1, col=column)
        interval = format_interval(*map(format_duration, ends))
        beyond = f", {outside.sum()} beyond the axis" if outside.any() else ""
        sentences.append(f"{side}: {format_duration(median)}, {interval_kind(len(own))} {interval}, n = {len(own)}{beyond}.")
    figure.update_xaxes(title_text="round", nticks=5)
    words = f"from A's median of {format_duration(reference)}"
    figure.update_yaxes(ticksuffix=" %", tickformat="+.3~g", title_text=words, row=1, col=1)
    edge = 0.04 * (high - low)
    figure.update_yaxes(range=[_percent(low - edge, reference), _percent(high + edge, reference)])
    figure.update_annotations(font={"size": 12})
    figure.update_layout(margin={"t": 26})
    how = timing(change.timing.scope, change.timing.cache, change.gpus)
    note = look.note(f"{how}; line and band: median and its interval. {' '.join(sentences)}")
    return Chart(slug("compare", "samples", *change.key), title(change), figure, samples, note)


def title(change: Change) -> str:
    """`n=512 v03_tile: B takes 1.043 (1.040 to 1.046) times as long as A; slower`."""
    ratio = change.ratio
    figures = f"{ratio.value:.3f} ({ratio.low:.3f} to {ratio.high:.3f})"
    return f"{change.workload} {change.case} {change.name}: B takes {figures} times as long as A; {change.verdict}"


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
