"""The timeline on a canvas.

Python sends the contents of a window. The browser draws it, pans and zooms, and requests the next window.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import streamlit as st

from warpladder.dashboard.ui.component import component
from warpladder.dashboard.views.timeline.selection import MOST_CHARACTERS

_HERE: Final = Path(__file__).resolve().parent
_MOST_STEPS: Final = 1_000
_FILES: Final = ("figures.js", "search.js", "measure.js", "keys.js", "picture.js", "gestures.js", "timeline.js", "timeline.css")
#: Keys and gestures by what they do, for the help of the page.
KEYS: Final = (
    ("/", "search; Enter and Shift+Enter lead to the next and the previous hit"),
    ("n  N", "next and previous hit"),
    ("click", "choose an event and what belongs to it; on a bar, zoom in"),
    ("f  or double click", "zoom to the event; a double click beside events shows the whole trace"),
    ("m", "measure the chosen event; again to remove the measure"),
    ("drag on the ruler, Shift+drag", "measure a span of time; the ends of a span can be dragged"),
    ("w  s  or wheel, +  −", "zoom in and out at the pointer"),
    ("a  d  or drag, ←  →", "pan"),
    ("0  or Home", "the whole trace"),
    ("Esc", "drop what is chosen and measured"),
)
_HELP: Final = "".join(f"<dt>{keys}</dt><dd>{does}</dd>" for keys, does in KEYS)
_HTML: Final = f"""
<div class="timeline">
  <div class="bar">
    <div class="search" role="search">
      <input class="text" type="search" maxlength="{MOST_CHARACTERS}" placeholder="Search kernels, ranges, calls" spellcheck="false"
        autocomplete="off" aria-label="Search names" title="Names of kernels, ranges, API calls and copies (/)">
      <button class="previous" aria-label="Previous hit" title="Previous hit (N, Shift+Enter)">‹</button>
      <button class="next" aria-label="Next hit" title="Next hit (n, Enter)">›</button>
      <span class="count" role="status"></span>
    </div>
    <span class="span" role="status"></span>
    <button class="out" title="Zoom out (s, -)" aria-label="Zoom out">−</button>
    <button class="in" title="Zoom in (w, +)" aria-label="Zoom in">+</button>
    <button class="fit" title="The whole trace (0)">Fit</button>
    <button class="save" title="Save a picture of all lanes">PNG</button>
    <button class="keys" title="Keys and gestures (?)" aria-label="Keys and gestures" aria-expanded="false">?</button>
  </div>
  <dl class="help" hidden>{_HELP}</dl>
  <div class="legend"></div>
  <canvas class="axis" title="Drag to measure"></canvas>
  <div class="scroll"><canvas class="lanes" tabindex="0" role="application"></canvas></div>
  <div class="measured" role="status"></div>
  <div class="tip" role="tooltip" hidden></div>
</div>
"""


@dataclass(frozen=True)
class Act:
    """An action of the user on the canvas.

    Attributes:
        number: identifies the act; the answer repeats it.
        window: start and end, in nanoseconds from the start of the trace.
        pixels: width of the lanes.
        pick: kind of lane and row of the clicked event; `("", -1)` for a click outside of all events; None without a click.
        search: the text in the search box; None where it stays as it was.
        step: how many hits of the search to go on, or back where negative; 0 for none.
        measure: start and end of the measured span, as in `window`; equal for none. None where it stays as it was.
    """

    number: int
    window: tuple[int, int]
    pixels: int
    pick: tuple[str, int] | None
    search: str | None = None
    step: int = 0
    measure: tuple[int, int] | None = None


def timeline(key: str, data: dict[str, Any], act: Callable[[Act], None]) -> None:
    """Draw a timeline.

    Args:
        data: what `chart.contents` gives, and

            - `number`: the number of the act that this answers; 0 for none;
            - `chosen`: the chosen event, or None. Events that do not belong to it are drawn faint;
            - `search`: what the search found;
            - `measure`: start and end of the measured span, or None.
        act: called before the next rerun of the page's fragment.
    """

    def acted() -> None:
        parsed = parse(getattr(st.session_state.get(key), "act", None))
        if parsed is not None:
            act(parsed)

    component(_HERE, "timeline", _HTML, _FILES)(key=key, data=data, on_act_change=acted)


def parse(sent: Any) -> Act | None:
    """The act that the browser sent; None for anything else, because data from the browser is not trusted."""
    try:
        pick, search, measure = sent["pick"], sent.get("search"), sent.get("measure")
        return Act(
            int(sent["number"]),
            _pair(sent["window"]),
            min(max(int(sent["pixels"]), 1), 8000),
            None if pick is None else (str(pick[0]), int(pick[1])),
            None if search is None else _text(search),
            min(max(int(sent.get("step", 0)), -_MOST_STEPS), _MOST_STEPS),
            None if measure is None else _pair(measure),
        )
    except (AttributeError, TypeError, KeyError, ValueError, IndexError, OverflowError):
        return None


def _pair(sent: Any) -> tuple[int, int]:
    begin, end = (int(time) for time in sent)
    return begin, end


def _text(sent: Any) -> str:
    """A text without the half characters that JSON may hold, and that no URL and no file may."""
    return str(sent)[:MOST_CHARACTERS].encode("utf-8", "ignore").decode()
