"""A figure laid out anew for a narrow picture, such as a column of a paper.

A page's chart has its legend beside the plot and figures right of the bars. A column has no room for them.
"""

import base64
import html
import math
import re
import textwrap
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from warpladder.dashboard.ui.template import text

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
#: Height that a further line of a row's label adds, of that of the row.
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
    _lower(layout)
    _clear_right(layout)
    _shorten_labels(drawn)
    _thin_axes(drawn)


def put_legend_above(layout: _Figure, above: float) -> None:
    """Lay the legend out in rows above the plot; `draw.js` makes room for them."""
    old = layout.get("legend", {})
    if old.get("y", 1) <= 0:
        layout["margin"]["b"] = 8
    kept = {name: value for name, value in old.items() if name in ("traceorder", "title")}
    place = {"x": 0, "xref": "container", "xanchor": "left", "y": 1, "yref": "container", "yanchor": "top"}
    look = {"orientation": "h", "tracegroupgap": 0, "maxheight": _MOST_PX, "font": {"size": _LEGEND_PX}}
    layout["legend"] = {**kept, **place, **look}
    # A legend that was above had this room already.
    layout["margin"]["t"] = above + min(layout["margin"]["t"] - above, 12 if old.get("yanchor") == "bottom" else 34)
    layout["meta"] = {"legend_above": above}


def _axes(layout: _Figure, letter: str) -> dict[str, _Figure]:
    return {name: axis for name, axis in layout.items() if re.fullmatch(rf"{letter}axis[0-9]*", name)}


def _of_names(axis: _Figure) -> bool:
    """Whether a vertical axis names rows, and has no scale."""
    return axis.get("showgrid") is False


def _lower(layout: _Figure) -> None:
    """A plot with an axis of numbers is as flat as a narrow column asks for. Rows of names keep their height."""
    if not any(map(_of_names, _axes(layout, "y").values())):
        layout["height"] *= 0.4 + 0.6 * layout["width"] / _PAGE_PX


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
        if found := _LABEL.fullmatch(_text_of(each)):
            lines = [found[1], *textwrap.wrap(_CONFIG.sub("", found[2]), _LABEL_CHARACTERS)]
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
    """The least and the largest number that is drawn along an axis."""
    values = [number for each in drawn["data"] for number in _numbers(each.get(letter)) if isinstance(number, int | float)]
    return (min(values), max(values)) if values else (-math.inf, math.inf)


def _thin(axis: _Figure, extent: tuple[float, float], room: float, pitch: Callable[[list[str]], float]) -> None:
    """Keep as many ticks as have room, from the last one back. Those outside of the data take none."""
    words, values = axis.get("ticktext") or (), _numbers(axis.get("tickvals"))
    ticks = [(value, str(word)) for value, word in zip(values, words, strict=False) if word]
    seen = sum(extent[0] <= value <= extent[1] for value, _ in ticks)
    if ticks:
        step = math.ceil(max(seen, 1) * pitch([word for _, word in ticks]) / max(room, 1))
        kept = ticks[::-1][::step][::-1]
        axis.update(tickvals=[value for value, _ in kept], ticktext=[word for _, word in kept])


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
