"""Rows of a frame as records: dataclasses whose fields are columns.

A frame is a series: it is sorted, filtered, exported and drawn as a whole. A record is one row that code reads by its names.
"""

from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any, Final, TypeVar, get_type_hints

import pandas as pd

from warpladder.dashboard.core.estimate import Estimate

_Record = TypeVar("_Record")


def records(kind: type[_Record], frame: pd.DataFrame) -> list[_Record]:
    """The rows of a frame as records of a dataclass.

    A field takes the column of its name. A field of type `Estimate` takes the three columns that hold an estimate. A null
    becomes NaN in a field of type `float`, an empty text in a field of type `str`, and 0 in a field of type `int`.

    Args:
        kind: a dataclass whose fields have the types `str`, `int`, `float`, `bool`, `Estimate` or `tuple[str, ...]`.
        frame: may have further columns.
    """
    hints = get_type_hints(kind)
    names = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    columns = [_column(frame, name, hints[name]) for name in names]
    return [kind(**dict(zip(names, row, strict=True))) for row in zip(*columns, strict=True)]


def _column(frame: pd.DataFrame, name: str, hint: Any) -> list[Any]:
    if hint is Estimate:
        ends = [frame[column].astype(float).tolist() for column in Estimate.names(name)]
        return [Estimate(*figures) for figures in zip(*ends, strict=True)]
    if hint is float:
        return frame[name].astype(float).tolist()
    convert = _CONVERT.get(hint, tuple)
    return [convert(value) for value in frame[name].tolist()]


def _text(value: Any) -> str:
    return "" if pd.isna(value) else str(value)


def _whole(value: Any) -> int:
    return 0 if pd.isna(value) else int(value)


_CONVERT: Final[dict[Any, Callable[[Any], Any]]] = {str: _text, int: _whole, bool: bool}


def with_estimates(frame: pd.DataFrame, name: str, estimates: Sequence[Estimate]) -> pd.DataFrame:
    """The frame with the three columns of an estimate, one estimate for each row."""
    figures = pd.DataFrame([each.columns(name) for each in estimates], frame.index, list(Estimate.names(name)), dtype=float)
    return frame.assign(**{str(column): values for column, values in figures.items()})
