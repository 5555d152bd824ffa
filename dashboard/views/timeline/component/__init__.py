"""The timeline on a canvas.

Python sends the contents of a window. The browser draws it, pans and zooms, and requests the next window.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import streamlit as st

from warpladder.dashboard.ui.template import Tones

_HERE: Final = Path(__file__).resolve().parent
_HTML: Final = """
<div class="timeline">
  <div class="bar">
    <span class="legend"></span>
    <span class="span" role="status"></span>
    <button class="out" title="Zoom out (-)" aria-label="Zoom out">−</button>
    <button class="in" title="Zoom in (+)" aria-label="Zoom in">+</button>
    <button class="fit" title="The whole trace (0, or a double click)">Fit</button>
  </div>
  <canvas class="axis"></canvas>
  <div class="scroll"><canvas class="lanes" tabindex="0" role="application"></canvas></div>
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
    """

    number: int
    window: tuple[int, int]
    pixels: int
    pick: tuple[str, int] | None


def timeline(key: str, data: dict[str, Any], act: Callable[[Act], None]) -> None:
    """Draw a timeline.

    Args:
        data: the result of `payload`.
        act: called before the next rerun of the page's fragment.
    """

    def acted() -> None:
        found = parse(getattr(st.session_state.get(key), "act", None))
        if found is not None:
            act(found)

    _component()(key=key, data=data, on_act_change=acted)


def payload(
    lanes: Sequence[dict[str, Any]],
    texts: Sequence[str],
    *,
    window: tuple[int, int],
    bins: int,
    length: int,
    colors: Sequence[str],
    swatches: Sequence[str],
    legend: Sequence[int],
    thin: Sequence[int],
    tones: Tones,
    number: int,
    chosen: bool,
) -> dict[str, Any]:
    """The data that the browser's script draws.

    Args:
        lanes: each with its texts, and its events and bars as lists.
        texts: the texts that the lanes refer to by place.
        window: start and end, in nanoseconds from the start of the trace.
        bins: number of bins of the window.
        length: length of the trace in nanoseconds.
        colors: the colour of each swatch.
        swatches: the meaning of each colour.
        legend: the swatches in the legend.
        thin: the swatches whose events are drawn thinner than others.
        tones: the colours of the theme.
        number: the number of the act that this answers; 0 for none.
        chosen: whether an event is chosen. Events that do not belong to it are then drawn faint.
    """
    return {
        "lanes": list(lanes),
        "texts": list(texts),
        "window": list(window),
        "bins": bins,
        "length": length,
        "colors": list(colors),
        "swatches": list(swatches),
        "legend": list(legend),
        "thin": list(thin),
        "number": number,
        "chosen": chosen,
        "tones": {"text": tones.text, "muted": tones.muted, "grid": tones.grid, "paper": tones.paper},
    }


def parse(sent: Any) -> Act | None:
    """The act that the browser sent; None for anything else, because data from the browser is not trusted."""
    try:
        begin, end = (int(time) for time in sent["window"])
        pick = sent["pick"]
        picked = None if pick is None else (str(pick[0]), int(pick[1]))
        return Act(int(sent["number"]), (begin, end), min(max(int(sent["pixels"]), 1), 8000), picked)
    except (TypeError, KeyError, ValueError, IndexError, OverflowError):
        return None


@st.cache_resource(show_spinner=False)
def _component() -> Any:
    # Both files form one script, because the browser cannot fetch a second one.
    figures, script, style = (
        (_HERE / name).read_text(encoding="utf-8") for name in ("figures.js", "timeline.js", "timeline.css")
    )
    return st.components.v2.component("warpladder_timeline", html=_HTML, js=f"{figures}\n{script}", css=style)
