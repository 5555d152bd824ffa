"""Two sources side by side.

Python sends the rows. The browser writes each text as text, so that nothing in a source is markup.
"""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import streamlit as st

from warpladder.dashboard.ui.template import Tones
from warpladder.dashboard.views.compare.query import Row

_HERE: Final = Path(__file__).resolve().parent
_HTML: Final = """
<div class="sources" tabindex="0">
  <table><colgroup><col class="line"><col><col class="line"><col></colgroup><tbody></tbody></table>
</div>
"""


def side_by_side(key: str, rows: Sequence[Row], headings: tuple[str, str], tones: Tones) -> None:
    """Draw the rows of two sources beside each other, which scroll together.

    Args:
        headings: above A and above B.
        tones: the colours of the theme.
    """
    colors = {"gone": tones.bad, "come": tones.good, "muted": tones.muted, "grid": tones.grid}
    _component()(key=key, data={"rows": [asdict(row) for row in rows], "headings": list(headings), "colors": colors})


@st.cache_resource(show_spinner=False)
def _component() -> Any:
    script, style = ((_HERE / name).read_text(encoding="utf-8") for name in ("sources.js", "sources.css"))
    return st.components.v2.component("warpladder_sources", html=_HTML, js=script, css=style)
