"""Names as plain text for Streamlit, which reads Markdown, and cut where they are too long; lines and tables for a terminal."""

import io
import re
import shutil
import sys
from collections.abc import Iterable, Sequence
from itertools import takewhile
from operator import eq
from typing import Final, TextIO

from warpladder.data import words
from warpladder.data.files import one_line

_MARKS: Final = re.compile(r"([\\`*_{}\[\]()#+\-.!|<>$:~&^=])")
#: The places at which to split texts that Streamlit takes for a link, an icon, its logo or an arrow even where they are
#: escaped.
_SPLITS: Final = re.compile(
    r"""(?<=https:)(?=//) | (?<=http:)(?=//) | (?<=www)(?=\.) | (?<=[-.\w+])(?=@[-\w]+\.[-\w])
    | (?<=:)(?=material/|streamlit:)
    | (?<=(?<!\S)[-<>~])(?=(?:->|>|-|=)(?!\S))""",
    re.IGNORECASE | re.VERBOSE,
)
#: What short names that are alike end with, and what ends a word of a name.
_NUMBER: Final = re.compile(r" #\d+\Z")
_NO_WORD: Final = re.compile(r"[\W_]")
_WORD_JOINER: Final = "\u2060"  # takes no room and breaks no line


_MOST_CHARACTERS: Final = 80


#: Of a line that is not for a terminal.
ANY_LENGTH: Final = 1000


def columns(stream: TextIO | None = None) -> int:
    """The characters that fit on a line of stdout or another stream: those of a terminal, of COLUMNS, or any number elsewhere."""
    stream = stream or sys.stdout
    return shutil.get_terminal_size().columns if stream and stream.isatty() else ANY_LENGTH


def plain_lines(lines: Iterable[str]) -> str:
    """Lines as a text that ends with a line feed, and in which no name makes a further line."""
    return "".join(f"{one_line(line)}\n" for line in lines)


def plain_table(headings: Sequence[str], rows: Sequence[Sequence[str]], width: int = 0) -> list[str]:
    """The lines of a table in columns, without borders; none without rows.

    Args:
        width: the most characters of a line; a longer cell takes several lines. 0 for those of the terminal.
    """
    from rich.console import Console
    from rich.table import Table

    if not rows:
        return []
    table = Table(box=None, pad_edge=False)
    for heading in headings:
        table.add_column(heading, overflow="fold")
    for row in rows:
        table.add_row(*map(one_line, row))
    text = io.StringIO()
    # In Jupyter, Rich would display the table and return nothing.
    console = Console(file=text, width=width or columns(), highlight=False, markup=False, no_color=True, force_jupyter=False)
    console.print(table)
    return [line.rstrip() for line in text.getvalue().splitlines()]


def short(text: str) -> str:
    """A text from a URL, cut to a length that fits in a sentence."""
    return words.cut(text, _MOST_CHARACTERS)


def plain_line(text: str) -> str:
    """Text on one line. Spaces and line feeds become one space, and what is not printable an escape."""
    return one_line(" ".join(text.split()))


def plain(text: str) -> str:
    """Text that Streamlit's Markdown shows unchanged: a name from a report is never markup, and an address in it is no link.

    Line breaks become spaces, so that no line starts a list or a heading.
    """
    return _MARKS.sub(r"\\\1", _SPLITS.sub(_WORD_JOINER, plain_line(text)))


def cut(name: str, most: int) -> str:
    """The start of a name, up to `most` characters, without a leading `void`."""
    return words.cut(" ".join(str(name).split()).removeprefix("void "), most)


def apart(names: Sequence[str], full: Sequence[str], most: int) -> list[str]:
    """Names of at most so many characters, of which no two are alike where the full names differ.

    Args:
        names: short names; those of kernels that differ inside of long arguments end with `#` and a number.
        full: the full name of each.
    """
    cuts = [cut(_NUMBER.sub("", name), most) for name in names]
    alike = {each: [full[place] for place, other in enumerate(cuts) if other == each] for each in cuts}
    groups = {each: own for each, own in alike.items() if len(set(own)) > 1}
    return [_differing(name, groups[name], own, most) if name in groups else name for name, own in zip(cuts, full, strict=True)]


def _differing(name: str, group: Sequence[str], own: str, most: int) -> str:
    """The start of a name, and what its full name has about the word from which it differs from each of the others."""
    alike = (sum(takewhile(bool, map(eq, own, other))) for other in group if other != own)
    place = max(alike, default=len(own))
    place = max((found.end() for found in _NO_WORD.finditer(own, 0, place)), default=place)
    head = re.split(r"\W", name, maxsplit=1)[0][: most // 2 - 1]
    differs = own[place:].split("(")[0] or own[place:]
    room = max(most - len(head) - 1 - len(differs), 0)
    return cut(f"{head}…{own[max(place - room, len(head)) : place].lstrip('<>(,:_ ')}{differs}", most)
