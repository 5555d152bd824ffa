"""Times of a variant over runs, equally spaced, with their levels and steps."""

import math
from collections.abc import Callable
from typing import Any, Final

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
from warpladder.dashboard.ui.template import Chart, Look, blank, error_bars, samples, slug, text, ticks
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
#: Of a page: the plot, and a label of the axis.
_PLOT_PX: Final = 800
_LABEL_PX: Final = 84


def trend(trends: Trends, series: Series, look: Look) -> Chart:
    """The times of a variant, run by run, with its levels, the noise around them and the steps between them."""
    figure = blank(look.theme, _HEIGHT)
    _draw(figure, trends, series, look)
    _lay_axes(figure, trends, series)
    figure.update_layout(showlegend=False, margin={"t": 34, "r": 44})
    frame = pd.DataFrame(_rows(trends, series))
    name = slug("trends", trends.workload, trends.case, trends.timing.scope, trends.timing.cache)
    return Chart(name, _title(trends, series), figure, frame, _note(trends, series, look))


def frame_of(trends: Trends) -> pd.DataFrame:
    """The variants as a frame: a row for each, with its last time, its change and its last step.

    Returns:
        The columns `variant`, `runs`, `last_us`, `half_width` (text), `since_first` and `step` (in
        percent), `step_interval`, `when` and `cause`; null where there is no step.
    """
    return pd.DataFrame([_row(trends, series) for series in trends.series])


