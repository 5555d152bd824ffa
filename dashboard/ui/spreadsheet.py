"""Frames as CSV files in which a spreadsheet computes nothing."""

from typing import Any, Final

import pandas as pd

from warpladder.data.files import one_line

#: The beginnings of cells that spreadsheets compute (OWASP, CSV injection), also in full width.
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\n", "＝", "＋", "－", "＠")


def csv(frame: pd.DataFrame) -> str:
    """A frame as CSV without its index. A text that looks like a formula gets an apostrophe; numbers stay."""
    texts = [name for name in frame.columns if frame[name].dtype.kind == "O"]
    inert = frame.assign(**{name: frame[name].astype(object).map(_inert) for name in texts})
    return str(inert.rename(columns=_inert).to_csv(index=False))


def _inert(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    # A carriage return alone is not quoted, and would start a new row.
    text = "\n".join(map(one_line, value.replace("\r\n", "\n").replace("\r", "\n").split("\n")))
    return f"'{text}" if text.startswith(_FORMULA) else text
