"""A chart as a figure with its title and note above it, for files and notebooks."""

import textwrap
from typing import Any, Final

from warpladder.dashboard.ui import template
from warpladder.dashboard.ui.template import Chart, text

WIDTH_PX: Final = 1000
_TITLE_PX: Final = 17.0
_NOTE_PX: Final = 11.5
_TITLE_LINE_PX: Final = 22
_NOTE_LINE_PX: Final = 15
_TOP_AXIS_PX: Final = 28
#: Characters of a line, for each pixel of width.
_TITLE_CHARACTERS: Final = 0.12
_NOTE_CHARACTERS: Final = 0.18


def figure(chart: Chart, width_px: int = WIDTH_PX) -> dict[str, Any]:
    """The chart as plain Plotly JSON whose layout has `width`, `height` and all four margins."""
    drawn: dict[str, Any] = chart.figure.to_plotly_json()
    layout = drawn["layout"]
    layout["width"] = width_px
    layout["margin"] = {"l": 8, "r": 8, "t": 12, "b": 8, **layout.get("margin", {})}
    if any(axis.get("side") == "top" for name, axis in layout.items() if name.startswith("xaxis")):
        # Plotly makes room for ticks above the plot, but not below a heading.
        layout["height"] += _TOP_AXIS_PX
        layout["margin"]["t"] += _TOP_AXIS_PX
    family = layout["template"]["layout"]["font"]["family"]
    layout["font"] = {**layout.get("font", {}), "family": f"'{template.FAMILY}', {family}"}
    _add_heading(layout, chart)
    return drawn


def _add_heading(layout: dict[str, Any], chart: Chart) -> None:
    title = textwrap.wrap(chart.title, int(_TITLE_CHARACTERS * layout["width"]))
    note = textwrap.wrap(chart.note, int(_NOTE_CHARACTERS * layout["width"]))
    # Plotly centres a title of several lines at its place, so its first line is higher.
    above = _TITLE_LINE_PX * (len(title) - 1) / 2
    room = 10 + _TITLE_LINE_PX * len(title) + _NOTE_LINE_PX * len(note) + 8
    muted = layout["template"]["layout"]["xaxis"]["tickfont"]["color"]
    layout["title"] = {
        "text": "<br>".join(map(text, title)),
        "x": 0,
        "xref": "container",
        "xanchor": "left",
        "y": 1,
        "yref": "container",
        "yanchor": "top",
        "pad": {"l": 10, "t": 12 + above},
        "font": {"size": _TITLE_PX},
        "subtitle": {"text": "<br>".join(map(text, note)), "font": {"size": _NOTE_PX, "color": muted}},
    }
    layout["height"] += room
    layout["margin"]["t"] += room
