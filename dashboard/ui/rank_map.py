"""A figure of each rank and iteration of a job as a heatmap."""

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from warpladder.dashboard.ui.template import Look, blank, text, ticks

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
