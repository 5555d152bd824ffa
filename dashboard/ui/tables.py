"""Tables in Markdown, and as CSV for spreadsheets."""

import re
from collections.abc import Sequence
from typing import Any, Final

import pandas as pd

from warpladder.dashboard.ui.text import plain_line
from warpladder.data.files import one_line

_MARKDOWN: Final = re.compile(r"([\\`*_\[\]<>|~$&#@]|:(?=\S))")


def markdown_text(text: str) -> str:
    """Text that Markdown shows unchanged, in a cell of a table too."""
    return _MARKDOWN.sub(r"\\\1", plain_line(text))


def markdown_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a table in Markdown, which shows every cell as it is."""
    lines = (map(markdown_text, headings), ("---",) * len(headings), *(map(markdown_text, row) for row in rows))
    return [f"| {' | '.join(line)} |" for line in lines]


#: The beginnings of cells that spreadsheets compute (OWASP, CSV injection), also in full width.
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\n", "＝", "＋", "－", "＠")


def csv(frame: pd.DataFrame) -> str:
    """A frame as CSV without its index. A text that looks like a formula gets an apostrophe; numbers stay."""
    texts = [name for name in frame.columns if frame[name].dtype.kind == "O"]
    inert = frame.assign(**{name: frame[name].astype(object).map(_inert_cell) for name in texts})
    return str(inert.rename(columns=_inert_cell).to_csv(index=False))


def _inert_cell(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    # A carriage return alone is not quoted, and would start a new row.
    text = "\n".join(map(one_line, value.replace("\r\n", "\n").replace("\r", "\n").split("\n")))
    return f"'{text}" if text.startswith(_FORMULA) else text
