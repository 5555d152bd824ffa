"""The timeline on a canvas: Python sends what a window shows, the browser draws it, pans and zooms, and asks for the next window."""

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
    """What somebody did on the canvas.

    Attributes:
        number: tells acts apart; the answer carries it back.
        window: from and to, nanoseconds from the start of the trace.
        pixels: width of the lanes.
        pick: kind of lane and row of the event that was clicked; `("", -1)` for a click beside all; None where nothing was clicked.
    """

    number: int
    window: tuple[int, int]
    pixels: int
    pick: tuple[str, int] | None


def timeline(key: str, data: dict[str, Any], act: Callable[[Act], None]) -> None:
    """Draw a timeline.

    Args:
        data: of `payload`.
        act: called before the next run of the page's fragment.
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
    """What the script draws.

    Args:
        lanes: each with its texts, and its events and bars as lists.
        texts: what the lanes refer to by place.
        window: from and to, nanoseconds from the start of the trace.
        length: of the trace, nanoseconds.
        colors: by swatch.
        swatches: what each colour stands for.
        legend: swatches that the legend shows.
        thin: swatches whose events are drawn thinner than others.
        number: of the act that this answers, 0 for none.
        chosen: an event is chosen, so what does not belong to it is drawn faint.
    """
    return {
        "lanes": list(lanes), "texts": list(texts), "window": list(window), "bins": bins, "length": length, "colors": list(colors),
        "swatches": list(swatches), "legend": list(legend), "thin": list(thin), "number": number, "chosen": chosen,
        "tones": {"text": tones.text, "muted": tones.muted, "grid": tones.grid, "paper": tones.paper},
    }  # fmt: skip


def parse(sent: Any) -> Act | None:
    """What the browser sent as an act; None where it is none: what comes from there is not trusted."""
    try:
        begin, end = (int(time) for time in sent["window"])
        pick = sent["pick"]
        picked = None if pick is None else (str(pick[0]), int(pick[1]))
        return Act(int(sent["number"]), (begin, end), min(max(int(sent["pixels"]), 1), 8000), picked)
    except (TypeError, KeyError, ValueError, IndexError, OverflowError):
        return None


@st.cache_resource(show_spinner=False)
def _component() -> Any:
    # One script, since the browser can fetch no second one beside it.
    figures, script, style = (
        (_HERE / name).read_text(encoding="utf-8") for name in ("figures.js", "timeline.js", "timeline.css")
    )
    return st.components.v2.component("warpladder_timeline", html=_HTML, js=f"{figures}\n{script}", css=style)
