"""Times of variants over runs, equally spaced, with their levels and steps and what each run was recorded with."""

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from warpladder.dashboard.compare.differences import value_text
from warpladder.dashboard.core.numbers import (
    format_duration,
    format_ends,
    format_estimate,
    format_half_width,
    format_percent,
    significant,
)
from warpladder.dashboard.core.steps import Level
from warpladder.dashboard.ui.template import ABOVE, Chart, Look, blank, error_bars, samples, slug, text, ticks
from warpladder.dashboard.views.compare.trends.query import (
    Series,
    Step,
    Trends,
    cause,
    change_words,
    fails,
    short_hash,
)
from warpladder.data.words import counted

_HEIGHT: Final = 300
_LANE_PX: Final = 20
#: Of a page: the plot, a letter in a lane, and a label of the axis.
_PLOT_PX: Final = 800
_LETTER_PX: Final = 6.6
_LABEL_PX: Final = 84
_SPARKS: Final = 60
#: Half of the height of a line of `times`.
SPARK_PERCENT: Final = 25.0
#: More runs than this have small marks.
_MANY: Final = 80


def trend(trends: Trends, shown: Sequence[Series], look: Look) -> Chart:
    """The times of some variants, run by run, with their levels and the steps between them.

    The custom data of a point is the place of its run in `trends.runs`.

    Args:
        shown: at least one of `trends.series`. A single series is drawn with the noise around its levels, and
            with lanes of the software of its runs. Several are drawn over their first levels.
    """
    lanes = _lanes(trends, shown[0]) if len(shown) == 1 else {}
    figure = blank(look.theme, _HEIGHT + _LANE_PX * len(lanes))
    for series in shown:
        _draw(figure, trends, series, look, alone=len(shown) == 1)
    _axes(figure, trends, shown, len(lanes))
    _draw_lanes(figure, lanes, len(trends.runs), look)
    figure.update_layout(legend=ABOVE, showlegend=len(shown) > 1, margin={"t": 34, "r": 44})
    frame = pd.DataFrame([row for series in shown for row in _rows(trends, series)])
    name = slug("trends", trends.workload, trends.case, trends.timing.scope, trends.timing.cache)
    return Chart(name, _title(trends, shown), figure, frame, _note(trends, shown, look))


def frame_of(trends: Trends) -> pd.DataFrame:
    """The variants as a frame: a row for each, with its last time, its change and its last step.

    Returns:
        The columns `variant`, `runs`, `times` (its last medians over their median, in percent more, cut at `SPARK_PERCENT`), `last_us`, `half_width` (text), `since_first` and `step` (in
        percent), `step_interval`, `when` and `cause`; null where there is no step.
    """
    return pd.DataFrame([_row(trends, series) for series in trends.series])


def _row(trends: Trends, series: Series) -> dict[str, Any]:
    last = series.last.time_ns
    row = {
        "variant": series.name,
        "runs": len(series.points),
        "times": _spark(series),
        "last_us": last.value / 1e3,
        "half_width": format_half_width(last.value, last.low, last.high),
        "since_first": 100 * (series.since_first.value - 1),
        "when": None,
        "step": math.nan,
        "step_interval": "",
        "cause": "one run" if len(series.points) == 1 else "unknown" if series.is_unknown else "no change beyond noise",
    }
    if series.failing:
        row["when"] = trends.runs[series.failing[0][0]].started_at
        row["cause"] = fails(series)
    elif series.steps:
        step = series.steps[-1]
        row["when"] = trends.runs[series.points[step.place].run].started_at
        row["step"] = 100 * (step.ratio.value - 1)
        row["step_interval"] = _percents(step)
        row["cause"] = f"{cause(series, step)}{one_run(step)}"
    return row


def _spark(series: Series) -> list[float]:
    """The last medians over their median, in percent more. All rows of a table have one scale, on which noise is a flat line."""
    times = np.array([point.time_ns.value for point in series.points[-_SPARKS:]])
    percents: list[float] = np.clip(100 * (times / np.median(times) - 1), -SPARK_PERCENT, SPARK_PERCENT).tolist()
    return percents


