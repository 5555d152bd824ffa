"""A table whose rows lead somewhere: a click, Enter or Space opens a row, and the arrow keys move without opening one.

`st.dataframe` reports the cell that an arrow key reaches as if it were clicked.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import pandas as pd

from warpladder.dashboard.core.numbers import NOTHING
from warpladder.dashboard.ui.component import component

_HERE: Final = Path(__file__).resolve().parent
_HTML: Final = '<div class="rows" role="grid"></div>'


@dataclass(frozen=True)
class Column:
    """How a column is shown.

    Attributes:
        label: its heading.
        width: the room that it asks for, in pixels. Words and paths take less in a narrow window.
        help: a sentence about it, for the mouse and for a screen reader.
        kind: `words`; `short` words and a `figure`, which are never cut; `path`, which is cut at its start; `bars`, a list of percentages.
    """

    label: str
    width: int
    help: str = ""
    kind: Literal["words", "short", "figure", "path", "bars"] = "words"


def show(
    key: str,
    texts: pd.DataFrame,
    columns: Mapping[str, Column],
    *,
    title: str,
    values: Mapping[str, Sequence[Any]] | None = None,
    most: int = 60,
) -> int | None:
    """Show the rows; the place of the row that was opened, once, or None.

    Args:
        texts: the cells as they are read, and lists of percentages in columns of bars.
        columns: the columns to show, in their order.
        title: what the table has, for a screen reader.
        values: what sorts a column in place of its texts.
        most: rows that are shown before the table scrolls by itself.
    """
    data = {
        "title": title,
        "most": most,
        "columns": [
            {"label": each.label, "width": each.width, "help": each.help, "kind": each.kind} for each in columns.values()
        ],
        "rows": [list(row) for row in zip(*(_cells(texts[name], each) for name, each in columns.items()), strict=True)],
        "order": [_sortable(values[name]) if values and name in values else None for name in columns],
    }
    opened = component(_HERE, "rows", _HTML, ("rows.js", "rows.css"))(key=key, data=data, on_opened_change=lambda: None).opened
    return opened if isinstance(opened, int) and 0 <= opened < len(texts) else None


def _cells(column: "pd.Series[Any]", shown: Column) -> list[Any]:
    if shown.kind == "bars":
        return [[*map(float, value)] for value in column]
    return [NOTHING if value is None or value != value else str(value) for value in column]


def _sortable(values: Sequence[Any]) -> list[Any]:
    """Numbers and texts that JSON has; None for what is not known, which comes last."""
    return [None if isinstance(value, float) and not math.isfinite(value) else value for value in values]
