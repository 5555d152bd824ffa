"""The definitions of the pages of several runs: Compare and Trends."""

import math
from collections.abc import Mapping
from typing import Any, Final

import pandas as pd

from tests.recomputed import definitions as of
from tests.recomputed.between import Group, Judged, judge, source
from tests.recomputed.definitions import Shipped
from tests.recomputed.displayed import Shown
from tests.recomputed.figures import UNTOLD, Expected, Rule, Rules

Row = Mapping[str, Any]


def _sides(shown: Shown) -> tuple[Shipped, Shipped]:
    by_id = {run.id: run for run in of.shipped()}
    before, after = shown.run.split(" ")
    return by_id[before], by_id[after]


def _times(run: Shipped, row: Row) -> "pd.Series[float]":
    return run.rounds(_cell(row), row["gpus"], row["scope"], row["cache"])


def _cell(row: Row) -> tuple[str, str, str, str]:
    return row["workload"], row["variant"], row["config"], row["case"]


def _log(run: Shipped, row: Row) -> float:
    return run.log(_cell(row), row["gpus"], row["scope"], row["cache"])


def _judged(row: Row, shown: Shown) -> Judged:
    group = Group(row["workload"], row["scope"], row["cache"], max(row["gpus"], 1))
    return judge(*_sides(shown), group, (row["variant"], row["config"], row["case"], row["gpus"]))


def _end(name: str) -> Rule:
    def rule(run: Shipped, row: Row, shown: Shown) -> Expected:
        found = _judged(row, shown)
        return UNTOLD if found.noise is None else float(getattr(found, name))

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
    found = _judged(row, shown).noise
    return UNTOLD if found is None else found


def _verdict(run: Shipped, row: Row, shown: Shown) -> Expected:
    if min(len(_times(side, row)) for side in _sides(shown)) < of.FEWEST or _other_spans(row, shown):
        return "unknown"
    found = _judged(row, shown)
    return UNTOLD if found.noise is None else found.verdict


def _least_effect(run: Shipped, row: Row, shown: Shown) -> Expected:
    if _other_spans(row, shown):
        return math.nan
    found = _judged(row, shown)
    return UNTOLD if found.noise is None else found.least_effect


COMPARE: Final[Rules] = {
    **dict.fromkeys(("workload", "case", "scope", "cache", "variant", "config", "gpus", "variant_of_a", "config_of_a")),
    "a_ns": _side(0, 0),
    "a_ns_low": _side(0, 1),
    "a_ns_high": _side(0, 2),
    "b_ns": _side(1, 0),
    "b_ns_low": _side(1, 1),
    "b_ns_high": _side(1, 2),
    "ratio": lambda run, row, shown: _judged(row, shown).ratio,
    "ratio_low": _end("low"),
    "ratio_high": _end("high"),
    "shift": lambda run, row, shown: _judged(row, shown).shift,
    "noise": _told_noise,
    "same_source": lambda run, row, shown: len({source(side, row["workload"], row["variant"]) for side in _sides(shown)}) == 1,
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


TRENDS: Final[Rules] = {
    **dict.fromkeys(("variant", "half_width", "step", "step_interval", "when", "cause")),
    "runs": lambda run, row, shown: len(_over_runs(row, shown)),
    "last_us": lambda run, row, shown: float(_over_runs(row, shown)[-1][2].median()) / 1e3,
    "since_first": _since_first,
}
