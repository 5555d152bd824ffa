"""Figures drawn at random from what the pages show, each beside the same figure from the parquet files."""

import math
import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pandas as pd

from tests.recomputed.definitions import Between, Interval, Shipped
from tests.recomputed.displayed import Shown


class Untold:
    """In place of a figure that no definition here tells; it is not drawn."""


UNTOLD: Final = Untold()
#: What a figure is by its definition: a number, a text, the words that are right, the ends between which it lies, or None where the
#: row's own column names the cell and there is nothing to compute.
Expected = float | str | bool | None | Between | set[str] | Interval | Untold
Rule = Callable[[Shipped, Mapping[str, Any], Shown], Expected]
#: Column -> its rule. A column without a figure of its own has None: it names the row.
Rules = Mapping[str, Rule | None]
EACH: Final = 20
#: What is computed from integers by the same definition differs by rounding alone.
_EXACT: Final = 1e-9


@dataclass(frozen=True)
class Figure:
    """A shown figure and the same by its definition."""

    page: str
    run: str
    name: str
    row: str
    column: str
    shown: Any
    expected: Any

    @property
    def agrees(self) -> bool:
        return same(self.shown, self.expected)

    def __str__(self) -> str:
        return f"{self.page} · {self.run} · {self.name} · {self.row} · {self.column}: shown {self.shown!r}, by definition {self.expected!r}"


def same(shown: Any, expected: Any) -> bool:
    """Whether a shown figure is the expected one."""
    if isinstance(expected, Written):
        return expected.fits(shown)
    if isinstance(expected, set):
        return ("" if _null(shown) else shown) in expected
    if isinstance(expected, Between):
        if math.isnan(expected.low) or _null(shown):
            return _null(shown) and math.isnan(expected.low)
        slack = _EXACT * abs(expected.low)
        return expected.low - slack <= float(shown) <= expected.high + slack
    if isinstance(expected, str):
        return ("" if _null(shown) else str(shown)) == expected
    if isinstance(expected, tuple):
        return len(shown) == len(expected) and all(map(same, shown, expected))
    if _null(expected) or _null(shown):
        return _null(expected) and _null(shown)
    return math.isclose(float(shown), float(expected), rel_tol=_EXACT, abs_tol=1e-12)


def _null(value: Any) -> bool:
    return value is None or (not isinstance(value, (str, tuple, list)) and bool(pd.isna(value)))


@dataclass(frozen=True)
class Written:
    """A number that a text shows, to the digits that it has."""

    value: float

    def fits(self, text: str) -> bool:
        digits = re.fullmatch(r"([+-]?[\d,]+(?:\.(\d+))?)\s*(\S*)", text.strip())
        assert digits, text
        number = float(digits[1].replace(",", ""))
        scale = _UNITS.get(digits[3], 1.0)
        places = len(digits[2] or "")
        # Rounded half a digit either way, and `1230` has three digits.
        half = 0.5 * 10.0**-places if places or abs(number) < 1000 else 0.5 * 10.0 ** (len(str(int(abs(number)))) - 3)
        return abs(number - self.value / scale) <= half * (1 + 1e-6)


_UNITS: Final = {
    "ns": 1.0, "µs": 1e3, "ms": 1e6, "s": 1e9, "B": 1.0, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12,
    "GB/s": 1.0, "TB/s": 1e3, "MB/s": 1e-3, "GFLOP/s": 1.0, "TFLOP/s": 1e3,
}  # fmt: skip


def estimate(
    name: str, interval: Callable[[Shipped, Mapping[str, Any], Shown], Interval | None], ends: Sequence[str] = ()
) -> dict[str, Rule]:
    """The rules of a figure and the two ends of its interval. A figure without an interval is not known."""
    columns = ends or (name, f"{name}_low", f"{name}_high")

    def end(place: int) -> Rule:
        return lambda run, row, shown: found[place] if (found := interval(run, row, shown)) else None

    return {column: end(place) for place, column in enumerate(columns)}


#: A run, rows of a page of it, their rules.
Table = tuple[Shipped, Shown, Rules]


def draw(
    rng: random.Random,
    found: Sequence[Table],
    numbers: Callable[[Shipped, Shown], Sequence[tuple[str, Written]]],
    count: int = EACH,
) -> list[Figure]:
    """Figures at random: a table, a column of it, a row of it; up to one in five is a number of a sentence above a chart."""
    drawn: dict[tuple[int, str, str], Figure] = {}
    for run, shown, _ in rng.sample(found, len(found)):
        if len(drawn) == count // 5:
            break
        said = numbers(run, shown)
        for text, expected in rng.sample(said, min(len(said), 1)):
            drawn[id(shown), "sentence", text] = Figure(shown.page, run.id, shown.name, shown.title, "sentence", text, expected)
    tables = [each for each in found if len(each[1].frame)]
    for _ in range(count * 20 if tables else 0):
        if len(drawn) >= count:
            break
        run, shown, rules = rng.choice(tables)
        ruled = {str(column): rule for column in shown.frame.columns if (rule := _rule(rules, str(column), shown)) is not None}
        column, place = rng.choice(list(ruled)), rng.randrange(len(shown.frame))
        row = {str(name): value for name, value in shown.frame.iloc[place].items()}
        expected = ruled[column](run, row, shown)
        if isinstance(expected, Untold):
            continue
        if _null(row[column]) and same(None, expected) and not isinstance(expected, set | str):
            continue
        names = " ".join(str(row[name]) for name in ("workload", "variant", "config", "case", "ranks", "part") if name in row)
        figure = Figure(shown.page, run.id, shown.name, names or f"row {place}", column, row[column], expected)
        drawn[id(shown), column, str(place)] = figure
    return list(drawn.values())


def _rule(rules: Rules, column: str, shown: Shown) -> Rule | None:
    assert column in rules, (
        f"{shown.page}, {shown.name}: no definition of the column {column!r}; give it a rule, or None for a name"
    )
    return rules[column]
