"""Rows and lines of a text of 80 columns about a profile."""

import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from warpladder.dashboard.core.numbers import format_duration
from warpladder.dashboard.trace.parts import Parts
from warpladder.dashboard.ui.text import cut, plain_table

#: Columns of a text, and the lines of a screen.
WIDTH: Final = 80
SCREEN: Final = 24
NAME_CHARACTERS: Final = 42
#: A command that fits on a line, or a figure with its unit, and a space at which no line ends.
_WHOLE: Final = re.compile(
    r"\b(?:ncu|rocprof-compute|warpladder (?:extract|forecast|import)) [^,;]{1,76}(?=[,;]|\Z)|[0-9] (?:%|[nµm]?s\b)"
)
_NO_BREAK: Final = "\0"
#: A smaller share, in percent, would be written 0.0.
_LEAST_SHARE: Final = 0.05


Row = tuple[str, ...]


def time_rows(parts: Parts, *, causes_too: bool = True) -> Iterator[Row]:
    """The rows of a table of where the time goes, with the causes of idle time or without."""
    yield from (row(what, time, parts.span_ns) for what, time in parts.rows(causes_too=causes_too))


def summed(time_ns: float, covered_ns: float) -> str:
    """`97.3 ms (overlaps count twice)`: a sum of times that cover less time together."""
    time = format_duration(time_ns)
    return time if time == format_duration(covered_ns) else f"{time} (overlaps count twice)"


def row(what: str, time_ns: float, of_ns: float, *notes: str) -> Row:
    """A row of a table: what takes the time, the time, its share, and notes."""
    share = 100 * time_ns / of_ns if of_ns else 0.0
    return (
        cut(what, NAME_CHARACTERS),
        format_duration(time_ns),
        "<0.1 %" if 0 < share < _LEAST_SHARE else f"{share:.1f} %",
        *notes,
    )


def middle_cut(name: str, most: int = NAME_CHARACTERS) -> str:
    """A name of at most so many characters: its start and its end, in which templates differ."""
    name = cut(name, 10 * most)
    return name if len(name) <= most else f"{name[: most - most // 3 - 1]}…{name[-(most // 3) :]}"


def table(headings: Row, rows: Sequence[Row], first_characters: int = NAME_CHARACTERS) -> list[str]:
    """The lines of a table, no longer than `WIDTH`, with a first column of so many characters."""
    first = headings[0].ljust(first_characters)
    return [line[:WIDTH].rstrip() for line in plain_table((first, *headings[1:]), rows)] if rows else []


def fitting(findings: Sequence[str], lines: int) -> list[str]:
    """The first findings in so many lines, the very first cut where it takes more, and how many more there are."""
    shown: list[str] = []
    for number, each in enumerate(findings):
        whole = wrapped([each])
        left = lines - len(shown) - (number + 1 < len(findings))
        if not number:
            whole = shortened(each, left)
        if len(whole) > left:
            more = len(findings) - number
            return [*shown, f"{more} more warning{'s' if more > 1 else ''}, and all in full: warpladder summary RUN --all"]
        shown += whole
    return shown


def shortened(text: str, lines: int) -> list[str]:
    """A sentence in at most so many lines, cut between words."""
    whole = wrapped([text])
    if len(whole) <= lines:
        return whole
    indent = "  " if lines > 1 else ""
    return [*whole[: lines - 1], indent + textwrap.shorten(" ".join(whole[lines - 1 :]), WIDTH - 2, placeholder=" …")]


def wrapped(lines: Iterable[str]) -> list[str]:
    """Sentences in lines no longer than `WIDTH`; those after the first of a sentence are indented, and commands and figures are not broken."""
    whole = (_WHOLE.sub(lambda found: found[0].replace(" ", _NO_BREAK), line) for line in lines)
    parts = (part for line in whole for part in textwrap.wrap(line, WIDTH, subsequent_indent="  ", break_on_hyphens=False))
    return [part.replace(_NO_BREAK, " ") for part in parts]
