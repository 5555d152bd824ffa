"""Frames as CSV that a spreadsheet opens as what it is."""

from typing import Any, Final

import pandas as pd

#: How a cell begins that spreadsheets compute (OWASP, CSV injection), in full width too.
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\n", "＝", "＋", "－", "＠")


def csv(frame: pd.DataFrame) -> str:
    """A frame as CSV, without its index. A text that a spreadsheet would take for a formula begins with an apostrophe; numbers stay."""
    texts = [name for name in frame.columns if frame[name].dtype.kind == "O"]
    inert = frame.assign(**{name: frame[name].astype(object).map(_inert) for name in texts})
    return str(inert.rename(columns=_inert).to_csv(index=False))


def _inert(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    # A carriage return alone is not quoted, and would begin a row.
    text = value.replace("\r\n", "\n").replace("\r", "\n")
    return f"'{text}" if text.startswith(_FORMULA) else text
