"""Names as text: plain where Streamlit would read Markdown, and cut where they are too long."""

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


_MOST_CHARACTERS: Final = 80


def short(text: str) -> str:
    """A text out of a URL, which may have any length, as a sentence can hold it."""
    return text if len(text) <= _MOST_CHARACTERS else f"{text[: _MOST_CHARACTERS - 1]}…"


def plain(text: str) -> str:
    """Text that Streamlit's Markdown shows as it is: a name out of a report is never markup, and an address in it no link.

    Line breaks become spaces, so that no line starts a list or a heading.
    """
    return _MARKS.sub(r"\\\1", _TAKEN.sub(_WORD_JOINER, " ".join(text.split())))


def cut(name: str, most: int) -> str:
    """A name that fits: C++ says what it is at the front."""
    name = " ".join(str(name).split()).removeprefix("void ")
    return name if len(name) <= most else f"{name[: most - 1]}…"