def one_run(step: Step) -> str:
    """A warning about a step that a single run shows."""
    return " (one run so far)" if step.runs == 1 else ""


def step_words(step: Step) -> str:
    """`4.1 % slower (+3.2 to +5.0 %)`."""
    return f"{change_words(step.ratio.value)} ({_percents(step)}){one_run(step)}"


def _percents(step: Step) -> str:
    return format_ends(step.ratio, lambda ratio: f"{100 * (ratio - 1):+.1f} %")


def _draw(figure: go.Figure, trends: Trends, series: Series, look: Look, *, alone: bool) -> None:
    style, unit = look.style(trends.workload, series.variant), _unit(series, alone=alone)
    if alone:
        for level in [] if math.isnan(series.noise) else series.levels:
            low, high = series.points[level.first].run - 0.4, series.points[level.last].run + 0.4
            (bottom, top), grey = _band(series, level), {"fillcolor": look.tones.grid, "line": {"width": 0}}
            corners = {"x": [low, high, high, low], "y": [bottom, bottom, top, top], "fill": "toself", **grey}
            figure.add_scatter(mode="lines", hoverinfo="skip", showlegend=False, **corners)
    for level in series.levels:
        ends = [series.points[level.first].run - 0.4, series.points[level.last].run + 0.4]
        line = {"color": style.color, "width": 2}
        figure.add_scatter(x=ends, y=[level.time_ns * unit] * 2, mode="lines", line=line, hoverinfo="skip", showlegend=False)
    times = [point.time_ns.times(unit) for point in series.points]
    figure.add_scatter(
        x=[point.run for point in series.points],
        y=[time.value for time in times],
        customdata=[point.run for point in series.points],
        mode="markers",
        name=text(series.name),
        marker={"color": style.color, "size": 7 if len(trends.runs) <= _MANY else 4, "symbol": style.symbol},
        error_y=error_bars(times, color=style.color),
        hovertext=[_hover(trends, series, place) for place in range(len(series.points))],
        hoverinfo="text",
        selected={"marker": {"size": 13}},
        unselected={"marker": {"opacity": 0.8}},
    )
    for step in series.steps:
        _mark(figure, series, step, len(trends.runs), look, alone=alone)
    for place, status in series.failed if alone else ():
        where = {"x": place, "y": 0, "yref": "y domain", "yanchor": "bottom", "showarrow": False}
        figure.add_annotation(text="✗", hovertext=status.replace("_", " "), font={"size": 14, "color": look.tones.bad}, **where)


def _unit(series: Series, *, alone: bool) -> float:
    """The height of a nanosecond in the chart: several variants are drawn over their first levels."""
    return 1.0 if alone else 1 / series.levels[0].time_ns


def _band(series: Series, level: Level) -> tuple[float, float]:
    """The times that 95 % of the runs of a level have within the noise between runs.

    The noise of a pair of runs is larger by the square root of 2.
    """
    factor = series.noise ** math.sqrt(0.5)
    return level.time_ns / factor, level.time_ns * factor


def _mark(figure: go.Figure, series: Series, step: Step, runs: int, look: Look, *, alone: bool) -> None:
    """A line at a step with its size above the plot; among several variants the size alone, beside the new level."""
    color = look.tones.bad if step.ratio.value > 1 else look.tones.good
    size, font = f"<b>{100 * (step.ratio.value - 1):+.1f} %</b>", {"size": 12, "color": color}
    old, new = series.points[step.place - 1], series.points[step.place]
    if alone:
        place = (old.run + new.run) / 2
        figure.add_vline(x=place, line={"color": color, "width": 1.5, "dash": "solid" if step.new_source else "dot"})
        figure.add_annotation(x=place, y=1, yref="paper", yanchor="bottom", text=size, font=font, showarrow=False)
    else:
        # Above the points that the words would cover.
        covered = [point.time_ns.high for point in series.points if abs(point.run - new.run) <= runs * _LABEL_PX / 2 / _PLOT_PX]
        where = {"x": [new.run], "y": [max(covered) * _unit(series, alone=False)], "textposition": "top center"}
        figure.add_scatter(**where, mode="text", text=[size], textfont=font, hoverinfo="skip", showlegend=False)


