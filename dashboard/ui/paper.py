"""The size of exported pictures, and figures as they are drawn in that size."""

import re
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from warpladder.dashboard.ui import column, font
from warpladder.dashboard.ui.template import Chart, text
from warpladder.errors import Error

_Figure = dict[str, Any]

_PX_OF: Final[Mapping[str, float]] = {"mm": 96 / 25.4, "cm": 96 / 2.54, "in": 96.0, "pt": 96 / 72, "px": 1.0}
_LENGTH: Final = re.compile(r"([0-9]{1,5}(?:\.[0-9]{1,6})?) ?([a-z]{2})", re.ASCII)
_POINTS: Final = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,3})?) ?(?:pt)?", re.ASCII)
#: Widths in CSS pixels that a picture may have: 20 mm to 2 m.
_LEAST_PX, _MOST_PX = 75.0, 7600.0
_FONT_PT: Final = (4.0, 72.0)
_SCREEN_PX: Final = 1000.0
#: Size of the small texts of a chart in its own pixels, such as ticks and legends; `--font-size` is theirs in print.
_TEXT_PX: Final = 12.0
_PRINT_PT: Final = 8.0
#: A chart needs this width in its own pixels; see `column.NARROW_PX` too.
_LEAST_LAYOUT_PX: Final = 280.0
_TITLE_PX: Final = 17.0
_NOTE_PX: Final = 11.5
_TITLE_LINE_PX: Final = 22
_NOTE_LINE_PX: Final = 15
_TOP_AXIS_PX: Final = 28
#: Characters of a line, for each pixel of width.
_TITLE_CHARACTERS: Final = 0.12
_NOTE_CHARACTERS: Final = 0.18


@dataclass(frozen=True)
class Paper:
    """The size of pictures.

    Attributes:
        width_px: in CSS pixels, 96 to an inch.
        font_px: size of ticks and legends in CSS pixels; None for the sizes of screens.
        heading: whether title and note stand above the chart.
    """

    width_px: float = _SCREEN_PX
    font_px: float | None = None
    heading: bool = True

    @property
    def scale(self) -> float:
        """The size of the picture over that of the layout."""
        return self.font_px / _TEXT_PX if self.font_px else 1.0


SCREEN: Final = Paper()


def parse(width: str | None = None, font_size: str | None = None, *, heading: bool = True) -> Paper:
    """`84mm` and `8` as a size of pictures. A width without a size of texts has 8 points.

    Raises:
        Error: a size is no length, or is too small or too large.
    """
    if width is None and font_size is None:
        return Paper(heading=heading)
    wide = _SCREEN_PX if width is None else _pixels(width)
    points = _PRINT_PT if font_size is None else _points(font_size)
    paper = Paper(wide, points * _PX_OF["pt"], heading)
    if wide / paper.scale < _LEAST_LAYOUT_PX:
        least = _LEAST_LAYOUT_PX * paper.scale / _PX_OF["mm"]
        raise Error(
            f"--width {width or f'{wide:g}px'}: too narrow for texts of {points:g} pt; write {least:.0f}mm or more, or a "
            "smaller --font-size"
        )
    return paper


def _points(size: str) -> float:
    found = _POINTS.fullmatch(size.strip().lower())
    points = float(found[1]) if found else 0.0
    if not _FONT_PT[0] <= points <= _FONT_PT[1]:
        raise Error(f"--font-size {size}: write points from {_FONT_PT[0]:g} to {_FONT_PT[1]:g}, such as 8")
    return points


def _pixels(width: str) -> float:
    found = _LENGTH.fullmatch(width.strip().lower())
    if found is None or found[2] not in _PX_OF:
        raise Error(f"--width {width}: write a length in {', '.join(_PX_OF)}, such as 84mm")
    pixels = float(found[1]) * _PX_OF[found[2]]
    if not _LEAST_PX <= pixels <= _MOST_PX:
        raise Error(f"--width {width}: write a length from 20mm to 2000mm")
    return pixels


def figure(chart: Chart, paper: Paper) -> _Figure:
    """A chart as it is drawn on paper: plain Plotly JSON whose layout has `width`, `height` and all four margins.

    The layout's pixels are `paper.scale` CSS pixels of the picture.
    """
    drawn: _Figure = chart.figure.to_plotly_json()
    layout = drawn["layout"]
    layout["width"] = paper.width_px / paper.scale
    layout["margin"] = {"l": 8, "r": 8, "t": 12, "b": 8, **layout.get("margin", {})}
    if any(axis.get("side") == "top" for name, axis in layout.items() if name.startswith("xaxis")):
        # Plotly makes room for ticks above the plot, but not below a heading.
        layout["height"] += _TOP_AXIS_PX
        layout["margin"]["t"] += _TOP_AXIS_PX
    if paper.font_px:
        _even_texts(drawn)
    family = layout["template"]["layout"]["font"]["family"]
    layout["font"] = {**layout.get("font", {}), "family": f"'{font.FAMILY}', {family}"}
    narrow = layout["width"] < column.NARROW_PX
    if narrow:
        column.narrow(drawn)
    above = _add_heading(layout, chart) if paper.heading else 0
    if narrow and layout.get("showlegend", True):
        column.put_legend_above(layout, above)
    return drawn


def _even_texts(part: Any) -> None:
    """Give all texts of a figure the same size."""
    if isinstance(part, dict):
        for name, value in part.items():
            if name.endswith("font") and isinstance(value, dict) and "size" in value:
                value["size"] = _TEXT_PX
            elif not isinstance(value, str):
                _even_texts(value)
    elif isinstance(part, list | tuple):
        for each in part:
            _even_texts(each)


def _add_heading(layout: _Figure, chart: Chart) -> float:
    """Write title and note above a chart. Returns their height in pixels."""
    width = layout["width"]
    title = textwrap.wrap(chart.title, int(_TITLE_CHARACTERS * width))
    note = textwrap.wrap(chart.note, int(_NOTE_CHARACTERS * width))
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
    return room
