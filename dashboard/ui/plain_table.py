"""Tables as text, for a terminal and as Markdown."""

import io
import re
from collections.abc import Iterable, Sequence
from typing import Final

from rich.console import Console
from rich.table import Table

from warpladder.dashboard.ui.text import plain_line
from warpladder.data.files import one_line

_MARKDOWN: Final = re.compile(r"([\\`*_\[\]<>|~$&#@]|:(?=\S))")


def plain_lines(lines: Iterable[str]) -> str:
    """Lines as a text that ends with a line feed, and in which no name makes a further line."""
    return "".join(f"{one_line(line)}\n" for line in lines)


def markdown_text(text: str) -> str:
    """Text that Markdown shows unchanged, in a cell of a table too."""
    return _MARKDOWN.sub(r"\\\1", plain_line(text))


def plain_table(headings: Sequence[str], rows: Sequence[Sequence[str]], width: int = 1000) -> list[str]:
    """The lines of a table in columns, without borders; none without rows.

    Args:
        width: the most characters of a line; a longer cell takes several lines.
    """
    if not rows:
        return []
    table = Table(box=None, pad_edge=False)
    for heading in headings:
        table.add_column(heading, overflow="fold")
    for row in rows:
        table.add_row(*map(one_line, row))
    text = io.StringIO()
    # In Jupyter, Rich would display the table and return nothing.
    console = Console(file=text, width=width, highlight=False, markup=False, no_color=True, force_jupyter=False)
    console.print(table)
    return [line.rstrip() for line in text.getvalue().splitlines()]


def markdown_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a table in Markdown, which shows every cell as it is."""
    lines = (map(markdown_text, headings), ("---",) * len(headings), *(map(markdown_text, row) for row in rows))
    return [f"| {' | '.join(line)} |" for line in lines]
