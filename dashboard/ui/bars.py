"""Charts of horizontal bars, with a row for each name from the top, charts side by side, and a heatmap of ranks over iterations."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from warpladder.dashboard.core.numbers import format_duration
from warpladder.dashboard.ui.template import ABOVE, Look, blank, hatch, name_rows, stack_shares, text, ticks

#: A legend above bars that stand in or on each other, in the order of the bars.
LEGEND: Final = {"margin": {"t": 34}, "legend": {**ABOVE, "traceorder": "normal"}}


def rows_of_bars(
    look: Look, names: Sequence[str], row_px: float, around_px: float, *, least: int = 3, **options: Any
) -> go.Figure:
    """A figure with a row for each name, which Plotly reads as HTML.

    Args:
        row_px: height of a row.
        around_px: height of the axis, and of the legend where there is one.
        least: fewer rows have the height of so many.
        options: of the axis with the names.
    """
    figure = blank(look.theme, int(row_px * max(len(names), least) + around_px))
    name_rows(figure, names, look, **{"range": [len(names) - 0.4, -0.6], **options})
    return figure


def add_bars(figure: go.Figure, values: Iterable[Any], hovers: Sequence[str], **options: Any) -> None:
    """Bars of the rows, from the top.

    Args:
        hovers: HTML.
        options: of the trace, such as `y` where not each row has a bar.
    """
    rows = {"y": list(range(len(hovers))), **options}
    figure.add_bar(x=values, orientation="h", hoverinfo="text", hovertext=hovers, **rows)


def write_beside(figure: go.Figure, ends: Iterable[float], words: Iterable[str], shift_px: int = 6) -> None:
    """Words right of the end of each row's bars. Plotly reads them as HTML."""
    font = {"size": 12}
    for place, (end, word) in enumerate(zip(ends, words, strict=True)):
        figure.add_annotation(x=end, y=place, xanchor="left", xshift=shift_px, showarrow=False, font=font, text=word)


def scale(
    figure: go.Figure,
    title: str,
    longest: float,
    room: float = 1.0,
    write: Callable[[float], str] = format_duration,
    most: int = 6,
) -> None:
    """The axis of the bars from 0 to `room` times the longest one, with about `most` ticks."""
    span = {"range": [0, room * longest], "title_text": title}
    figure.update_xaxes(**span, **ticks(0, longest, write, logarithmic=False, most=most))


def bars_of_shares(look: Look, rows: pd.DataFrame, parts: Mapping[str, tuple[str, str]], row_px: int, title: str) -> go.Figure:
    """Stacked bars of shares, with a row for each label.

    Args:
        rows: `label` and `hover`, which Plotly reads as HTML, `part`, and `share` from 0 to 1; of a label, a row for each part.
        parts: colour and pattern of each part, in the order in which they are stacked.
        title: of the axis; empty for none.
    """
    labels = list(dict.fromkeys(rows["label"]))
    figure = blank(look.theme, row_px * len(labels) + 90)
    for part, (color, pattern) in parts.items():
        own = rows[(rows["part"] == part) & (rows["share"] > 0)]
        if len(own):
            marker = {"color": color, "pattern": hatch(pattern)}
            add_bars(figure, 100 * own["share"], own["hover"].tolist(), y=own["label"].tolist(), name=part, marker=marker)
    figure.update_layout(margin={"t": 36}, legend={**ABOVE, "traceorder": "normal"})
    stack_shares(figure, labels, look)
    figure.update_xaxes(title_text=title or None)
    return figure


def panels(look: Look, titles: Sequence[str], height: int, **options: Any) -> go.Figure:
    """Charts side by side, under their titles, which Plotly reads as HTML."""
    figure = make_subplots(rows=1, cols=len(titles), subplot_titles=titles, **options)
    figure.update_layout(blank(look.theme, height).layout)
    figure.update_annotations(font={"size": 13})
    return figure


_ROW_PX, _LEAST_PX, _MOST_PX, _AROUND_PX = 18, 110, 400, 60
_NAMES: Final = 32  # of ranks or iterations beside an axis
_MOST_WRITTEN: Final = 20_000  # cells whose figures are sent as texts


def rank_map(table: pd.DataFrame, look: Look, color: str, write: Callable[[float], str], unit: str) -> go.Figure:
    """A heatmap of ranks over iterations, whose scale goes from the least to the largest value.

    Args:
        table: a row for each rank and a column for each iteration, by their numbers; one column named `profile` where the profiles have no
            iterations. Cells may be NaN.
        color: `#rrggbb` of the largest value.
        write: writes a value.
        unit: of a value that `write` has not written, since there are too many cells.
    """
    values = table.to_numpy(dtype=float)
    names, columns = [str(name) for name in table.index], [str(name) for name in table.columns]
    known = values[np.isfinite(values)]
    low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 0.0)
    low = low if low < high else min(low, 0.0)
    high = high if low < high else low + 1.0
    written = values.size <= _MOST_WRITTEN
    figure = blank(look.theme, min(max(_ROW_PX * len(names), _LEAST_PX), _MOST_PX) + _AROUND_PX)
    where = "rank %{y}" + ("" if columns == ["profile"] else ", iteration %{x}")
    figure.add_heatmap(
        z=values,
        x=columns,
        y=names,
        zmin=low,
        zmax=high,
        xgap=1 if len(columns) <= _NAMES else 0,
        ygap=1 if len(names) <= _NAMES else 0,
        hoverongaps=False,
        text=[["" if math.isnan(value) else text(write(value)) for value in row] for row in values] if written else None,
        hovertemplate=f"<b>{'%{text}' if written else f'%{{z:.3g}} {unit}'}</b><br>{where}<extra></extra>",
        colorscale=[[0, look.tones.grid], [1, color]],
        colorbar={
            "thickness": 12,
            "outlinewidth": 0,
            "tickfont": {"color": look.tones.muted, "size": 12},
            **ticks(low, high, write, logarithmic=False, most=5),
        },
    )
    figure.update_xaxes(
        type="category", showgrid=False, title_text="" if columns == ["profile"] else "iteration", **_thinned(columns)
    )
    figure.update_yaxes(type="category", showgrid=False, title_text="rank", autorange="reversed", ticks="", **_thinned(names))
    return figure


def _thinned(names: list[str]) -> dict[str, Any]:
    """Every n-th name beside a categorical axis, so that they have room."""
    step = -(-len(names) // _NAMES)
    return {"tickmode": "array", "tickvals": names[::step], "ticktext": [text(name) for name in names[::step]]}
