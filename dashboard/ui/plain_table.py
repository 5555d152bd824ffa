"""Tables as text, for a terminal and as Markdown."""

import io
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table


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
        table.add_row(*row)
    text = io.StringIO()
    # In Jupyter, Rich would display the table and return nothing.
    console = Console(file=text, width=width, highlight=False, markup=False, no_color=True, force_jupyter=False)
    console.print(table)
    return [line.rstrip() for line in text.getvalue().splitlines()]


def markdown_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a table in Markdown, with its bars escaped."""
    lines = (headings, ("---",) * len(headings), *rows)
    return [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines]
