"""A figure with the ends of its interval."""

from dataclasses import dataclass
from typing import Any, Self


@dataclass(frozen=True)
class Estimate:
    """A figure and the ends of its interval, in one unit; NaN where they are not known.

    A frame holds an estimate as three columns: `name`, `name_low` and `name_high`; a median as `median_ns`, `low_ns` and `high_ns`.
    """

    value: float
    low: float
    high: float

    @classmethod
    def of(cls, row: Any, name: str) -> Self:
        """That of the columns `name`, `name_low` and `name_high` of a row."""
        return cls(row[name], row[f"{name}_low"], row[f"{name}_high"])

    @classmethod
    def median_ns(cls, row: Any) -> Self:
        """The median of a row of `cells`, in nanoseconds."""
        return cls(row["median_ns"], row["low_ns"], row["high_ns"])

    def columns(self, name: str) -> dict[str, float]:
        """The columns that hold it in a frame."""
        return {name: self.value, f"{name}_low": self.low, f"{name}_high": self.high}

    def times(self, factor: float) -> "Estimate":
        """The same in another unit, or another way of counting."""
        return Estimate(self.value * factor, self.low * factor, self.high * factor)
