"""The definitions of the page Devices (docs/reference.md)."""

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
import pandas as pd

from tests.recomputed import definitions as of
from tests.recomputed.definitions import Between, Interval, Shipped
from tests.recomputed.displayed import Shown
from tests.recomputed.figures import UNTOLD, Expected, Rule, Rules

Row = Mapping[str, Any]


def _sides(shown: Shown) -> tuple[Shipped, Shipped]:
    by_id = {run.id: run for run in of.shipped()}
    a, b = shown.run.split(" ")
    return by_id[a], by_id[b]


def _cell(run: Shipped, row: Row, shown: Shown, variant: str = "") -> tuple[str, str, int]:
    workload, scope, cache = shown.where
    found = of.fastest(run, workload, row["case"], scope, cache, variant or row["variant"])
    assert found
    return found


def _times(run: Shipped, row: Row, shown: Shown, variant: str = "") -> "pd.Series[float]":
    workload, scope, cache = shown.where
    name, config, gpus = _cell(run, row, shown, variant)
    return run.rounds((workload, name, config, row["case"]), gpus, scope, cache)


def _moved(row: Row, shown: Shown) -> float:
    """The logarithm of B over A: the median over every process of B and every process of A."""
    workload, scope, cache = shown.where
    logs = []
    for run in _sides(shown):
        name, config, gpus = _cell(run, row, shown)
        logs.append(run.logs((workload, name, config, row["case"]), gpus, scope, cache))
    return float(np.median([late - early for late in logs[1] for early in logs[0]]))


def _steady(run: Shipped, row: Row, shown: Shown) -> "pd.Series[float]":
    workload, scope, cache = shown.where
    name, config, gpus = _cell(run, row, shown)
    return run.steady((workload, name, config, row["case"]), gpus, scope, cache)


def _ratio(row: Row, shown: Shown) -> Interval | None:
    """B over A, with the errors of both medians as squares of logarithms. None for the interval of several processes."""
    a, b = _sides(shown)
    value = math.exp(_moved(row, shown))
    if min(a.processes, b.processes) >= 3:
        return None
    ends = [of.median_interval(_steady(run, row, shown)) for run in (a, b)]
    half = math.hypot(*(math.log(high / low) / 2 for _, low, high in ends))
    low, high = value * math.exp(-half), value * math.exp(half)
    return Interval(value, Between(low, low), Between(high, high))


def _rivals(row: Row, shown: Shown) -> list[str]:
    """The rungs of the precision that both runs trust; with fewer than two of them the peers that they replace too."""
    workload, scope, cache = shown.where
    a, b = _sides(shown)
    found = []
    for name in _every(row, shown):
        cells = [(run, _cell(run, row, shown, name)) for run in (a, b)]
        if all(of.trusted(run, workload, cell[0], cell[1], row["case"], cell[2], scope, cache) for run, cell in cells):
            found.append(a.variant(workload, name))
    precision = str(row["precision"]).lower()
    rungs = [each["variant"] for each in found if each["role"] == "rung" and each["precision"] == precision]
    peers = [each["variant"] for each in found if each["role"] == "peer" and each["precision"] in of.peers_of(precision)]
    return rungs if len(rungs) > 1 else rungs + peers


def _every(row: Row, shown: Shown) -> list[str]:
    workload, scope, cache = shown.where
    timed = [{each[0] for each in run.timed(workload, row["case"], scope, cache)} for run in _sides(shown)]
    return [
        name
        for name in timed[0] & timed[1]
        if all(of.fastest(run, workload, row["case"], scope, cache, name) for run in _sides(shown))
    ]


def _fastest(run: Shipped, row: Row, shown: Shown) -> str:
    return min(_rivals(row, shown), key=lambda name: _times(run, row, shown, name).median())


def _behind(run: Shipped, row: Row, shown: Shown, variant: str) -> Interval:
    """The time of a variant over the time of the fastest."""
    return of.ratio(_times(run, row, shown, variant), _times(run, row, shown, _fastest(run, row, shown)))


def _may_win(run: Shipped, row: Row, shown: Shown) -> set[bool]:
    """Whether a variant wins: it is the fastest, or not slower beyond the noise; both where an end is next to the limit."""
    workload, scope, cache = shown.where
    name, fastest = row["variant"], _fastest(run, row, shown)
    if name == fastest:
        return {True}
    sides = [_times(run, row, shown), _times(run, row, shown, fastest)]
    n, of_clock = min(map(len, sides)), of.clock(run, scope, cache, *sides)
    low, high = of.noise(run, workload, row["case"], scope, cache, False)
    noise = max(low, of_clock), max(high, of_clock)
    return {word != "faster" for word in of.verdicts(_behind(run, row, shown, name), n, noise)}


