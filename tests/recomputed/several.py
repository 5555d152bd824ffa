"""The definitions of the pages of several runs: Compare and Trends."""

import math
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pandas as pd

from tests.recomputed import definitions as of
from tests.recomputed.definitions import Interval, Shipped
from tests.recomputed.displayed import Shown
from tests.recomputed.figures import UNTOLD, Expected, Rule, Rules

Row = Mapping[str, Any]
Cell = tuple[str, str, str, str, int]
#: The 97.5 % quantile of a normal distribution.
_NORMAL: Final = 1.959963984540054


def _student(freedom: int) -> float:
    """The 97.5 % quantile of Student's t: where the integral of its density from 0 is 0.475, by Simpson's rule and halving."""
    factor = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / math.sqrt(freedom * math.pi)
    weights = np.array([1, *[4, 2] * 999, 4, 1]) / 6000
    low, high = 1.0, 20.0
    for _ in range(50):
        middle = (low + high) / 2
        density = factor * (1 + np.linspace(0, middle, len(weights)) ** 2 / freedom) ** (-(freedom + 1) / 2)
        low, high = (middle, high) if middle * float(weights @ density) < 0.475 else (low, middle)
    return low


def _sides(shown: Shown) -> tuple[Shipped, Shipped]:
    by_id = {run.id: run for run in of.shipped()}
    before, after = shown.run.split(" ")
    return by_id[before], by_id[after]


def _times(run: Shipped, row: Row) -> "pd.Series[float]":
    return run.rounds(_cell(row), row["gpus"], row["scope"], row["cache"])


def _cell(row: Row) -> tuple[str, str, str, str]:
    return row["workload"], row["variant"], row["config"], row["case"]


def _steady(run: Shipped, row: Row) -> "pd.Series[float]":
    return run.steady(_cell(row), row["gpus"], row["scope"], row["cache"])


def _log(run: Shipped, row: Row) -> float:
    return run.log(_cell(row), row["gpus"], row["scope"], row["cache"])


def _moved(row: Row, before: Shipped, after: Shipped) -> float:
    """The logarithm of B over A: the median over every process of B and every process of A."""
    a, b = (run.logs(_cell(row), row["gpus"], row["scope"], row["cache"]) for run in (before, after))
    return float(np.median([late - early for late in b for early in a]))


def _source(run: Shipped, row: Row) -> str:
    return str(run.variant(row["workload"], row["variant"])["source_sha256"])


_OWN: dict[tuple[str, ...], list[tuple[tuple[str, str, str, int], float, float]]] = {}


def _equal(row: Row, shown: Shown) -> list[tuple[tuple[str, str, str, int], float, float]]:
    """The cells of equal sources of a workload, timing and number of GPUs: each with its time in A and its ratio, as logarithms."""
    before, after = _sides(shown)
    key = (shown.run, row["workload"], row["scope"], row["cache"], str(max(row["gpus"], 1)))
    if key not in _OWN:
        _OWN[key] = []
        for cell in after._rounds:
            workload, variant, config, case, gpus, cache, scope, twin = cell
            if (workload, scope, cache, max(gpus, 1), twin) != (
                row["workload"],
                row["scope"],
                row["cache"],
                max(row["gpus"], 1),
                0,
            ):
                continue
            other = dict(row, variant=variant, config=config, case=case, gpus=gpus)
            if (
                cell in before._rounds
                and _source(before, other) == _source(after, other)
                and all(run.result(workload, variant, config, case).get("status", "ok") == "ok" for run in (before, after))
            ):
                _OWN[key].append(((variant, config, case, gpus), _log(before, other), _moved(other, before, after)))
    return _OWN[key]


def _others(row: Row, shown: Shown, cell: tuple[str, str, str, int]) -> list[float]:
    """How far the other cells of equal sources moved, as logarithms: those of the case, or all where the case has no other."""
    every = [(other, moved) for other, _, moved in _equal(row, shown) if other != cell]
    return [moved for other, moved in every if other[2] == cell[2]] or [moved for _, moved in every]


def _mine(row: Row) -> tuple[str, str, str, int]:
    return row["variant"], row["config"], row["case"], row["gpus"]


def _half(row: Row, shown: Shown) -> float | None:
    """Half of the interval of two runs of one process each, a logarithm; None where other runs tell it, or fewer than three cells do."""
    before, after = _sides(shown)
    if any(run.processes > 2 for run in (before, after)):
        return None
    apart = [
        (log, abs(moved - float(np.median(_others(row, shown, cell) or [0.0]))))
        for cell, log, moved in _equal(row, shown)
        if cell != _mine(row)
    ]
    near = [distance for log, distance in apart if abs(log - _log(before, row)) <= math.log(3)]
    every = near if len(near) >= 8 else [distance for _, distance in apart]
    if len(every) < 3:
        return None
    ends = [of.median_interval(_steady(run, row)) for run in (before, after)]
    errors = [math.log(high / low) / (2 * _NORMAL) for _, low, high in ends]
    return _student(len(every)) * math.hypot(*errors, float(np.quantile(every, 0.75)) / 1.1503)


def _noise(row: Row, shown: Shown) -> float | None:
    half = _half(row, shown)
    return None if half is None else math.exp(1.6 * half)


def _shift(row: Row, shown: Shown) -> float:
    """How many times as long the other cells of equal sources take; see `_others`."""
    moved = _others(row, shown, _mine(row))
    return math.exp(float(np.median(moved))) if moved else math.nan


def _value(row: Row, shown: Shown) -> float:
    """B over A, relative to the unchanged variants."""
    before, after = _sides(shown)
    shift = _shift(row, shown)
    return math.exp(_moved(row, before, after)) / (1.0 if math.isnan(shift) else shift)


