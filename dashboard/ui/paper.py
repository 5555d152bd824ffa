"""The size of exported pictures, and figures as they are drawn in that size: on a screen, or in a column of a paper."""

import base64
import html
import math
import re
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from warpladder.dashboard.ui import template
from warpladder.dashboard.ui.template import Chart, text
from warpladder.errors import Error

_Figure = dict[str, Any]

#: A picture at least this wide, in the layout's pixels, keeps the layout of the page.
NARROW_PX: Final = 640.0
_PAGE_PX: Final = 1000.0
#: Columns of figures right of the bars stay in a narrow picture up to this distance from the bars.
_BESIDE_PX: Final = 60
_LEGEND_PX: Final = 11.0
_CHARACTER_PX: Final = 6.2
_LINE_PX: Final = 17.0
#: Characters of a name beside a row of a narrow picture.
_NAME: Final = 27
#: A label whose first words are bold.
_LABEL: Final = re.compile(r"(<b>.*?</b>) +(.{12,})")
_CONFIG: Final = re.compile(r" \[[^]]*\]$")
#: Height of one of several panels, and of the gap with its title and ticks.
_PANEL_PX: Final = 190.0
_BETWEEN_PX: Final = 56.0
_LABEL_CHARACTERS: Final = 27
#: Height that a further line of a row's label adds, as a fraction of the row's height.
_OF_A_ROW: Final = 0.35
_LEAST_NAME: Final = 8
#: Height of a horizontal axis with its title.
_AXIS_PX: Final = 50
#: As high as any legend may be.
_MOST_PX: Final = 7600.0


def narrow(drawn: _Figure) -> None:
    """Lay a figure out for its width, before it has its heading: panels below each other, a flatter plot, shorter texts."""
    layout = drawn["layout"]
    _stack_panels(layout)
    # A plot with an axis of numbers is as flat as a narrow column asks for. Rows of names keep their height.
    if not any(map(_of_names, _axes(layout, "y").values())):
        layout["height"] *= 0.4 + 0.6 * layout["width"] / _PAGE_PX
    _clear_right(layout)
    _shorten_labels(drawn)
    _thin_axes(drawn)


def put_legend_above(layout: _Figure, above: float) -> None:
    """Lay the legend out in rows above the plot; `draw.js` makes room for them."""
    old = layout.get("legend", {})
    if old.get("y", 1) <= 0:
        layout["margin"]["b"] = 8
    style = {name: value for name, value in old.items() if name in ("traceorder", "title")}
    place = {"x": 0, "xref": "container", "xanchor": "left", "y": 1, "yref": "container", "yanchor": "top"}
    look = {"orientation": "h", "tracegroupgap": 0, "maxheight": _MOST_PX, "font": {"size": _LEGEND_PX}}
    layout["legend"] = {**style, **place, **look}
    # A legend that was above had this room already.
    layout["margin"]["t"] = above + min(layout["margin"]["t"] - above, 12 if old.get("yanchor") == "bottom" else 34)
    layout["meta"] = {"legend_above": above}


def _axes(layout: _Figure, letter: str) -> dict[str, _Figure]:
    return {name: axis for name, axis in layout.items() if re.fullmatch(rf"{letter}axis[0-9]*", name)}


def _of_names(axis: _Figure) -> bool:
    """Whether a vertical axis names rows, and has no scale."""
    return axis.get("showgrid") is False


def _clear_right(layout: _Figure) -> None:
    """Leave the first column of the figures right of the bars, so that the bars have room."""
    if layout["margin"]["r"] <= _BESIDE_PX:
        return
    layout["annotations"] = [
        each
        for each in layout.get("annotations", ())
        if not (each.get("xref") == "paper" and each.get("x", 0) >= 1 and each.get("xshift", 0) >= _BESIDE_PX)
    ]
    layout["margin"]["r"] = _BESIDE_PX


def _shorten_labels(drawn: _Figure) -> None:
    """Cut names of rows, and break labels into lines."""
    layout = drawn["layout"]
    for axis in _axes(layout, "y").values():
        if axis.get("ticktext"):
            axis["ticktext"] = ["<br>".join(map(_cut, str(each).split("<br>"))) for each in axis["ticktext"]]
    for each in drawn["data"]:
        if each["type"] == "bar" and isinstance(each.get("text"), list | tuple):
            each["text"] = [str(words).split(" · ")[0] for words in each["text"]]
    annotations = layout.get("annotations", ())
    if layout.get("showlegend", True):
        # The legend has the names that stand left of their points.
        annotations = [each for each in annotations if each.get("xanchor") != "right" or not _text_of(each).startswith("<b>")]
        layout["annotations"] = annotations
    most = 1
    for each in annotations:
        if match := _LABEL.fullmatch(_text_of(each)):
            lines = [match[1], *textwrap.wrap(_CONFIG.sub("", match[2]), _LABEL_CHARACTERS)]
            each.update(text="<br>".join(lines), align="left")
            most = max(most, len(lines))
    if any(map(_of_names, _axes(layout, "y").values())):
        layout["height"] *= 1 + _OF_A_ROW * (most - 1)


def _text_of(annotation: _Figure) -> str:
    return str(annotation.get("text", ""))


def _cut(name: str) -> str:
    """The start of a name without markup, which is escaped; other texts stay."""
    plain = html.unescape(name)
    return name if "<" in name or len(plain) <= _NAME else text(f"{plain[: _NAME - 1]}…")