def _wins(run: Shipped, row: Row, shown: Shown) -> Expected:
    a, b = _sides(shown)
    if row["variant"] not in _rivals(row, shown):
        return UNTOLD if a.variant(shown.where[0], row["variant"])["role"] == "peer" else ""
    words = {(True, True): "both", (True, False): "A", (False, True): "B", (False, False): ""}
    return {words[on_a, on_b] for on_a in _may_win(a, row, shown) for on_b in _may_win(b, row, shown)}


def _end(place: int) -> Rule:
    def rule(run: Shipped, row: Row, shown: Shown) -> Expected:
        found = _ratio(row, shown)
        return UNTOLD if found is None else found[place]

    return rule


def _floor(run: Shipped, row: Row, shown: Shown) -> tuple[str, float]:
    workload, scope, cache = shown.where
    name, _, gpus = _cell(run, row, shown)
    return of.floor(run, workload, name, row["case"], gpus, scope, cache)


def _ratio_of_floors(run: Shipped, row: Row, shown: Shown) -> Expected:
    """Without a figure the ceilings of the two floors differ, which no definition here tells."""
    (one, of_a), (other, of_b) = (_floor(side, row, shown) for side in _sides(shown))
    if pd.isna(row["ratio_of_floors"]):
        return UNTOLD
    return of_b / of_a if one == other else math.nan


def _of_side(place: int) -> dict[str, Rule | None]:
    def time(end: int) -> Rule:
        def rule(run: Shipped, row: Row, shown: Shown) -> Expected:
            side = _sides(shown)[place]
            return of.time_interval(side, _times(side, row, shown), *shown.where[1:])[end]

        return rule

    def percent(end: int) -> Rule:
        def rule(run: Shipped, row: Row, shown: Shown) -> Expected:
            side = _sides(shown)[place]
            return 100 * _floor(side, row, shown)[1] / of.time_interval(side, _times(side, row, shown), *shown.where[1:])[end]

        return rule

    def cell(figure: Callable[[Shipped, Row, Shown], Expected]) -> Rule:
        return lambda run, row, shown: figure(_sides(shown)[place], row, shown)

    rules: dict[str, Rule | None] = {
        "config": cell(lambda side, row, shown: _cell(side, row, shown)[1]),
        "n": cell(lambda side, row, shown: len(_times(side, row, shown))),
        "median_ns": time(0),
        "median_low_ns": time(1),
        "median_high_ns": time(2),
        "percent_of_floor": percent(0),
        "percent_of_floor_low": percent(2),
        "percent_of_floor_high": percent(1),
        "floor_ns": cell(lambda side, row, shown: _floor(side, row, shown)[1]),
        "floor_bound": cell(lambda side, row, shown: _floor(side, row, shown)[0]),
    }
    return {f"{'ab'[place]}_{name}": rule for name, rule in rules.items()}


def _same_source(run: Shipped, row: Row, shown: Shown) -> bool:
    return len({side.variant(shown.where[0], row["variant"])["source_sha256"] for side in _sides(shown)}) == 1


#: The time on B over that on A.
RATIO: Final[Rules] = {
    "ratio": lambda run, row, shown: math.exp(_moved(row, shown)),
    "ratio_low": _end(1),
    "ratio_high": _end(2),
}
PAIRS: Final[Rules] = {
    **dict.fromkeys(("workload", "case", "variant", "precision")),
    "wins": _wins,
    **_of_side(0),
    **_of_side(1),
    **RATIO,
    "ratio_of_floors": _ratio_of_floors,
    "same_source": _same_source,
}  # fmt: skip


def _lost(row: Row, shown: Shown) -> Shipped:
    return _sides(shown)[row["wins"] == "A"]


#: Variants that win on one device and lose on the other.
LOSERS: Final[Rules] = {
    **dict.fromkeys(("workload", "case", "variant", "precision")),
    "wins": _wins,
    "same_source": _same_source,
    "to": lambda run, row, shown: _fastest(_lost(row, shown), row, shown),
    "behind": lambda run, row, shown: _behind(_lost(row, shown), row, shown, row["variant"]).value,
    "behind_low": lambda run, row, shown: _behind(_lost(row, shown), row, shown, row["variant"]).low,
    "behind_high": lambda run, row, shown: _behind(_lost(row, shown), row, shown, row["variant"]).high,
}


def rate(a: Shipped, b: Shipped, names: tuple[str, ...], *, time: bool) -> float:
    """The time that the same work takes on B over that on A, from the highest of some rates, or from a time."""
    of_a, of_b = (max(run.ceilings[name] for name in names) for run in (a, b))
    return of_b / of_a if time else of_a / of_b
