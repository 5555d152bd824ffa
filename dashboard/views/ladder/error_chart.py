"""What speed costs in accuracy: error against time, on logarithmic axes."""

import math
from typing import Any, Final

import pandas as pd
import plotly.graph_objects as go

from warpladder.dashboard.core.estimate import Estimate
from warpladder.dashboard.core.precision import named
from warpladder.dashboard.ui.numbers import format_duration, format_ends, format_error, format_ratio
from warpladder.dashboard.ui.template import Chart, Look, blank, hover, measured, slug, text
from warpladder.dashboard.ui.ticks import ticks

_HEIGHT: Final = 410
#: Parts of the data's own span, in decades, that the axes have beyond it; on the left stand the names of the front.
_LEFT: Final = 0.5
_ASIDE: Final = 0.12
#: Decades that an axis has at least, so that some tick is on it.
_LEAST_SPAN: Final = 1.0
#: Shares of the plot that a name takes, to leave out one that would cover another.
_NAME_WIDE, _NAME_HIGH = 0.33, 0.06
#: Where an error of nought stands: this many times below the least of the others.
_NOUGHT: Final = 4.0


def error_and_time(frame: pd.DataFrame, look: Look) -> Chart:
    """Error against time of each variant of one case, with the front of those that no other beats in both.

    Args:
        frame: `core.precision.error_and_time`, not empty.
    """
    positive = frame.loc[frame["rel_l2_error"] > 0, "rel_l2_error"]
    nought = float(positive.min()) / _NOUGHT if len(positive) else 1e-9
    frame = frame.assign(shown=frame["rel_l2_error"].where(frame["rel_l2_error"] > 0, nought))
    left, right = _reach(frame["median_ns"], _LEFT)
    low, high = _reach(frame["shown"], _ASIDE * 2)
    figure = blank(look.theme, _HEIGHT)
    front = frame[frame["on_front"]]
    _draw_front(figure, front, 10**right, 10**high, look)
    for row in frame.to_dict("records"):
        _draw_point(figure, row, look)
    _name_front(figure, front, (left, right, low, high), look)
    scale = ticks(10**low, 10**high, _tick, logarithmic=True, most=8)
    if (frame["rel_l2_error"] == 0).any():
        kept = [
            (value, words) for value, words in zip(scale["tickvals"], scale["ticktext"], strict=True) if value > nought * 1.5
        ]
        scale |= {"tickvals": [nought, *(value for value, _ in kept)], "ticktext": ["0", *(words for _, words in kept)]}
    figure.update_xaxes(
        type="log", range=[left, right], title_text="median time, log scale: left is faster",
        **ticks(10**left, 10**right, format_duration, logarithmic=True),
    )  # fmt: skip
    figure.update_yaxes(type="log", range=[low, high], title_text="relative error, log scale: down is more exact", **scale)
    figure.update_layout(legend={"y": 1, "yanchor": "top", "x": 1.01, "xanchor": "left"})
    first = frame.iloc[0]
    note = measured(
        frame, look.device, "Each variant with its fastest config.",
        "Error: the relative one (L2 norm) of all elements against float64, on inputs of the run's seed.",
        "Front: no other variant is both as fast and as exact.",
    )  # fmt: skip
    name = slug("error", first["workload"], first["case"], first["scope"], first["cache"])
    return Chart(name, _title(front), figure, frame.drop(columns="shown"), note)


def _tick(error: float) -> str:
    """`1e-4`: ticks stand at round numbers."""
    return format_error(error).replace(".0e", "e")


def _reach(values: "pd.Series[float]", before: float) -> tuple[float, float]:
    """Ends of a logarithmic axis, as powers of ten: some of the values' span before them, a little after."""
    low, high = math.log10(values.min()), math.log10(values.max())
    missing = max(0.0, _LEAST_SPAN - (high - low))
    span = high - low + missing
    return low - missing / 2 - before * span, high + missing / 2 + _ASIDE * span


def _draw_front(figure: go.Figure, front: pd.DataFrame, right: float, high: float, look: Look) -> None:
    """Steps from one to the next: to the right and above of them, one of the front is better in both."""
    times, errors = front["median_ns"].tolist(), front["shown"].tolist()
    figure.add_scatter(
        x=[times[0], *times, right], y=[high, *errors, errors[-1]], mode="lines", name="front", hoverinfo="skip", legendrank=2000,
        line={"color": look.tones.good, "width": 1.5, "dash": "dot", "shape": "hv"},
    )  # fmt: skip


def _draw_point(figure: go.Figure, row: dict[Any, Any], look: Look) -> None:
    style = look.style(row["workload"], row["variant"])
    ends = format_ends(Estimate.median_ns(row), format_duration)
    figure.add_scatter(
        x=[row["median_ns"]], y=[row["shown"]], mode="markers", name=text(named(row["variant"], row["precision"])),
        marker={"symbol": style.symbol, "size": 10, "color": style.color},
        error_x={
            "type": "data", "symmetric": False, "array": [row["high_ns"] - row["median_ns"]],
            "arrayminus": [row["median_ns"] - row["low_ns"]], "thickness": 1, "width": 3,
        },
        hoverinfo="text", hovertext=hover(row, ("median", f"{format_duration(row['median_ns'])} ({ends})")),
    )  # fmt: skip


def _name_front(figure: go.Figure, front: pd.DataFrame, reach: tuple[float, ...], look: Look) -> None:
    """Names left of the points and below, where no other point can be; the legend has them all."""
    left, right, low, high = reach
    written: list[tuple[float, float]] = []
    for row in front.to_dict("records"):
        x, y = math.log10(row["median_ns"]), math.log10(row["shown"])
        place = (x - left) / (right - left), (y - low) / (high - low)
        if any(abs(place[0] - other[0]) < _NAME_WIDE and abs(place[1] - other[1]) < _NAME_HIGH for other in written):
            continue
        written.append(place)
        figure.add_annotation(
            x=x, y=y, text=f"<b>{text(named(row['variant'], row['precision']))}</b>  {text(format_error(row['rel_l2_error']))}",
            showarrow=False, xanchor="right", yanchor="top", xshift=-6, yshift=-2, font={"size": 12, "color": look.tones.text},
        )  # fmt: skip


def _title(front: pd.DataFrame) -> str:
    fastest, exact = front.iloc[0], front.iloc[-1]
    where = f"{fastest['workload']}, {fastest['case']}"
    name = named(fastest["variant"], fastest["precision"])
    error = format_error(fastest["rel_l2_error"])
    if len(front) == 1:
        return f"{where}: {name} is the fastest and the most exact, with a relative error of {error}"
    ratio = format_ratio(exact["median_ns"] / fastest["median_ns"])
    return (
        f"{where}: {name} is the fastest, with a relative error of {error}; {named(exact['variant'], exact['precision'])} takes {ratio} "
        f"its time, with {format_error(exact['rel_l2_error'])}"
    )
