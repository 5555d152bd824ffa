"""Plain text where Streamlit would read Markdown."""

import re
from typing import Final

_MARKS: Final = re.compile(r"([\\`*_{}\[\]()#+\-.!|<>$:~&^=])")
#: What Streamlit takes for a link, an icon, its logo or an arrow even where each mark of it is escaped: the place to part it at.
_TAKEN: Final = re.compile(
    r"""(?<=https:)(?=//) | (?<=http:)(?=//) | (?<=www)(?=\.) | (?<=[-.\w+])(?=@[-\w]+\.[-\w])
    | (?<=:)(?=material/|streamlit:)
    | (?<=(?<!\S)[-<>~])(?=(?:->|>|-|=)(?!\S))""",
    re.IGNORECASE | re.VERBOSE,
)
_WORD_JOINER: Final = "\u2060"  # takes no room and breaks no line

#: A number that Python wrote with a positive exponent. One with a negative exponent is a relative error, and stays as it is.
_EXPONENT: Final = re.compile(r"(?<![\w.])(\d(?:\.\d+)?e\+\d{1,2})(?![\w.]*\w)")

_MOST_CHARACTERS: Final = 80


def short(text: str) -> str:
    """A text out of a URL, which may have any length, as a sentence can hold it."""
    return text if len(text) <= _MOST_CHARACTERS else f"{text[: _MOST_CHARACTERS - 1]}…"


def without_exponents(text: str) -> str:
    """`71,200 GB/s` for `7.12e+04 GB/s`: recordings of earlier versions wrote their findings so."""
    return _EXPONENT.sub(lambda found: f"{float(found[1]):,.0f}", text)


def plain(text: str) -> str:
    """Text that Streamlit's Markdown shows as it is: a name out of a report is never markup, and an address in it no link.

    Line breaks become spaces, so that no line starts a list or a heading.
    """
    return _MARKS.sub(r"\\\1", _TAKEN.sub(_WORD_JOINER, " ".join(text.split())))
