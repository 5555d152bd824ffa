"""Cases of a workload, the axes that they are points of, their buffers, and their parts: a case is divided among ranks, or for
overlapped copies."""

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Final, Literal

import numpy as np

from warpladder.errors import Error

# -- cases -----------------------------------------------------------------------------------------------------------------------

Array = Any  # numpy.ndarray on the host, cupy.ndarray on a GPU
Params = Mapping[str, Any]
Buffers = Mapping[str, Array]
CaseSet = Literal["quick", "report", "full"]

#: Largest number that a column of a run holds.
LARGEST: Final = 2**63 - 1
#: Name of the case of a workload without axes.
ONLY: Final = "only"
_AT_ONCE: Final = 1 << 16  # numbers that are rounded


class WorkloadError(Error):
    """An error in a workload. The message says where it is, what is wrong, and what to do, in one line."""


@dataclass(frozen=True)
class Buffer:
    """Shape and type of an input, an output or scratch.

    Attributes:
        shape, dtype: as of a NumPy array; also `bfloat16`, `float8_e4m3fn` and `float8_e5m2`.
        zeroed: scratch that holds 0 before the first operation, such as a counter. Each operation must leave it at 0.
        varies: the shape of an output depends on the numbers in the inputs, as that of `np.unique` does; this one is of the first input set.
    """

    shape: tuple[int, ...]
    dtype: str = "float32"
    zeroed: bool = False
    varies: bool = False

    @property
    def storage(self) -> str:
        """The type of the array that holds it: unsigned integers for a type that NumPy lacks."""
        return STORAGE.get(self.dtype, self.dtype)

    @property
    def kind(self) -> str:
        """`numpy.dtype.kind` of its values."""
        return "f" if self.dtype in STORAGE else np.dtype(self.dtype).kind

    @property
    def nbytes(self) -> int:
        return math.prod(int(extent) for extent in self.shape) * np.dtype(self.storage).itemsize


@dataclass(frozen=True)
class Case:
    """One point of a workload's own axes.

    Attributes:
        params: the axes, e.g. `{"n": 512, "perm": "210"}`; the case is named after them.
        flops: operations of the definition, a multiply-add counted as two.
        min_bytes: each input read once and each output written once, in bytes, in all passes together. None if the arrays tell it,
            once they are made.
        sets: which of `--set quick|report|full` take it.
        size_rank: order on the size axis; None for a case that is verified but not charted.
        resident: inputs that lie on the device before the clock of the scope `end_to_end` starts, such as the weights of a model
            that serves many requests. No variant copies them there.
        passes: how often the operation goes over its arrays, such as the number of its calls. A cache may hold them after the first.
    """

    params: Params
    flops: int
    min_bytes: int | None
    sets: tuple[CaseSet, ...] = ("full",)
    size_rank: int | None = 0
    resident: tuple[str, ...] = ()
    passes: int = 1

    def __post_init__(self) -> None:
        """Turn NumPy's numbers into Python's, and refuse fractions where a run stores whole numbers."""
        object.__setattr__(self, "params", {key: _plain(value) for key, value in self.params.items()})
        try:
            json.dumps(self.params)
            self.name.encode()
        except (TypeError, ValueError) as error:
            raise WorkloadError(f"case {self.name!a}: {error}; give params numbers and texts") from error
        for attribute in ("flops", "min_bytes", "size_rank", "passes"):
            number = _plain(getattr(self, attribute))
            if attribute in ("min_bytes", "size_rank") and number is None:
                continue
            if not (isinstance(number, int | float) and -LARGEST <= number <= LARGEST and int(number) == number):
                raise WorkloadError(f"case {self.name}: {attribute} is {number}; give a whole number of at most 2^63 - 1")
            object.__setattr__(self, attribute, int(number))
        if self.passes < 1:
            raise WorkloadError(f"case {self.name}: passes is {self.passes}; give at least 1")

    @property
    def name(self) -> str:
        return format_params(self.params) or ONLY


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def format_params(params: Params) -> str:
    """`n=512,perm=210` for `{"n": 512, "perm": "210"}`."""
    return ",".join(f"{key}={value}" for key, value in params.items())


@dataclass(frozen=True)
class Part:
    """A share of a case: the share of one rank, or one whose copies overlap the kernels of other parts.

    Attributes:
        case: the smaller case that the kernels are launched for. Where its buffer has fewer rows along the first axis than that
            of the whole case, the part has the rows of the whole buffer that begin at `first`.
        first: the first of those rows.
    """

    case: Case
    first: int