def _thin_axes(drawn: _Figure) -> None:
    """Leave out ticks that would touch, and break titles of axes into lines."""
    layout = drawn["layout"]
    upright = _axes(layout, "y")
    names = [line for axis in upright.values() for each in axis.get("ticktext") or () for line in str(each).split("<br>")]
    longest = max([_LEAST_NAME, *map(len, names)])
    wide = layout["width"] - longest * _CHARACTER_PX - layout["margin"]["r"]
    for axis in _axes(layout, "x").values():
        _thin(axis, _extent(drawn, "x"), wide, lambda ticks: max(map(len, ticks)) * _CHARACTER_PX + 10)
        _break_title(axis, wide)
    rows = len({tuple(axis.get("domain", ())) for axis in upright.values()})
    high = layout["height"] / max(1, rows) - _AXIS_PX
    for axis in upright.values():
        if not _of_names(axis):
            _thin(axis, _extent(drawn, "y"), high, lambda _: _LINE_PX)
        _break_title(axis, high)


def _extent(drawn: _Figure, letter: str) -> tuple[float, float]:
    values = [number for each in drawn["data"] for number in _numbers(each.get(letter)) if isinstance(number, int | float)]
    return (min(values), max(values)) if values else (-math.inf, math.inf)


def _thin(axis: _Figure, extent: tuple[float, float], room: float, pitch: Callable[[list[str]], float]) -> None:
    """Keep as many ticks as have room, from the last one back. Those outside of the data take none."""
    words, values = axis.get("ticktext") or (), _numbers(axis.get("tickvals"))
    ticks = [(value, str(word)) for value, word in zip(values, words, strict=False) if word]
    seen = sum(extent[0] <= value <= extent[1] for value, _ in ticks)
    if ticks:
        step = math.ceil(max(seen, 1) * pitch([word for _, word in ticks]) / max(room, 1))
        shown = ticks[::-1][::step][::-1]
        axis.update(tickvals=[value for value, _ in shown], ticktext=[word for _, word in shown])


def _numbers(values: Any) -> list[Any]:
    """A list out of a figure's JSON, in which Plotly packs arrays of numbers; empty for None."""
    if values is None:
        return []
    if isinstance(values, dict):
        return list(np.frombuffer(base64.b64decode(values["bdata"]), values["dtype"]).tolist())
    return list(values)


def _break_title(axis: _Figure, room: float) -> None:
    title = axis.get("title", {}).get("text")
    if title:
        axis["title"]["text"] = "<br>".join(textwrap.wrap(title, max(8, int(room / _CHARACTER_PX))))


def _stack_panels(layout: _Figure) -> None:
    """Put panels of the same width, which are side by side, below each other."""
    columns = sorted((axis for axis in _axes(layout, "x").values() if "domain" in axis), key=lambda axis: axis["domain"][0])
    domains = [axis["domain"] for axis in columns]
    widths = [right - left for left, right in domains]
    if len(columns) < 2 or len({left for left, _ in domains}) < len(columns) or max(widths) > 1.05 * min(widths):
        return
    titles = {
        place: each
        for each in layout.get("annotations", ())
        if each.get("xref") == each.get("yref") == "paper" and each.get("y") == 1
        for place, (left, right) in enumerate(domains)
        if left <= each.get("x", -1) <= right
    }
    share = 1 / len(columns)
    gap = share * _BETWEEN_PX / _PANEL_PX
    for place, axis in enumerate(columns):
        top = 1 - place * share
        layout[f"yaxis{axis.get('anchor', 'y')[1:]}"].update(domain=[top - share + gap, top], showticklabels=True)
        axis["domain"] = [0, 1]
        if place < len(columns) - 1:
            axis.pop("title", None)
        if place in titles:
            titles[place].update(x=0.5, xanchor="center", y=top)
    layout["height"] = (60 + _PANEL_PX * len(columns)) / (0.4 + 0.6 * layout["width"] / _PAGE_PX)


_PX_OF: Final[Mapping[str, float]] = {"mm": 96 / 25.4, "cm": 96 / 2.54, "in": 96.0, "pt": 96 / 72, "px": 1.0}
_LENGTH: Final = re.compile(r"([0-9]{1,5}(?:\.[0-9]{1,6})?) ?([a-z]{2})", re.ASCII)
_POINTS: Final = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,3})?) ?(?:pt)?", re.ASCII)
#: Widths in CSS pixels that a picture may have: 20 mm to 2 m.
_LEAST_PX: Final = 75.0
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
        """The size of the picture over the size of the layout."""
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
    match = _POINTS.fullmatch(size.strip().lower())
    points = float(match[1]) if match else 0.0
    if not _FONT_PT[0] <= points <= _FONT_PT[1]:
        raise Error(f"--font-size {size}: write points from {_FONT_PT[0]:g} to {_FONT_PT[1]:g}, such as 8")
    return points


def _pixels(width: str) -> float:
    match = _LENGTH.fullmatch(width.strip().lower())
    if match is None or match[2] not in _PX_OF:
        raise Error(f"--width {width}: write a length in {', '.join(_PX_OF)}, such as 84mm")
    pixels = float(match[1]) * _PX_OF[match[2]]
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
    layout["font"] = {**layout.get("font", {}), "family": f"'{template.FAMILY}', {family}"}
    is_narrow = layout["width"] < NARROW_PX
    if is_narrow:
        narrow(drawn)
    above = _add_heading(layout, chart) if paper.heading else 0
    if is_narrow and layout.get("showlegend", True):
        put_legend_above(layout, above)
    return drawn


def _even_texts(part: Any) -> None:
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
