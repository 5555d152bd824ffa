"""Tables as HTML for a notebook. Every text is escaped."""

import html
from collections.abc import Sequence
from typing import Final

#: The most rows that are shown.
_MOST_ROWS: Final = 60
_CELL: Final = "text-align:left;vertical-align:top;padding:3px 10px 3px 0"
_LAST: Final = f"{_CELL};min-width:15em"


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of texts. Its last column is broken into lines where it is long, the others are not."""
    half = _MOST_ROWS // 2
    left_out = [f"… {len(rows) - 2 * half} more", *[""] * (len(headings) - 1)]
    shown = rows if len(rows) <= _MOST_ROWS else [*rows[:half], left_out, *rows[-half:]]
    head = _row("th", headings)
    return (
        f'<table style="font-size:13px"><thead>{head}</thead><tbody>{"".join(_row("td", row) for row in shown)}</tbody></table>'
    )


def _row(tag: str, texts: Sequence[str]) -> str:
    *first, last = (html.escape(text) for text in texts)
    cells = [f'<{tag} style="{_CELL};white-space:nowrap">{text}</{tag}>' for text in first]
    return f'<tr>{"".join(cells)}<{tag} style="{_LAST}">{last}</{tag}></tr>'
