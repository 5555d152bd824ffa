"""Two sources line by line, with the words that differ within a line."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import Final

#: Equal lines that are shown before and after a difference.
_CONTEXT: Final = 3
#: Two lines that are less alike than this are marked as a whole.
_ALIKE: Final = 0.5
_WORDS: Final = re.compile(r"\w+|\s+|[^\w\s]")
#: Longer sources are compared by whole lines, without words.
_MOST_FOR_WORDS: Final = 4_000


@dataclass(frozen=True)
class Line:
    """A line of one source.

    Attributes:
        number: from 1.
        parts: its text in parts, each with whether it differs from the other side.
    """

    number: int
    parts: tuple[tuple[str, bool], ...]


@dataclass(frozen=True)
class Row:
    """A row of two sources side by side.

    Attributes:
        before, after: None where a side has no such line.
        changed: whether the two differ.
        skipped: number of equal lines that the row stands for, which then has no lines; else 0.
    """

    before: Line | None
    after: Line | None
    changed: bool
    skipped: int = 0


def rows(before: str, after: str) -> tuple[Row, ...]:
    """The rows of two sources, with three equal lines around each difference; all lines where nothing differs."""
    old, new = before.splitlines(), after.splitlines()
    found: list[Row] = []
    blocks = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    by_words = len(old) + len(new) <= _MOST_FOR_WORDS
    for place, (kind, a, a_end, b, b_end) in enumerate(blocks):
        if kind == "equal":
            same = [Row(_line(old, a + step), _line(new, b + step), changed=False) for step in range(a_end - a)]
            found += _around(same, first=place == 0, last=place == len(blocks) - 1)
        else:
            found += _different(old, new, range(a, a_end), range(b, b_end), by_words=by_words)
    return tuple(found)


def _around(same: list[Row], *, first: bool, last: bool) -> list[Row]:
    """Equal lines next to a difference, with a row in place of those between."""
    if first and last:
        return same
    head, tail = (0 if first else _CONTEXT), (0 if last else _CONTEXT)
    left_out = len(same) - head - tail
    if left_out <= 1:
        return same
    return [*same[:head], Row(None, None, changed=False, skipped=left_out), *same[len(same) - tail :]]


def _different(old: Sequence[str], new: Sequence[str], a: range, b: range, *, by_words: bool) -> Iterator[Row]:
    for one, other in zip_longest(a, b):
        if one is None or other is None or not by_words:
            before, after = (None if each is None else _line(of, each) for of, each in ((old, one), (new, other)))
            yield Row(before, after, changed=True)
        else:
            parts = _words(old[one], new[other])
            yield Row(Line(one + 1, parts[0]), Line(other + 1, parts[1]), changed=True)


def _line(lines: Sequence[str], place: int) -> Line:
    return Line(place + 1, ((lines[place], False),))


def _words(old: str, new: str) -> tuple[tuple[tuple[str, bool], ...], tuple[tuple[str, bool], ...]]:
    """The parts of two lines; unmarked where they have too little in common."""
    one, other = _WORDS.findall(old), _WORDS.findall(new)
    told = [[word for word in words if not word.isspace()] for words in (one, other)]
    if SequenceMatcher(None, told[0], told[1], autojunk=False).ratio() < _ALIKE:
        return ((old, False),), ((new, False),)
    blocks = SequenceMatcher(None, one, other, autojunk=False).get_opcodes()
    before = tuple(("".join(one[a:a_end]), kind != "equal") for kind, a, a_end, _, _ in blocks if a < a_end)
    after = tuple(("".join(other[b:b_end]), kind != "equal") for kind, _, _, b, b_end in blocks if b < b_end)
    return before, after
