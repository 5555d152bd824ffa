"""A source in colours, with a button that copies it.

Streamlit's `st.code` loads 1.5 MB for the languages of its highlighter, and colours the text in the browser.
"""

from functools import lru_cache
from pathlib import Path
from typing import Final

from pygments import lex
from pygments.lexers import get_lexer_by_name
from pygments.token import STANDARD_TYPES

from warpladder.dashboard.ui.component import component

_HERE: Final = Path(__file__).resolve().parent
#: Names, punctuation and white space, which have no colour. So many elements would take the browser long.
_PLAIN: Final = frozenset(name for name in STANDARD_TYPES.values() if name[:1] in ("n", "p", "w") and name not in ("nd", "nt"))
_HTML: Final = '<div class="source"><button>Copy</button><pre tabindex="0" role="region" aria-label="Source"></pre></div>'


def show(key: str, code: str, language: str, height: int | None = None) -> None:
    """Show a source.

    Args:
        language: a name of Pygments, such as `cuda`.
        height: in pixels; a longer text is scrolled. As high as the text when None.
    """
    component(_HERE, "source", _HTML, ("source.js", "source.css"))(
        key=f"source {key}", data={"tokens": _tokens(code, language), "height": height}
    )


@lru_cache(maxsize=64)
def _tokens(code: str, language: str) -> list[tuple[str, str]]:
    """Pairs of a class and a text; neighbours of one class are one pair."""
    joined: list[tuple[str, str]] = []
    for kind, text in lex(code, get_lexer_by_name(language, stripnl=False)):
        name = STANDARD_TYPES.get(kind, "")
        name = "" if name in _PLAIN else name
        if joined and joined[-1][0] == name:
            joined[-1] = (name, joined[-1][1] + text)
        else:
            joined.append((name, text))
    return joined
