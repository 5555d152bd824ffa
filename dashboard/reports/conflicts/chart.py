"""A heat map of the bank conflicts of tiles."""

from typing import Final

import numpy as np
import pandas as pd

from warpladder.dashboard.reports.conflicts.query import DEFINITION
from warpladder.dashboard.ui.template import Chart, Look, blank

_CONFLICT_COLUMNS: Final = {
    "published": "as published",
    "store": "store, ours",
    "store_inverse": "store, inverse<br>permutation",
    "load": "load, ours",
}


def bank_conflicts(frame: pd.DataFrame, look: Look) -> Chart:
    """Heat map of `query.bank_conflict_table`."""
    frame = frame.sort_values("padded", kind="stable")
    figures = frame[list(_CONFLICT_COLUMNS)].to_numpy(dtype=float)
    rows = [f"({', '.join(row['perm'])})  {row['tile'].replace('x', '×')}" for row in frame.to_dict("records")]
    places = np.arange(len(rows)) + 0.6 * frame["padded"].to_numpy(dtype=float)
    figure = blank(look.theme, 30 * len(rows) + 110)
    light = look.theme == "light"
    scale = [[0, "#eef2f7" if light else "#1d2127"], [1, "#D55E00"]]
    for padded in (False, True):
        part = (frame["padded"] == padded).to_numpy()
        figure.add_heatmap(
            z=figures[part],
            y=places[part],
            x=list(_CONFLICT_COLUMNS.values()),
            zmin=0,
            zmax=16,
            colorscale=scale,
            showscale=False,
            xgap=3,
            ygap=3,
            text=[[f"{value:g}" for value in row] for row in figures[part]],
            texttemplate="%{text}",
            hovertemplate="%{x}: %{z:.3g}<extra></extra>",
        )
    figure.update_yaxes(
        tickvals=places,
        ticktext=rows,
        autorange="reversed",
        showgrid=False,
        zeroline=False,
        ticks="",
        tickfont={"color": look.tones.text},
    )
    figure.update_xaxes(side="top", showgrid=False, ticks="")
    clean = int((frame.loc[frame["padded"], "store"] == 0).sum())
    title = (
        f"The report's padded tiles leave no bank conflict in the store of {clean} of {int(frame['padded'].sum())} permutations"
    )
    note = (
        "Computed, not measured; shared memory of 32 banks of 4 bytes; tiles as depth × height × width. Plain tiles are "
        f"above, padded tiles below. {DEFINITION}"
    )
    return Chart("bank-conflicts", title, figure, frame, note)