def _axes(figure: go.Figure, trends: Trends, shown: Sequence[Series], lanes: int) -> None:
    alone = len(shown) == 1
    units = [(series, _unit(series, alone=alone)) for series in shown]
    ends = [end * unit for series, unit in units for point in series.points for end in (point.time_ns.low, point.time_ns.high)]
    if alone and not math.isnan(shown[0].noise):
        ends += [end for level in shown[0].levels for end in _band(shown[0], level)]
    low, high = min(ends), max(ends)
    labelled = _labelled(trends, shown)
    figure.update_xaxes(
        range=[-0.6, len(trends.runs) - 0.4],
        tickvals=labelled,
        ticktext=[f"{run.started_at:%b %d %H:%M}<br>{text(run.commit)}" for run in map(trends.runs.__getitem__, labelled)],
        showgrid=False,
        anchor="y2" if lanes else "y",
        ticklabeloverflow="allow",
        tickangle=0,
        zeroline=False,
    )
    share = _LANE_PX * lanes / (_HEIGHT + _LANE_PX * lanes - 90)
    room = (high - low) * 0.05 or high * 0.01
    figure.update_yaxes(
        domain=[share, 1],
        range=[low - room, high + room],
        title_text="" if alone else "time over its first level",
        **ticks(low, high, _finely(high - low) if alone else "{:.2f}".format, logarithmic=False),
    )


def _finely(span: float) -> Callable[[float], str]:
    """Writes a time with as many digits as tell the ticks of an axis apart that spans so many nanoseconds."""

    def write(value: float) -> str:
        number, _, unit = format_duration(value).partition(" ")
        if not unit or value <= 0 or span <= 0:
            return number
        factor = 10.0 ** round(math.log10(float(number) / value))
        return f"{significant(value * factor, max(3, 2 + math.ceil(math.log10(value / span))))} {unit}"

    return write


def _labelled(trends: Trends, shown: Sequence[Series]) -> list[int]:
    """The runs that the axis names: those with a step, the last and the first one, then others as far as there is room."""
    least = max(1, math.ceil(len(trends.runs) * _LABEL_PX / _PLOT_PX))
    stepped = [series.points[step.place].run for series in shown for step in reversed(series.steps)]
    candidates = [*stepped, len(trends.runs) - 1, 0, *range(0, len(trends.runs), least)]
    places: list[int] = []
    for place in candidates:
        if all(abs(place - other) >= least for other in places):
            places.append(place)
    return sorted(places)


def _lanes(trends: Trends, series: Series) -> dict[str, list[str]]:
    """What each run was recorded with, of what is not the same in all runs: the variant's source, the driver, CUDA."""
    sources = {point.run: short_hash(point.source) for point in series.points}
    every = {
        "source": [sources.get(place, "") for place in range(len(trends.runs))],
        "driver": [value_text(run.info["driver_version"]) for run in trends.runs],
        "CUDA": [value_text(run.info["cuda_version"]) for run in trends.runs],
    }
    return {name: values for name, values in every.items() if name == "source" or len(set(values)) > 1}


def _draw_lanes(figure: go.Figure, lanes: dict[str, list[str]], runs: int, look: Look) -> None:
    if not lanes:
        return
    height = _HEIGHT + _LANE_PX * len(lanes) - 90
    axis = {"domain": [0, _LANE_PX * len(lanes) / height - 0.03], "range": [len(lanes) - 0.5, -0.5], "showgrid": False}
    names = {"tickvals": list(range(len(lanes))), "ticktext": list(lanes), "ticks": "", "zeroline": False, "fixedrange": True}
    figure.update_layout(yaxis2={**axis, **names, "anchor": "x"})
    for row, values in enumerate(lanes.values()):
        for number, (first, end, value) in enumerate(_stretches(values)):
            figure.add_scatter(
                x=[first - 0.48, end - 0.52],
                y=[row, row],
                yaxis="y2",
                mode="lines",
                line={"color": look.tones.region[number % 2] if value else "rgba(0,0,0,0)", "width": _LANE_PX - 4},
                hoverinfo="skip",
                showlegend=False,
            )
            if len(value) * _LETTER_PX < (end - first) * _PLOT_PX / runs:
                middle = (first + end - 1) / 2
                figure.add_annotation(x=middle, y=row, yref="y2", text=text(value), font={"size": 11}, showarrow=False)


