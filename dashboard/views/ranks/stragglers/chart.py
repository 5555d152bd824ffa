"""The waits of the ranks."""

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import pandas as pd

from warpladder.dashboard.core.lateness import lateness
from warpladder.dashboard.core.numbers import format_duration, format_percent, significant
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.ui.bars import add_bars, rows_of_bars, scale, write_beside
from warpladder.dashboard.ui.template import Chart, Look, hatch, palette, text
from warpladder.dashboard.views.ranks.stragglers import query
from warpladder.dashboard.views.ranks.stragglers.query import drawn

_MOST_BARS: Final = 32
_ROW_PX: Final = 20
_LEGEND_PX: Final = 70


def waits(ranks: pd.DataFrame, title: str, look: Look) -> Chart:
    """The total wait of each rank with its uncertainty, and how often it came last.

    Args:
        ranks: see `query.ranking`; not empty.
    """
    rows = drawn(ranks, _MOST_BARS).to_dict("records")
    names = [f"<b>{row['rank']} late</b>" if row["late"] else str(row["rank"]) for row in rows]
    figure = rows_of_bars(look, names, _ROW_PX, _LEGEND_PX, title_text="rank")
    waited = [float(row["wait_ns"]) for row in rows]
    add_bars(
        figure,
        waited,
        [_hover(row) for row in rows],
        width=0.7,
        showlegend=False,
        error_x={"type": "data", "array": [row["wait_uncertainty_ns"] for row in rows], "thickness": 1, "width": 3},
        marker={
            "color": [look.tones.bad if row["late"] else palette(look.theme)[0] for row in rows],
            "pattern": hatch(["/" if row["late"] else "" for row in rows]),
        },
    )
    # The clocks of ranks that share no collective were not compared, and have no uncertainty.
    ends = [wait + float(np.nan_to_num(row["wait_uncertainty_ns"])) for wait, row in zip(waited, rows, strict=True)]
    words = [f"{format_duration(float(row['wait_ns']))}, last {row['last']} of {row['collectives']} times" for row in rows]
    write_beside(figure, ends, map(text, words))
    scale(figure, "total wait for other ranks", max(float(ranks["wait_ns"].max()), 1.0), 1.3)
    part = "" if len(rows) == len(ranks) else f" The {len(rows) - 1} latest ranks and the middle one of {len(ranks)} are drawn."
    note = look.note(
        "time from the arrival of a rank at a collective to the arrival of the last one, in sum. A rank with more groups has more collectives to wait in. "
        f"Arrivals are on the job's clock. Bars: ± one standard deviation of the wait.{part}"
    )
    return Chart("stragglers-waits", title, figure, ranks, note)


def _hover(row: dict[Any, Any]) -> str:
    lines = [
        f"<b>rank {row['rank']}</b>",
        f"wait <b>{format_duration(float(row['wait_ns']))}</b> ± {format_duration(row['wait_uncertainty_ns'])}",
        f"came last {row['last']} of {row['collectives']} times, {format_percent(row['last_percent'])}",
        f"clock offset {format_duration(row['offset_ns'])}, drift {significant(row['drift_ppm'])} ppm",
    ]
    return "<br>".join(map(str, lines))


def charts(data: RunData, look: Look) -> Iterator[Chart]:
    """The waits of the ranks; nothing where no wait is known."""
    if not data.job or (ranks := query.ranking(data)).empty:
        return
    yield waits(ranks, query.title(lateness(data), ranks), look)
