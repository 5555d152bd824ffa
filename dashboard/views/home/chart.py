"""Where the time of a trace goes, as a picture."""

from typing import Final

import pandas as pd

from warpladder.dashboard.core.numbers import (
    format_duration,
    format_percent,
)
from warpladder.dashboard.trace.parts import CLASSES, Parts
from warpladder.dashboard.ui.template import (
    Chart,
    Look,
    blank,
    lightness,
    palette,
    stack_shares,
)

#: A part with a smaller share, in percent, has no room for its figure.
_LEAST_WRITTEN: Final = 4


def where_time_goes(found: Parts, look: Look) -> Chart:
    """The parts of the devices' time as one bar."""
    figure = blank(look.theme, 110)
    compute, exposed, copies, graphs = palette(look.theme)[:4]
    colors = (compute, graphs, exposed, copies, look.tones.grid)
    shown = pd.DataFrame({"part": [found.words(name) for name in CLASSES], "time_ns": [found.times[name] for name in CLASSES]})
    shown = shown.assign(percent=100 * shown["time_ns"] / found.span_ns)
    for row, color in zip(shown.to_dict("records"), colors, strict=True):
        if row["time_ns"]:
            inside = format_percent(row["percent"]) if row["percent"] > _LEAST_WRITTEN else ""
            hover = f"{row['part']}: {format_duration(row['time_ns'])}, {format_percent(row['percent'])}<extra></extra>"
            figure.add_bar(
                x=[row["percent"]],
                y=[""],
                orientation="h",
                name=row["part"],
                marker_color=color,
                text=inside,
                hovertemplate=hover,
                textposition="inside",
                insidetextanchor="middle",
                textangle=0,
                insidetextfont={"color": "#14171c" if lightness(color) > 55 else "#ffffff"},
            )
    stack_shares(figure, [""], look)
    # The labels at both ends of the axis have room.
    figure.update_layout(legend={"orientation": "h", "y": 1.3, "traceorder": "normal"}, margin={"t": 24, "l": 20, "r": 28})
    note = look.note(f"{found.whole}.")
    title = f"{found.headline[0].upper()}{found.headline[1:]}"
    return Chart("where-time-goes", title, figure, shown, note)
