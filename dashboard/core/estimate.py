"""A figure with the ends of its interval."""

from dataclasses import dataclass
from math import isnan, nan
from typing import Any, Self


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

    def times(self, factor: float) -> "Estimate":
        """The same estimate in another unit."""
        return Estimate(self.value * factor, self.low * factor, self.high * factor)