def _ratio(row: Row, shown: Shown) -> Interval | None:
    """B over A, with the interval of Student's t."""
    half, value = _half(row, shown), _value(row, shown)
    if half is None:
        return None
    low, high = value * math.exp(-half), value * math.exp(half)
    return Interval(value, of.Between(low, low), of.Between(high, high))


def _end(place: int, column: str) -> Rule:
    def rule(run: Shipped, row: Row, shown: Shown) -> Expected:
        found = _ratio(row, shown)
        return UNTOLD if found is None else found[place]

    return rule


def _side(place: int, end: int) -> Rule:
    def rule(run: Shipped, row: Row, shown: Shown) -> Expected:
        side = _sides(shown)[place]
        return of.time_interval(side, _times(side, row), row["scope"], row["cache"])[end]

    return rule


def _other_spans(row: Row, shown: Shown) -> bool:
    """Whether one side has device times between two events, and the other those of a trace (docs/collectors.md)."""
    collectors = {side.info["collector"] for side in _sides(shown)}
    return row["scope"] == "device" and "cuda_events" in collectors and bool(collectors & {"cupti", "nsight_systems"})


def _told_noise(run: Shipped, row: Row, shown: Shown) -> Expected:
    if _other_spans(row, shown):
        return math.nan
    found = _noise(row, shown)
    return UNTOLD if found is None else found


def _verdict(run: Shipped, row: Row, shown: Shown) -> Expected:
    """docs/compare.md: the whole interval is beyond 1 %, and the ratio beyond the noise; of equal code it drifted."""
    before, after = _sides(shown)
    if min(len(_times(side, row)) for side in (before, after)) < of.FEWEST:
        return "unknown"
    if _other_spans(row, shown):
        return "unknown"
    found, noise = _ratio(row, shown), _noise(row, shown)
    if found is None or noise is None:
        return UNTOLD
    slower = found.low.low > 1.01 and found.value > noise
    faster = found.high.high < 1 / 1.01 and found.value < 1 / noise
    if not slower and not faster:
        return "tied"
    return "drifted" if _source(before, row) == _source(after, row) else "slower" if slower else "faster"


def _least_effect(run: Shipped, row: Row, shown: Shown) -> Expected:
    if _other_spans(row, shown):
        return math.nan
    found, noise = _ratio(row, shown), _noise(row, shown)
    if found is None or noise is None:
        return UNTOLD
    return max(noise, 1.01 * found.value / found.low.low) - 1


COMPARE: Final[Rules] = {
    **dict.fromkeys(("workload", "case", "scope", "cache", "variant", "config", "gpus", "variant_of_a", "config_of_a")),
    "a_ns": _side(0, 0),
    "a_ns_low": _side(0, 1),
    "a_ns_high": _side(0, 2),
    "b_ns": _side(1, 0),
    "b_ns_low": _side(1, 1),
    "b_ns_high": _side(1, 2),
    "ratio": lambda run, row, shown: _value(row, shown),
    "ratio_low": _end(1, "ratio_low"),
    "ratio_high": _end(2, "ratio_high"),
    "shift": lambda run, row, shown: _shift(row, shown),
    "noise": _told_noise,
    "same_source": lambda run, row, shown: _source(_sides(shown)[0], row) == _source(_sides(shown)[1], row),
    "n": lambda run, row, shown: min(len(_times(side, row)) for side in _sides(shown)),
    "verdict": _verdict,
    "least_effect": _least_effect,
}


# -- Trends ----------------------------------------------------------------------------------------------------------


def _over_runs(row: Row, shown: Shown) -> "list[tuple[Shipped, Row, pd.Series[float]]]":
    """The times of a variant in the runs of its machine that have it, the oldest run first."""
    workload, case, timing = shown.name.split("|")
    scope, cache = timing.split(" ")
    by_id = {run.id: run for run in of.shipped()}
    runs = sorted((by_id[each] for each in shown.run.split(" ")), key=lambda run: (run.info["started_at"], run.id))
    variant, _, config = str(row["variant"]).partition("[")
    found = []
    for run in runs:
        for gpus in (0, 1):
            cell: Row = {
                "workload": workload,
                "variant": variant,
                "config": config.removesuffix("]"),
                "case": case,
                "gpus": gpus,
                "scope": scope,
                "cache": cache,
            }
            times = _times(run, cell)
            if len(times) and run.result(workload, variant, config.removesuffix("]"), case).get("status", "ok") == "ok":
                found.append((run, cell, times))
    return found


def _since_first(run: Shipped, row: Row, shown: Shown) -> Expected:
    every = _over_runs(row, shown)
    if len(every) < 2:
        return math.nan
    (first, of_first, _), (last, of_last, _) = every[0], every[-1]
    return 100 * (math.exp(_log(last, of_last) - _log(first, of_first)) - 1)


def _spark(run: Shipped, row: Row, shown: Shown) -> Expected:
    """The medians over their median, in percent more, within 25 %."""
    medians = np.array([float(times.median()) for _, _, times in _over_runs(row, shown)])
    return tuple(np.clip(100 * (medians / np.median(medians) - 1), -25, 25).tolist())


TRENDS: Final[Rules] = {
    **dict.fromkeys(("variant", "half_width", "step", "step_interval", "when", "cause")),
    "runs": lambda run, row, shown: len(_over_runs(row, shown)),
    "times": _spark,
    "last_us": lambda run, row, shown: float(_over_runs(row, shown)[-1][2].median()) / 1e3,
    "since_first": _since_first,
}
