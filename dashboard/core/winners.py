"""The winner of each charted case, in every precision that a rung has."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import pandas as pd

from warpladder.dashboard.core.axes import charted_cases
from warpladder.dashboard.core.cell import Cell, Contender
from warpladder.dashboard.core.cells import best_of_charted
from warpladder.dashboard.core.estimate import Estimate
from warpladder.dashboard.core.intervals import paired_ratio
from warpladder.dashboard.core.noise import noise_of, verdict
from warpladder.dashboard.core.precision import compared, precisions
from warpladder.dashboard.core.records import records
from warpladder.dashboard.core.run_data import Entry, RunData
from warpladder.dashboard.core.timing import Timing

_ROLES: Final = ("rung", "peer", "host")


@dataclass(frozen=True)
class Winner:
    """The fastest variant of a case in one precision, and its margin over the next.

    Attributes:
        cell: the winner's. A peer can have another precision than `compared_in`.
        compared_in: the precision; see `precision.precisions`.
        runner_up: the next variant; empty where there is none.
        margin: the runner-up's time over the winner's.
        tied: whether the interval of the margin holds 1 or lies within the noise floor.
    """

    cell: Contender
    compared_in: str
    runner_up: str
    margin: Estimate
    tied: bool


def frame_of(winners: Iterable[Winner]) -> pd.DataFrame:
    """The winners as rows of a frame, for export; an estimate takes three columns."""
    return pd.DataFrame(
        {
            **{name: getattr(winner.cell, name) for name in ("workload", "case", "series", "size", "size_rank")},
            "compared_in": winner.compared_in,
            **{name: getattr(winner.cell, name) for name in ("variant", "precision", "config", "title")},
            **winner.cell.median_ns.columns("median_ns"),
            "runner_up": winner.runner_up,
            **winner.margin.columns("margin"),
            "n": winner.cell.n,
            "tied": winner.tied,
        }
        for winner in winners
    )


def at_largest(data: RunData, workload: str, timing: Timing) -> list[Winner]:
    """The winners of `best_per_size` at the largest size."""
    every = best_per_size(data, workload, timing)
    largest = max((winner.cell.size_rank for winner in every), default=0)
    return [winner for winner in every if winner.cell.size_rank == largest]


@lru_cache(maxsize=8)
def best_per_size(data: RunData, workload: str, timing: Timing, roles: tuple[str, ...] = _ROLES) -> tuple[Winner, ...]:
    """The winner of every charted case in each precision of a rung, among the rungs and the peers compared with them."""
    best = best_of_charted(data, workload, timing)
    best = best[best["role"].isin(roles)].sort_values(["size_rank", "median_ns"], kind="stable")
    found = [
        _winner(data, timing, precision, records(Contender, ranked.head(2)))
        for precision in precisions(best)
        for _, ranked in compared(best, precision).groupby("case", sort=False)
    ]
    order = charted_cases(data, workload)["case"].tolist()
    return tuple(sorted(found, key=lambda winner: order.index(winner.cell.case)))


def _winner(data: RunData, timing: Timing, precision: str, ranked: list[Contender]) -> Winner:
    """The first of the ranked cells of one case, and its margin over the second."""
    first, *others = ranked
    runner_up, margin, tied = "", Estimate.unknown(), False
    for second in others:
        rounds = data.rounds(first.workload, first.case, timing.scope, timing.cache)
        margin = paired_ratio(rounds[_entry(second)], rounds[_entry(first)]).estimate
        band = noise_of(rounds, data.hosts(first.workload)).between(first.variant, second.variant)
        runner_up, tied = second.variant, verdict(margin.low, margin.high, band) == "tied"
    return Winner(first, precision, runner_up, margin, tied)


def _entry(cell: Cell) -> Entry:
    return Entry(cell.variant, cell.config, cell.gpus, 0)
