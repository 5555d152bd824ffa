"""What a call costs by each route: alone, and in a row with many."""

from typing import Any, Final

import pandas as pd

from warpladder.dashboard.core.estimate import Estimate
from warpladder.dashboard.reports.routes.query import IN_A_ROW, WORKLOAD
from warpladder.dashboard.ui.marks import ABOVE, error_bars, hatch
from warpladder.dashboard.ui.numbers import format_duration, format_estimate
from warpladder.dashboard.ui.template import Chart, Look, blank, samples, slug, text

#: Column -> its words and the pattern of its bars.
_KINDS: Final = {"call": ("one call", ""), "in_a_row": (f"each of {IN_A_ROW} in a row", "/")}


def routes(frame: pd.DataFrame, look: Look) -> Chart:
    """Two bars for each route, with the intervals of the medians.

    Args:
        frame: `query.timed` of `query.routes`, not empty.
    """
    rows = frame.to_dict("records")
    names = [text(look.named(WORKLOAD, row["variant"])) for row in rows]
    figure = blank(look.theme, 46 * len(rows) + 90)
    colors = [look.style(WORKLOAD, row["variant"]).color for row in rows]
    for kind, (words, pattern) in _KINDS.items():
        estimates = [Estimate.of(row, kind).times(1e-3) for row in rows]
        figure.add_bar(
            x=[estimate.value for estimate in estimates],
            y=names,
            orientation="h",
            name=words,
            marker={"color": colors, "pattern": hatch(pattern)},
            error_x=error_bars(estimates, color=look.tones.text),
            hoverinfo="text",
            hovertext=[_hover(row, kind, words) for row in rows],
        )
    figure.update_layout(barmode="group", legend=ABOVE, margin={"t": 36})
    figure.update_xaxes(title_text="host time of a call, µs", rangemode="tozero")
    figure.update_yaxes(autorange="reversed", showgrid=False, ticks="", tickfont={"color": look.tones.text})
    first, last = rows[0], rows[-1]
    title = f"In a row, a call takes {format_duration(first['in_a_row'])} by {look.named(WORKLOAD, first['variant'])}"
    if len(rows) > 1:
        title += f" and {format_duration(last['in_a_row'])} by {look.named(WORKLOAD, last['variant'])}"
    note = look.note(
        "operation time on 64x64, from the launch until the host has waited for the device, hot L2; medians with 95 % interval; "
        f"{samples(frame['n'])}."
    )
    return Chart(slug("routes", WORKLOAD), title, figure, frame, note)


def _hover(row: dict[Any, Any], kind: str, words: str) -> str:
    lines = [f"<b>{text(row['variant'])}</b>", text(row["title"])]
    lines.append(f"{words}: <b>{text(format_estimate(Estimate.of(row, kind), format_duration))}</b>")
    if kind == "in_a_row" and row["device_bound"]:
        lines.append("the device takes this time, not the host")
    return "<br>".join(lines)
