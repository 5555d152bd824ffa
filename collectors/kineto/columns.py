"""Columns of arrays from values of any type, as a trace has them."""

from collections.abc import Sequence
from itertools import chain
from operator import attrgetter
from typing import Any, Final, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from warpladder.data.arrays import Int64s, integers

Codes: TypeAlias = npt.NDArray[np.int32]

_MOST: Final = 1 << 62
#: Values of which the numbers are kept beside those of their texts.
_MOST_KEPT: Final = 1 << 16


def int_column(values: Sequence[Any]) -> pa.Array:
    """A column of int64; null where a value is no integer."""
    try:
        return pa.array(values, pa.int64())
    except (pa.ArrowException, OverflowError):
        return pa.array([_integer(value) for value in values], pa.int64())


def _integer(value: Any) -> int | None:
    try:
        number = int(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if abs(number) < _MOST else None


def numbers(values: Sequence[Any]) -> Int64s:
    """The same as an array, with 0 in place of null."""
    return integers(int_column(values))


def int_columns(arguments: Sequence[Any], *names: str) -> dict[str, pa.Array]:
    """Columns of int64 of arguments, by their names."""
    return {name: int_column(list(map(attrgetter(name), arguments))) for name in names}


def triples(values: Sequence[Any]) -> tuple[pa.Array, pa.Array, pa.Array]:
    """Three columns from lists of three integers; null where a value is no such list."""
    try:
        if set(map(len, values)) == {3}:
            flat = np.array(list(chain.from_iterable(values)), np.int64)
            return pa.array(flat[::3]), pa.array(flat[1::3]), pa.array(flat[2::3])
    except (TypeError, ValueError, OverflowError):
        pass
    whole = [value if isinstance(value, list) and len(value) == 3 else (None,) * 3 for value in values]
    x, y, z = (int_column([each[axis] for each in whole]) for axis in range(3))
    return x, y, z


def raw_texts(values: Sequence[msgspec.Raw], most: int) -> list[bytes]:
    """JSON as the trace has it, at most so many bytes of each."""
    texts = list(map(bytes, values))
    return texts if max(map(len, texts), default=0) <= most else [text[:most] for text in texts]


class Texts:
    """Numbers texts 0, 1, 2… in the order of their first appearance. `of`: the numbers."""

    def __init__(self) -> None:
        self.of: dict[str, int] = {"": 0}
        self._codes = _Codes(self.of)
        self._all: pa.Array | None = None

    def codes(self, values: Sequence[Any]) -> Codes:
        """The number of each text. What is no text is numbered as its text; None as the empty one."""
        try:
            return np.fromiter(map(self._codes.__getitem__, values), np.int32, len(values))
        except TypeError:  # a list or an object
            texts = [value if isinstance(value, str) else str(value) for value in values]
            return np.fromiter(map(self._codes.__getitem__, texts), np.int32, len(values))

    def column(self, codes: Codes | pa.Array) -> pa.Array:
        """A text column from numbers."""
        if self._all is None or len(self._all) < len(self.of):
            self._all = pa.array(list(self.of), pa.string())
        return pa.DictionaryArray.from_arrays(pa.array(codes), self._all)


class _Codes(dict[Any, int]):
    """The numbers of values, with the next one for a new text. `of`: the numbers of all texts."""

    def __init__(self, of: dict[str, int]) -> None:
        super().__init__({None: 0})
        self._of = of

    def __missing__(self, value: Any) -> int:
        text = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
        if not text.isascii():  # it may have half a character
            text = text.encode("utf-8", "replace").decode()
        code = self._of.setdefault(text, len(self._of))
        if isinstance(value, (str, bytes)) and len(self) < _MOST_KEPT:  # True is equal to 1, and has another text
            self[value] = code
        return code
