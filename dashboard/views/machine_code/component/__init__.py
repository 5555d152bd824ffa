"""Source and machine code side by side, and two kernels side by side, in lists of which the browser draws the visible rows only.

Python sends texts and numbers. The browser writes each text as text, so that nothing in a source is markup.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import streamlit as st

from warpladder.dashboard.core.sass import Code, Loop
from warpladder.dashboard.ui.template import Theme, palette, tones
from warpladder.dashboard.views.machine_code.query import Family, Heat, Kind, Row, family

_HERE: Final = Path(__file__).resolve().parent
_BAR: Final = """
  <div class="bar">
    <input class="search" type="search" placeholder="Search" aria-label="Search">
    <span class="count" role="status"></span>
    {more}
    <span class="legend"></span>
  </div>
"""
_CODE: Final = f"""
<div class="code">
  {_BAR.format(more='<label><input class="only" type="checkbox"> matches only</label><span class="columns"></span>')}
  <div class="panes">
    <section class="pane left"><div class="head"></div><div class="rows"></div></section>
    <section class="pane right"><div class="head"></div><div class="rows"></div></section>
  </div>
  <div class="status"><button type="button" class="next" disabled>Next</button><span class="words" role="status"></span></div>
</div>
"""
_DIFFERENCE: Final = f"""
<div class="code">
  {
    _BAR.format(
        more='''<button type="button" class="back">↑ Change</button><button type="button" class="on">↓ Change</button>
      <button type="button" class="all">Unfold all</button>'''
    )
}
  <div class="panes">
    <section class="pane both"><div class="head"></div><div class="rows"></div></section>
  </div>
</div>
"""
#: Family of an instruction -> its number in the browser.
_PLACES: Final[Mapping[Family, int]] = {each: place for place, each in enumerate(Family)}


def listing(
    key: str,
    source: str,
    code: Code,
    heats: Sequence[Heat],
    hot: Loop | None,
    theme: Theme,
    *,
    ptx: str | None = None,
    headings: tuple[str, str],
) -> None:
    """Draw a source beside its machine code.

    Args:
        heats: a column for each, on both sides.
        hot: the loop to emphasize.
        ptx: is drawn in place of the machine code; None draws the machine code.
        headings: above the source and above the code.
    """
    data = {
        "source": source.splitlines(),
        "texts": [each.text for each in code.instructions] if ptx is None else ptx.splitlines(),
        "lines": [each.line for each in code.instructions] if ptx is None else [],
        "families": _families(code) if ptx is None else [],
        "loops": [[loop.first, loop.last, loop.depth, int(loop == hot)] for loop in code.loops] if ptx is None else [],
        "heats": [_heat(heat) for heat in heats] if ptx is None else [],
        "headings": list(headings),
        "legend": [str(each) for each in Family] if ptx is None else [],
        "colors": _colors(theme),
        "ptx": ptx is not None,
    }
    _component("warpladder_code", _CODE, "listing.js")(key=key, data=data)


def difference(key: str, a: Code, b: Code, compared: Sequence[Row], headings: tuple[str, str], theme: Theme) -> None:
    """Draw two kernels side by side, with long equal parts folded.

    Args:
        compared: the rows, in order.
        headings: above A and above B.
    """
    kinds = {kind: place for place, kind in enumerate(Kind)}
    data = {
        "a": [each.text for each in a.instructions],
        "b": [each.text for each in b.instructions],
        "families": [_families(a), _families(b)],
        "rows": [[kinds[row.kind], row.a, row.b] for row in compared],
        "headings": list(headings),
        "legend": [str(each) for each in Family],
        "colors": _colors(theme),
    }
    _component("warpladder_code_difference", _DIFFERENCE, "difference.js")(key=key, data=data)


def _families(code: Code) -> list[int]:
    return [_PLACES[family(each.unit)] for each in code.instructions]


def _heat(heat: Heat) -> dict[str, Any]:
    """A column as lists, because the keys of JSON objects are texts."""
    return {
        "name": heat.name,
        "meaning": heat.meaning,
        "values": [[place, value] for place, value in heat.values.items()],
        "ideal": [[place, value] for place, value in heat.ideal.items()],
        "reasons": [[place, [list(pair) for pair in pairs]] for place, pairs in heat.reasons.items()],
    }


def _colors(theme: Theme) -> dict[str, str]:
    """Colours of instructions differ by at least 24 in CIELAB for all eyes, and have 4.5 to 1 or more against the page."""
    tone, colors = tones(theme), palette(theme)
    of_families = {"family0": colors[0], "family1": tone.bad, "family2": tone.muted, "family3": tone.text}
    return {**of_families, "heat": colors[4], "muted": tone.muted, "grid": tone.grid, "gone": tone.bad, "come": tone.good}


@st.cache_resource(show_spinner=False)
def _component(name: str, html: str, script: str) -> Any:
    scripts = "\n".join((_HERE / each).read_text(encoding="utf-8") for each in ("rows.js", script))
    return st.components.v2.component(name, html=html, js=scripts, css=(_HERE / "code.css").read_text(encoding="utf-8"))