def _row(trends: Trends, series: Series) -> dict[str, Any]:
    last = series.last.time_ns
    row = {
        "variant": series.name,
        "runs": len(series.points),
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


def one_run(step: Step) -> str:
    """A warning about a step that a single run shows."""
    return " (one run so far)" if step.runs == 1 else ""


def step_words(step: Step) -> str:
    """`4.1 % slower (+3.2 to +5.0 %)`."""
    return f"{change_words(step.ratio.value)} ({_percents(step)}){one_run(step)}"


def _percents(step: Step) -> str:
    return format_ends(step.ratio, lambda ratio: f"{100 * (ratio - 1):+.1f} %")


def _draw(figure: go.Figure, trends: Trends, series: Series, look: Look) -> None:
    style = look.style(trends.workload, series.variant)
    for level in series.levels:
        low, high = series.points[level.first].run - 0.4, series.points[level.last].run + 0.4
        if not math.isnan(series.noise):
            (bottom, top), grey = _band(series, level), {"fillcolor": look.tones.grid, "line": {"width": 0}}
            corners = {"x": [low, high, high, low], "y": [bottom, bottom, top, top], "fill": "toself", **grey}
            figure.add_scatter(mode="lines", hoverinfo="skip", **corners)
        line = {"color": style.color, "width": 2}
        figure.add_scatter(x=[low, high], y=[level.time_ns] * 2, mode="lines", line=line, hoverinfo="skip")
    times = [point.time_ns for point in series.points]
    figure.add_scatter(
        x=[point.run for point in series.points],
        y=[time.value for time in times],
        mode="markers",
        marker={"color": style.color, "size": 7, "symbol": style.symbol},
        error_y=error_bars(times, color=style.color),
        hovertext=[_hover(trends, series, place) for place in range(len(series.points))],
        hoverinfo="text",
    )
    for step in series.steps:
        _mark(figure, series, step, look)
    for place, status in series.failed:
        where = {"x": place, "y": 0, "yref": "y domain", "yanchor": "bottom", "showarrow": False}
        figure.add_annotation(text="✗", hovertext=status.replace("_", " "), font={"size": 14, "color": look.tones.bad}, **where)


def _band(series: Series, level: Level) -> tuple[float, float]:
    """The times that 95 % of the runs of a level have within the noise between runs.

    The noise of a pair of runs is larger by the square root of 2.
    """
    factor = series.noise ** math.sqrt(0.5)
    return level.time_ns / factor, level.time_ns * factor


def _mark(figure: go.Figure, series: Series, step: Step, look: Look) -> None:
    """A line at a step with its size above the plot."""
    color = look.tones.bad if step.ratio.value > 1 else look.tones.good
    size, font = f"<b>{100 * (step.ratio.value - 1):+.1f} %</b>", {"size": 12, "color": color}
    place = (series.points[step.place - 1].run + series.points[step.place].run) / 2
    figure.add_vline(x=place, line={"color": color, "width": 1.5, "dash": "solid" if step.new_source else "dot"})
    figure.add_annotation(x=place, y=1, yref="paper", yanchor="bottom", text=size, font=font, showarrow=False)


def _lay_axes(figure: go.Figure, trends: Trends, series: Series) -> None:
    ends = [end for point in series.points for end in (point.time_ns.low, point.time_ns.high)]
    if not math.isnan(series.noise):
        ends += [end for level in series.levels for end in _band(series, level)]
    low, high = min(ends), max(ends)
    labelled = _labelled(trends, series)
    figure.update_xaxes(
        range=[-0.6, len(trends.runs) - 0.4],
        tickvals=labelled,
        ticktext=[f"{run.started_at:%b %d %H:%M}<br>{text(run.commit)}" for run in map(trends.runs.__getitem__, labelled)],
        showgrid=False,
        ticklabeloverflow="allow",
        tickangle=0,
        zeroline=False,
    )
    room = (high - low) * 0.05 or high * 0.01
    figure.update_yaxes(range=[low - room, high + room], **ticks(low, high, _finely(high - low), logarithmic=False))


def _finely(span: float) -> Callable[[float], str]:
    """Writes a time with as many digits as tell the ticks of an axis apart that spans so many nanoseconds."""

    def write(value: float) -> str:
        number, _, unit = format_duration(value).partition(" ")
        if not unit or value <= 0 or span <= 0:
            return number
        factor = 10.0 ** round(math.log10(float(number) / value))
        return f"{significant(value * factor, max(3, 2 + math.ceil(math.log10(value / span))))} {unit}"

    return write


def _labelled(trends: Trends, series: Series) -> list[int]:
    """The runs that the axis names: those with a step, the last and the first one, then others as far as there is room."""
    least = max(1, math.ceil(len(trends.runs) * _LABEL_PX / _PLOT_PX))
    stepped = [series.points[step.place].run for step in reversed(series.steps)]
    candidates = [*stepped, len(trends.runs) - 1, 0, *range(0, len(trends.runs), least)]
    places: list[int] = []
    for place in candidates:
        if all(abs(place - other) >= least for other in places):
            places.append(place)
    return sorted(places)


def _title(trends: Trends, series: Series) -> str:
    if series.failing:
        return f"{series.name} {fails(series)}"
    if not series.steps and series.is_unknown:
        return f"{series.name}: too little is known to tell a change over {counted(len(series.points), 'run')}"
    if not series.steps:
        return f"{series.name}: no change beyond the noise over {len(series.points)} runs"
    step = series.steps[-1]
    when = trends.runs[series.points[step.place].run].started_at
    return f"{series.name}: {change_words(step.ratio.value)} since {when:%Y-%m-%d %H:%M}{one_run(step)}"


def _note(trends: Trends, series: Series, look: Look) -> str:
    noise = format_percent(100 * (series.noise - 1))
    told = (
        "How far two runs without a change differ is not known."
        if math.isnan(series.noise)
        else f"Two runs without a change differ by up to {noise}; grey: one run around its level."
    )
    return look.note(
        f"{trends.timing.label(on_gpu=look.on_gpu)}; {trends.runs[0].info['collector']}; medians with intervals; "
        f"{samples(point.n for point in series.points)}; runs are equally spaced. {told} Solid line: a step with a new source; dotted: with "
        f"the same source, a drift.{' ✗: the run failed or is wrong.' if series.failed else ''}"
    )


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
