"""Plain text where Streamlit would read Markdown."""

import re
from typing import Final

_MARKS: Final = re.compile(r"([\\`*_{}\[\]()#+\-.!|<>$:~&^=])")


def plain(text: str) -> str:
    """Text that Streamlit's Markdown shows as it is: a name out of a report is never markup.

    Line breaks become spaces, so that no line starts a list or a heading.
    """
    return _MARKS.sub(r"\\\1", " ".join(text.split()))
