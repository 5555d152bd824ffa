"""A cell in the records that queries hand on: its timing, its figures with their intervals, and its place among the others."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isnan, nan
from types import SimpleNamespace
from typing import Any, Final, NamedTuple, Self, get_type_hints

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


def name_on(variant: str, config: str, gpus: int, *, on_host: bool = False) -> str:
    """`v03_tile[block=16] on 2 GPUs`, with the GPUs, or on the host the processes, where several worked together."""
    ranks = "processes" if on_host else "GPUs"
    return f"{name_of(variant, config)}{f' on {gpus} {ranks}' if gpus > 1 else ''}"


class Cell(SimpleNamespace):
    """A row of a frame of cells, such as `cells.cells` or `ladder`: each column is an attribute, which the query of the frame documents.

    The three columns of an estimate are one attribute, of type `Estimate`. A null is NaN in a column of floats, 0 in one of whole
    numbers, and empty in one of texts. Below are columns of `cells.cells` and of comparisons. A column of nulls alone has the type that it
    has here.
    """

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
    rung: int
    size_rank: int
    percent_of_floor: Estimate
    floor_ns: float
    floor_bound: str
    floor_ceiling: str
    status: str
    detail: str
    rel_l2_error: float
    flags: tuple[str, ...]
    size: str
    series: str
    speedup: Estimate
    verdict: str
    baseline: str
    baseline_config: str
    no_speedup: str
    tied_with: str
    gain: Estimate
    gain_verdict: str
    gain_over: str
    gain_from: str
    ratio: Estimate
    energy: Estimate
    per_watt_unit: str
    energy_verdict: str
    peer: str
    over_peer: Estimate
    over_peer_verdict: str
    compared_in: str
    runner_up: str
    margin: Estimate
    tied: bool
    passed: str
    on: str
    doubts: str

    @property
    def entry(self) -> Entry:
        """The cell among those sampled in its case and timing."""
        return Entry(self.variant, self.config, self.gpus, 0)


#: The types of columns, of which a null tells nothing.
_TYPES: Final = get_type_hints(Cell)


def records(frame: pd.DataFrame) -> list[Cell]:
    names = [str(name) for name in frame.columns]
    estimates = {name: columns for name in names if set(columns := Estimate.names(name)) <= set(names)}
    ends = {end for columns in estimates.values() for end in columns[1:]}
    values = {name: _values(frame, name, estimates.get(name, ())) for name in names if name not in ends}
    return [Cell(**dict(zip(values, row, strict=True))) for row in zip(*values.values(), strict=True)]


def _values(frame: pd.DataFrame, name: str, estimate: Sequence[str]) -> list[Any]:
    if estimate:
        ends = [frame[column].astype(float).tolist() for column in estimate]
        return [Estimate(*figures) for figures in zip(*ends, strict=True)]
    column, kind = frame[name], _TYPES.get(name)
    if kind is int or pd.api.types.is_integer_dtype(column):
        return column.fillna(0).astype(int).tolist()
    values: list[Any] = column.tolist()
    if kind is not str and (pd.api.types.is_float_dtype(column) or pd.api.types.is_bool_dtype(column)):
        return values
    return [value if isinstance(value, str | tuple) else "" if pd.isna(value) else value for value in values]


def with_estimates(frame: pd.DataFrame, name: str, estimates: Sequence[Estimate]) -> pd.DataFrame:
    """The frame with the three columns of an estimate, one estimate for each row."""
    figures = pd.DataFrame([each.columns(name) for each in estimates], frame.index, list(Estimate.names(name)), dtype=float)
    return frame.assign(**{str(column): values for column, values in figures.items()})