def _stretches(values: Sequence[str]) -> list[tuple[int, int, str]]:
    """Neighbours of equal value: the first, the end, and the value."""
    starts = [place for place, value in enumerate(values) if place == 0 or value != values[place - 1]]
    return [(first, end, values[first]) for first, end in zip(starts, [*starts[1:], len(values)], strict=True)]


def _title(trends: Trends, shown: Sequence[Series]) -> str:
    if len(shown) > 1:
        many = f"{len(shown)} variants of {trends.workload}, {trends.case}, over {len(trends.runs)} runs"
        return f"{many}, each over its first level"
    series = shown[0]
    if series.failing:
        return f"{series.name} {fails(series)}"
    if not series.steps and series.is_unknown:
        return f"{series.name}: too little is known to tell a change over {counted(len(series.points), 'run')}"
    if not series.steps:
        return f"{series.name}: no change beyond the noise over {len(series.points)} runs"
    step = series.steps[-1]
    when = trends.runs[series.points[step.place].run].started_at
    return f"{series.name}: {change_words(step.ratio.value)} since {when:%Y-%m-%d %H:%M}{one_run(step)}"


def _note(trends: Trends, shown: Sequence[Series], look: Look) -> str:
    n = samples(point.n for series in shown for point in series.points)
    words = (
        f"{trends.timing.label(on_gpu=look.on_gpu)}; {trends.runs[0].info['collector']}; medians with intervals; {n}; "
        "runs are equally spaced."
    )
    if len(shown) == 1:
        noise = format_percent(100 * (shown[0].noise - 1))
        words += (
            " How far two runs without a change differ is not known."
            if math.isnan(shown[0].noise)
            else f" Two runs without a change differ by up to {noise}; grey: one run around its level."
        )
        words += " Solid line: a step with a new source; dotted: with the same source, a drift."
        words += " ✗: the run failed or is wrong." if shown[0].failed else ""
    return look.note(words)


def _hover(trends: Trends, series: Series, place: int) -> str:
    point = series.points[place]
    run = trends.runs[point.run]
    lines = [
        f"<b>{text(run.title)}</b>",
        f"{run.started_at:%Y-%m-%d %H:%M} UTC" + (f" · commit {text(run.commit)}" if run.commit else ""),
        f"{text(series.name)}: <b>{text(format_estimate(point.time_ns, format_duration))}</b> · n = {point.n}",
        f"source {text(short_hash(point.source))}",
    ]
    lines += [f"{text(step_words(step))}: {text(cause(series, step))}" for step in series.steps if step.place == place]
    return "<br>".join(lines)


def _rows(trends: Trends, series: Series) -> list[dict[str, Any]]:
    steps = {step.place: step for step in series.steps}
    levels = {place: level.time_ns for level in series.levels for place in range(level.first, level.last + 1)}
    rows = []
    for place, point in enumerate(series.points):
        run, step = trends.runs[point.run], steps.get(place)
        rows.append(
            {
                "workload": trends.workload,
                "case": trends.case,
                "scope": trends.timing.scope,
                "cache": trends.timing.cache,
                "variant": series.variant,
                "config": series.config,
                "run": run.info["run_id"],
                "started_at": run.started_at,
                "commit": run.commit,
                "driver": value_text(run.info["driver_version"]),
                "source": short_hash(point.source),
                **point.time_ns.columns("median_ns"),
                "n": point.n,
                "level_ns": levels[place],
                "step": step.ratio.value if step else math.nan,
                "cause": cause(series, step) if step else "",
            }
        )
    return rows