class NotShareable(Exception):
    """A case that cannot be shared among so many ranks. The message is the reason."""


def split_evenly(count: int, ranks: int, what: str) -> tuple[tuple[int, int], ...]:
    """The first item and the number of items of each rank's share. Shares follow one another; the first ones have one
    item more where needed. Raises NotShareable: a rank would have none.

    Args:
        count: number of items.
        ranks: number of shares.
        what: name of the items, for the message.
    """
    if count < ranks:
        raise NotShareable(f"{count} {what} cannot be shared among {ranks} ranks")
    least, remaining = divmod(count, ranks)
    return tuple((rank * least + min(rank, remaining), least + (rank < remaining)) for rank in range(ranks))


# -- axes ------------------------------------------------------------------------------------------------------------------------

#: A largest value from which on a message names none.
_NO_LIMIT: Final = 2**53


class AxisError(Error):
    """A text does not name a case. The message says why."""


@dataclass(frozen=True)
class Axis:
    """One axis of a workload's cases: whole numbers, several of them joined by `x`, or words to choose from.

    Attributes:
        name: as in the case's parameters.
        low, high: least and largest whole number; of each extent where there are several.
        extents: how many whole numbers a value has: `400x336x448` has 3.
        words: the allowed words; empty for an axis of numbers.
        optional: a case may leave it out.
        instead_of: name of the axis that this one replaces.
        default: text of the value that a case has if it leaves the axis out; empty if there is none.
    """

    name: str
    low: int = 1
    high: int = 1
    extents: int = 1
    words: tuple[str, ...] = ()
    optional: bool = False
    instead_of: str = ""
    default: str = ""

    def __str__(self) -> str:
        if self.words:
            values = " or ".join(self.words)
        else:
            values = f"from {self.low}" if self.high >= _NO_LIMIT else f"{self.low} to {self.high:,}"
            values = f"{'x'.join(['N'] * self.extents)}, each {values}" if self.extents > 1 else values
        left_out = ", may be left out" if self.optional else f", {self.default} if left out" if self.default else ""
        return f"{self.name} ({values}{left_out})"

    def parse(self, text: str) -> Any:
        """The value that a text stands for. Raises AxisError."""
        if self.words:
            if text not in self.words:
                raise AxisError(f"{self.name}={text} is none of {', '.join(self.words)}")
            return text
        numbers = text.split("x")
        if len(numbers) != self.extents or not all(number.isascii() and number.isdigit() for number in numbers):
            what = "a whole number" if self.extents == 1 else f"{self.extents} whole numbers joined by x"
            raise AxisError(f"{self.name}={text} is not {what}")
        for number in map(int, numbers):
            if not self.low <= number <= self.high:
                raise AxisError(f"{self.name}={text} is not within {self.low} to {self.high:,}")
        return int(text) if self.extents == 1 else "x".join(str(int(number)) for number in numbers)


def parse_params(text: str, axes: Sequence[Axis]) -> dict[str, Any]:
    """Parameters of a case, in the order of the axes. Raises AxisError: an axis is unknown, given twice, missing
    without a default, or given beside the one that it replaces; or a value is not allowed.

    Args:
        text: such as `layer=2,batch=64`.
        axes: of the workload.
    """
    texts: dict[str, str] = {}
    for part in text.split(","):
        name, equals, value = part.strip().partition("=")
        if not equals:
            raise AxisError(f"{part.strip() or 'nothing'} is not NAME=VALUE")
        if name not in {axis.name for axis in axes}:
            raise AxisError(f"there is no axis {name}")
        if name in texts:
            raise AxisError(f"{name} is given twice")
        texts[name] = value
    for axis in axes:
        instead = [other.name for other in axes if other.instead_of == axis.name]
        if axis.name in texts and axis.instead_of in texts:
            raise AxisError(f"{axis.name} stands in place of {axis.instead_of}; give one of them, or a --case for each")
        if axis.default:
            texts.setdefault(axis.name, axis.default)
        elif not axis.optional and not axis.instead_of and axis.name not in texts and not set(instead) & set(texts):
            raise AxisError(f"{' or '.join([axis.name, *instead])} is missing")
    return {axis.name: axis.parse(texts[axis.name]) for axis in axes if axis.name in texts}


def describe(axes: Sequence[Axis]) -> str:
    """The axes on one line, for a message."""
    return "; ".join(f"{axis}{f' in place of {axis.instead_of}' if axis.instead_of else ''}" for axis in axes)


