"""Mends text that profilers write for JSON though it is none.

PyTorch's profiler writes `inf`, `nan` and `N/A` for numbers, and the backslashes and control characters of names as they are. Python's `json`
writes `NaN` and `Infinity`. A text that is damaged in another way does not become JSON here.
"""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Final

_SPACE: Final = rb"[ \t\r\n]"
_ESCAPE: Final = (
    rb'\\(?:["\\/bfnrt]|u(?![dD][89a-fA-F])[0-9a-fA-F]{4}|u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})'
)
_TEXT: Final = rb'"[^"\\\x00-\x1f]*+(?:%s[^"\\\x00-\x1f]*+)*+"' % _ESCAPE
_NUMBER: Final = rb"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?+(?:[eE][+-]?[0-9]++)?+"
#: JSON from a place on, up to what is none. It looks at no grammar but at commas and colons before nothing.
_JSON: Final = re.compile(
    rb"(?:%(space)s++|[\[\]{}]|[,:](?!%(space)s*+[,\]}])|%(text)s|(?:%(number)s|true|false|null)(?=[ \t\r\n,\]}:]|\Z))*+"
    % {b"space": _SPACE, b"text": _TEXT, b"number": _NUMBER}
)
_WORD: Final = re.compile(rb'[^ \t\r\n\[\]{},:"]++')
#: A text up to the quote that closes it, if each backslash escapes what follows; and to the first quote that may close one.
_ESCAPED: Final = re.compile(rb'"((?:[^"\\]|\\.)*+)"(?=%s*+[,:\]}])' % _SPACE, re.DOTALL)
_CLOSED: Final = re.compile(rb'"(.*?)"(?=%s*+[,:\]}])' % _SPACE, re.DOTALL)
#: A backslash that stands for itself in a text whose writer escapes none: `C:\new\cuda` has no new line.
_ALONE: Final = re.compile(rb'(?<!\\)\\(?![\\"])')
_VALID: Final = re.compile(_ESCAPE)
_INSIDE: Final = re.compile(rb"%s|\\u[0-9a-fA-F]{4}|\\|[\x00-\x1f]" % _ESCAPE)
_NO_NUMBER: Final = re.compile(
    rb"(?i)[+-]?(?:inf|infinity|nan|1\.#(?:inf|qnan|snan|ind))(?:\([a-z0-9_]*\))?|n/?a|none|undefined"
)
_LOOSE_NUMBER: Final = re.compile(rb"([+-]?)0*([0-9]*)\.?([0-9]*)((?:[eE][+-]?[0-9]+)?)")
#: The name of a field whose value comes next.
_KEY: Final = re.compile(rb'"([^"\\\x00-\x1f]{1,40})"%s*:%s*\Z' % (_SPACE, _SPACE))
_KEY_BYTES: Final = 60
_LOGICAL: Final = {b"True": b"true", b"False": b"false"}

NUMBERS: Final = "`inf`, `NaN` or `N/A` in place of a number{where}, which counts as missing"
LOOSE: Final = "numbers in a notation that JSON lacks"
BACKSLASHES: Final = "backslashes that escape nothing"
CONTROLS: Final = "control characters in texts"
COMMAS: Final = "commas and colons before nothing"
BYTES: Final = "texts with bytes that are no UTF-8"


class NotMended(ValueError):
    """The text is damaged in another way."""


def mended(text: bytes) -> tuple[bytes, Counter[str]]:
    """The text as JSON, and how many places of each kind were changed. Its brackets are not looked at. Raises
    NotMended: a place is damaged in another way."""
    changed = Counter[str]()
    try:
        text.decode()
    except UnicodeDecodeError:
        changed[BYTES] += 1
        text = text.decode("utf-8", "replace").encode()
    return b"".join(_parts(text, changed)), changed


def _parts(text: bytes, changed: Counter[str]) -> Iterator[bytes]:
    place = 0
    while True:
        found = _JSON.match(text, place)
        place = found.end() if found else place
        if found:
            yield found[0]
        if place == len(text):
            return
        if text[place : place + 1] == b'"':
            part, place = _text(text, place, changed)
        elif text[place : place + 1] in b",:":
            part, place = b": null" if text[place : place + 1] == b":" else b"", place + 1
            changed[COMMAS] += 1
        else:
            part, place = _number(text, place, changed)
        yield part


def _text(text: bytes, place: int, changed: Counter[str]) -> tuple[bytes, int]:
    """A text that is none in JSON, mended, and the place behind it."""
    found = _ESCAPED.match(text, place) or _CLOSED.match(text, place)
    if not found:
        raise NotMended("truncated: a text without an end")
    inner = found[1]
    if found.re is _CLOSED:
        changed[BACKSLASHES] += inner.count(b"\\")
        inner = inner.replace(b"\\", b"\\\\").replace(b'"', b'\\"')
    elif any(each[0] == b"\\" for each in _INSIDE.finditer(inner)):
        inner, count = _ALONE.subn(rb"\\\\", inner)
        changed[BACKSLASHES] += count
    return b'"' + _INSIDE.sub(lambda each: _escaped(each[0], changed), inner) + b'"', found.end()


def _escaped(found: bytes, changed: Counter[str]) -> bytes:
    if found[0] < ord(" "):
        changed[CONTROLS] += 1
        return b"\\u%04x" % found[0]
    if _VALID.fullmatch(found):
        return found
    changed[BYTES] += 1  # half of a pair of UTF-16
    return b"\\ufffd"


def _number(text: bytes, place: int, changed: Counter[str]) -> tuple[bytes, int]:
    """A word that is no JSON: null where it stands for no number."""
    found = _WORD.match(text, place)
    word = found[0] if found else b""
    end = place + len(word)
    if _NO_NUMBER.fullmatch(word):
        named = _KEY.search(text, max(place - _KEY_BYTES, 0), place)
        where = f" in `{named[1].decode('utf-8', 'replace')}`" if named else ""
        changed[NUMBERS.format(where=where)] += 1
        return b"null", end
    if word in _LOGICAL:
        return _LOGICAL[word], end
    loose = _LOOSE_NUMBER.fullmatch(word)
    if loose and (loose[2] or loose[3]):
        changed[LOOSE] += 1
        sign = b"-" if loose[1] == b"-" else b""
        return sign + (loose[2] or b"0") + (b"." + loose[3] if loose[3] else b"") + loose[4], end
    if word and not word.strip(bytes(range(33))):
        changed[CONTROLS] += len(word)
        return b"", end
    if end == len(text):
        raise NotMended("truncated: a word without an end")
    raise NotMended(f"`{word[:20].decode('ascii', 'replace')}` is no number")
