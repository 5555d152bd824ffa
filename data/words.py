"""Words that all rooms write alike: a number of things, lists of names, and the start of a long one."""

from collections.abc import Iterable, Sequence
from typing import Final

_MOST_RANKS: Final = 4


def counted(number: int, noun: str) -> str:
    """`1 cell`, `1,200 cells`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def joined(things: Iterable[object]) -> str:
    """`a`, `a and b`, `a, b and c`; empty without any."""
    texts = [str(each) for each in things]
    return " and ".join(filter(None, (", ".join(texts[:-1]), *texts[-1:])))


def first_of(things: Iterable[object], most: int) -> str:
    """`a, b`, and of more than `most` things `a, b and 3 more`."""
    texts = [str(each) for each in things]
    return ", ".join(texts[:most]) + (f" and {len(texts) - most:,} more" if len(texts) > most else "")


def cut(text: str, most: int) -> str:
    """The start of a text, up to `most` characters, the last of which shows where it was cut."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def named_ranks(ranks: Sequence[int], most: int = _MOST_RANKS, noun: str = "rank") -> str:
    """`rank 3`, `ranks 3 and 5`, and of more than four ranks, or another number, `ranks 3, 5, 7, 8 and 12 more`."""
    if len(ranks) == 1:
        return f"{noun} {ranks[0]}"
    return f"{noun}s {first_of(ranks, most) if len(ranks) > most else joined(ranks)}"
