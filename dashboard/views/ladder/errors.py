"""The errors of the variants of one case over their times."""

import math
from typing import Final

import pandas as pd
import plotly.graph_objects as go

from warpladder.dashboard.compare.within_run import with_precision
from warpladder.dashboard.core.cell import Cell, records
from warpladder.dashboard.core.cells import passed_over, sentence
from warpladder.dashboard.core.numbers import format_duration, format_error, format_estimate, format_ratio
from warpladder.dashboard.ui.template import BESIDE, Chart, Look, blank, error_bars, hover, measured, slug, text, ticks

#: Room before and after the points on an axis, as a part of their span in decades. The names of the front are on the left.
_LEFT_FACTOR: Final = 0.6
_ASIDE: Final = 0.12
#: The fewest decades of an axis, so that some tick is on it.
_LEAST_SPAN: Final = 1.0
#: Width and height of a name as parts of the plot. A name that would cover another is left out.
_NAME_WIDE, _NAME_HIGH = 0.33, 0.06
#: An error of 0 is drawn at the least other error divided by this.
_ZERO: Final = 4.0


def error_and_time(frame: pd.DataFrame, look: Look) -> Chart:
    """Error against time of each variant of one case, with the front: the variants that no other beats in both.

    Args:
        frame: `query.error_and_time`, not empty.
    """
    positive = frame.loc[frame["rel_l2_error"] > 0, "rel_l2_error"]
    zero = float(positive.min()) / _ZERO if len(positive) else 1e-9
    frame = frame.assign(shown=frame["rel_l2_error"].where(frame["rel_l2_error"] > 0, zero))
    left, right = _reach(frame["median_ns"], _LEFT_FACTOR)
    low, high = _reach(frame["shown"], _ASIDE * 2)
    figure = blank(look.theme, 410)
    points = records(frame)
    front = [point for point in points if point.on_front]
    if front:
        # Steps, right of and above which a variant of the front is better in both.
        times, shown = [point.median_ns.value for point in front], [point.shown for point in front]
        x, y = [times[0], *times, 10**right], [10**high, *shown, shown[-1]]
        line = {"color": look.tones.good, "width": 1.5, "dash": "dot", "shape": "hv"}
        figure.add_scatter(x=x, y=y, mode="lines", name="front", hoverinfo="skip", legendrank=2000, line=line)
    for point in points:
        _draw_point(figure, point, look)
    _name_front(figure, front, (left, right, low, high), look)
    scale = ticks(10**low, 10**high, lambda error: format_error(error).replace(".0e", "e"), logarithmic=True, most=8)
    if (frame["rel_l2_error"] == 0).any():
        scale_ticks = zip(scale["tickvals"], scale["ticktext"], strict=True)
        shown_ticks = [(value, words) for value, words in scale_ticks if value > zero * 1.5]
        scale |= {
            "tickvals": [zero, *(value for value, _ in shown_ticks)],
            "ticktext": ["0", *(words for _, words in shown_ticks)],
        }
    time_ticks = ticks(10**left, 10**right, format_duration, logarithmic=True)
    figure.update_xaxes(type="log", range=[left, right], title_text="median time, log scale: left is faster", **time_ticks)
    figure.update_yaxes(type="log", range=[low, high], title_text="relative error, log scale: down is more exact", **scale)
    figure.update_layout(legend=BESIDE)
    note = measured(
        frame,
        look.device,
        "Each variant with its fastest config.",
        "Error: relative error (L2 norm) of all elements against float64, for the inputs of the run's seed.",
        "Front: no other variant is both as fast and as exact.",
        sentence(passed_over(frame, frame[frame["on_front"]])),
    )
    first = points[0]
    name = slug("error", first.workload, first.case, first.scope, first.cache)
    title = _error_title(front) if front else f"{first.workload}, {first.case}: no variant may be called best"
    return Chart(name, title, figure, frame.drop(columns="shown"), note)


def _reach(values: "pd.Series[float]", before: float) -> tuple[float, float]:
    """Ends of a logarithmic axis as powers of ten.

    Args:
        before: room before the values, as a part of their span.
    """
    low, high = math.log10(values.min()), math.log10(values.max())
    missing = max(0.0, _LEAST_SPAN - (high - low))
    span = high - low + missing
    return low - missing / 2 - before * span, high + missing / 2 + _ASIDE * span


def _draw_point(figure: go.Figure, point: Cell, look: Look) -> None:
    style = look.style(point.workload, point.variant)
    figure.add_scatter(
        x=[point.median_ns.value],
        y=[point.shown],
        mode="markers",
        name=text(with_precision(point.variant, point.precision)),
        marker={"symbol": style.symbol, "size": 10, "color": style.color},
        error_x=error_bars([point.median_ns]),
        hoverinfo="text",
        hovertext=hover(point, ("median", format_estimate(point.median_ns, format_duration))),
    )


def _name_front(figure: go.Figure, front: list[Cell], reach: tuple[float, ...], look: Look) -> None:
    """Write names left of and below the points, where no other point can be. The legend has all names."""
    left, right, low, high = reach
    written: list[tuple[float, float]] = []
    for point in front:
        x, y = math.log10(point.median_ns.value), math.log10(point.shown)
        place = (x - left) / (right - left), (y - low) / (high - low)
        if any(abs(place[0] - other[0]) < _NAME_WIDE and abs(place[1] - other[1]) < _NAME_HIGH for other in written):
            continue
        written.append(place)
        words = f"<b>{text(with_precision(point.variant, point.precision))}</b>  {text(format_error(point.rel_l2_error))}"
        font = {"size": 12, "color": look.tones.text}
        side = {"xanchor": "right", "yanchor": "top", "xshift": -6, "yshift": -2}
        figure.add_annotation(x=x, y=y, text=words, showarrow=False, font=font, **side)


def _error_title(front: list[Cell]) -> str:
    fastest, exact = front[0], front[-1]
    where = f"{fastest.workload}, {fastest.case}"
    name = with_precision(fastest.variant, fastest.precision)
    error = format_error(fastest.rel_l2_error)
    if len(front) == 1:
        return f"{where}: {name} takes the least time and is the most exact, with a relative error of {error}"
    ratio = format_ratio(exact.median_ns.value / fastest.median_ns.value)
    return (
        f"{where}: {name} takes the least time, with a relative error of {error}; "
        f"{with_precision(exact.variant, exact.precision)} takes {ratio} its time, with {format_error(exact.rel_l2_error)}"
    )