def sweep(axes: Sequence[str]) -> Iterator[str]:
    """The cases of a sweep, as texts: every combination of the values. Raises AxisError: one is not NAME=VALUE,VALUE.
    `axes`: one text for each axis, such as `n=1000,2000,4000`."""
    values: Mapping[str, list[str]] = {}
    for text in axes:
        name, equals, rest = text.partition("=")
        if not name.strip() or not equals or not all(value.strip() for value in rest.split(",")):
            raise AxisError(f"{text} is not NAME=VALUE,VALUE...")
        if name.strip() in values:
            raise AxisError(f"{name.strip()} is given twice")
        values = {**values, name.strip(): [value.strip() for value in rest.split(",")]}
    for combination in product(*values.values()):
        yield ",".join(f"{name}={value}" for name, value in zip(values, combination, strict=True))


def up_to(most: int, unit: str, count: Callable[[Case], float]) -> Callable[[Case, Params], str | None]:
    """A function for `Variant.skip` that skips larger cases.

    There a call takes seconds or minutes, and the ratio to other variants stays the same.

    Args:
        most: number of units of the largest case that is measured.
        unit: name of the units that the time grows with, e.g. `images`.
        count: gives the number of units of a case.
    """
    reason = f"too slow for this case: its time grows with the number of {unit}, so it is measured up to {most:,} {unit}"

    def skip(case: Case, config: Params) -> str | None:
        return reason if count(case) > most else None

    return skip


# -- types that NumPy lacks ------------------------------------------------------------------------------------------------------

#: Type, by the name that PyTorch and JAX give it -> the unsigned integers that hold its bits.
STORAGE: Final[Mapping[str, str]] = {"bfloat16": "uint16", "float8_e4m3fn": "uint8", "float8_e5m2": "uint8"}


def widened(bits: Any, dtype: str) -> Any:
    """The values of an array in float32, which holds all of them exactly. Another type's array is returned as it is.

    Formats: bfloat16 is the upper half of IEEE binary32, and E5M2 that of binary16. E4M3 has a bias of 7, no infinity, and NaN
    where all bits but the sign are set (Micikevicius et al., "FP8 Formats for Deep Learning", 2022).

    Args:
        bits: a NumPy or CuPy array of the type's `STORAGE`.
        dtype: name of the type.
    """
    match dtype:
        case "bfloat16":
            return (bits.astype(np.uint32) << 16).view(np.float32)
        case "float8_e5m2":
            return (bits.astype(np.uint16) << 8).view(np.float16).astype(np.float32)
        case "float8_e4m3fn":
            exponent, mantissa = (bits >> 3) & 15, (bits & 7).astype(np.float32)
            size = np.ldexp(mantissa + np.float32(8) * (exponent > 0), np.maximum(exponent, 1).astype(np.int32) - 10)
            size = np.where((bits & 127) == 127, np.float32(np.nan), size)
            return np.where(bits >> 7, -size, size)
    return bits


def narrowed(values: Any, dtype: str) -> Any:
    """Numbers of float32 to the nearest of a type, ties to even, as an array of the type's `STORAGE`; `widened` gives their values.

    Args:
        values: a NumPy array of finite numbers. Those beyond the largest of E4M3 become 448.
        dtype: `bfloat16`, `float8_e4m3fn`, or a type that NumPy has.
    """
    if dtype == "bfloat16":
        return _upper_halves(np.ascontiguousarray(values).view(np.uint32).reshape(-1)).reshape(values.shape)
    if dtype != "float8_e4m3fn":
        return values.astype(dtype)
    # Three bits of fraction, the least exponent is -6. A fraction that is rounded up to 16 eighths goes on into the exponent.
    size = np.minimum(np.abs(values), 448)
    exponent = np.frexp(np.maximum(size, np.float32(2.0**-6)))[1] - 1
    eighths = np.rint(np.ldexp(size, 3 - exponent))
    return ((exponent + 6) * 8 + eighths).astype(np.uint8) | np.signbit(values).astype(np.uint8) << 7


def _upper_halves(bits: np.ndarray) -> np.ndarray:
    """The upper halves of numbers of 32 bits, rounded. A part at a time, which stays in the processor's caches."""
    halves = np.empty(bits.shape, np.uint16)
    for start in range(0, bits.size, _AT_ONCE):
        part = bits[start : start + _AT_ONCE]
        rounded = part >> 16 & 1
        rounded += part
        rounded += 0x7FFF
        halves[start : start + _AT_ONCE] = rounded >> 16
    return halves
