"""A cell in the records that queries hand on: its timing, its figures with their intervals, and its place among the others."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from math import isnan, nan
from typing import Any, Final, NamedTuple, Self, TypeVar, get_type_hints

import pandas as pd


@dataclass(frozen=True)
class Estimate:
    """A figure and the ends of its interval, in one unit. All three are NaN where the figure is not known.

    A frame holds an estimate as three columns: `name`, `name_low` and `name_high`. For the median of a cell the columns are
    `median_ns`, `low_ns` and `high_ns`.
    """

    value: float
    low: float
    high: float

    @classmethod
    def names(cls, name: str) -> tuple[str, str, str]:
        """The columns that hold an estimate in a frame."""
        return ("median_ns", "low_ns", "high_ns") if name == "median_ns" else (name, f"{name}_low", f"{name}_high")

    @classmethod
    def of(cls, row: Any, name: str) -> Self:
        """The estimate of a row that has the columns `names(name)`."""
        return cls(*(row[column] for column in cls.names(name)))

    @classmethod
    def unknown(cls) -> Self:
        """An estimate of which nothing is known."""
        return cls(nan, nan, nan)

    @property
    def known(self) -> bool:
        """Whether there is a figure."""
        return not isnan(self.value)

    def columns(self, name: str) -> dict[str, float]:
        """Names and values of the columns that hold the estimate in a frame."""
        return dict(zip(self.names(name), (self.value, self.low, self.high), strict=True))

    def map(self, write: Callable[[float], float]) -> "Estimate":
        """Another figure of the same one, computed of each end."""
        return Estimate(write(self.value), write(self.low), write(self.high))

    def times(self, factor: float) -> "Estimate":
        """The same estimate in another unit."""
        return self.map(lambda value: value * factor)


@dataclass(frozen=True)
class Timing:
    """How a cell is timed: a scope, and the state of the caches."""

    scope: str
    cache: str

    def label(self, *, on_gpu: bool) -> str:
        """The timing in words: `device time, cold L2`, or `operation time, caches warm` on a processor."""
        caches = f"{self.cache} L2" if on_gpu else f"caches {'warm' if self.cache == 'hot' else self.cache}"
        return f"{self.scope.replace('_', ' ')} time, {caches}"


class Entry(NamedTuple):
    """A participant in the rounds of a case: a variant with a config, or the baseline's second entry (twin = 1)."""

    variant: str
    config: str
    gpus: int
    twin: int


@dataclass(frozen=True)
class Baseline:
    """The cell of a case that speedups are counted from.

    Attributes:
        gpus: as in `samples`; 0 on a host.
        doubt: why it may not be called best, so that there is no speedup over it; see `trusted.doubt`.
    """

    variant: str
    config: str
    gpus: int
    doubt: str

    @property
    def no_speedup(self) -> str:
        """Why there is no speedup over it; empty where there is one."""
        return f"no speedup: the baseline {name_of(self.variant, self.config)} is {self.doubt}" if self.doubt else ""


#: The order of the roles of variants in charts and tables.
ROLE_ORDER: Final = ("ceiling", "rung", "peer", "host", "specimen")
#: The roles of variants that do not compete.
ASIDE: Final = ("ceiling", "specimen")


def name_of(variant: str, config: str) -> str:
    """`v03_tile[block=16]`."""
    return f"{variant}[{config}]" if config else variant


def name_on(variant: str, config: str, gpus: int) -> str:
    """`v03_tile[block=16] on 2 GPUs`, with the GPUs where several worked together."""
    return f"{name_of(variant, config)}{f' on {gpus} GPUs' if gpus > 1 else ''}"


@dataclass(frozen=True)
class Cell:
    """A row of `cells.cells`, which documents its columns; see `records.records`."""

    workload: str
    variant: str
    config: str
    case: str
    gpus: int
    cache: str
    scope: str
    n: int
    median_ns: Estimate
    interval_kind: str
    role: str
    kind: str
    precision: str
    title: str
    gb_per_s: Estimate
    gflop_per_s: Estimate
    percent_of_floor: Estimate
    floor_ns: float
    floor_bound: str
    floor_ceiling: str
    status: str
    detail: str
    rel_l2_error: float
    flags: tuple[str, ...]

    @property
    def entry(self) -> Entry:
        """The cell among those sampled in its case and timing."""
        return Entry(self.variant, self.config, self.gpus, 0)


@dataclass(frozen=True)
class Contender(Cell):
    """A cell of a charted case: `size`, `series` and `size_value` are columns of `axes.charted_cases`."""

    size_rank: int
    size: str
    series: str


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


_CONVERT: Final[dict[Any, Callable[[Any], Any]]] = {
    str: lambda value: "" if pd.isna(value) else str(value),
    int: lambda value: 0 if pd.isna(value) else int(value),
    bool: bool,
}


def with_estimates(frame: pd.DataFrame, name: str, estimates: Sequence[Estimate]) -> pd.DataFrame:
    """The frame with the three columns of an estimate, one estimate for each row."""
    figures = pd.DataFrame([each.columns(name) for each in estimates], frame.index, list(Estimate.names(name)), dtype=float)
    return frame.assign(**{str(column): values for column, values in figures.items()})
