"""How the arrays of a case came to a library: a part of column `detail` of `results`, written by collectors and read by the dashboard."""

import re
from typing import Final

_TEXT: Final = re.compile(r"(?:^|; )hand-over: (zero-copy|copied) by ([^;]+)(?:;|$)")


def text_of(zero_copy: bool, interface: str) -> str:
    """`hand-over: zero-copy by DLPack`.

    Args:
        zero_copy: the library works on the memory of the arrays themselves.
        interface: what told it their addresses; without a semicolon.
    """
    return f"hand-over: {'zero-copy' if zero_copy else 'copied'} by {interface}"


def of_detail(detail: str) -> tuple[bool, str] | None:
    """Whether the hand-over was zero-copy, and its interface; None where the detail does not tell."""
    match = _TEXT.search(detail)
    return (match[1] == "zero-copy", match[2]) if match else None
