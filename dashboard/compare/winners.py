"""The winner of each charted case, in every precision that a rung has."""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import pandas as pd

from warpladder.dashboard.compare.within_run import CaseTimes, compared, precisions
from warpladder.dashboard.core.cell import Cell, Estimate, Timing, records
from warpladder.dashboard.core.cells import best_config, cells, charted_cases, in_timing, is_trusted, passed_over
from warpladder.dashboard.core.run_data import RunData

_ROLES: Final = ("rung", "peer", "host")


@dataclass(frozen=True)
class Winner:
    """The fastest variant of a case in one precision, and its margin over the next.

    Attributes:
        cell: the winner's. A peer can have another precision than `compared_in`.
        compared_in: the precision; see `precision.precisions`.
        runner_up: the next variant; empty without a second variant.
        margin: the runner-up's time over the winner's.
        verdict: of the margin, see `within_run.verdict`; empty where there is no runner-up.
        passed: words about a faster cell that may not be called best, see `cells.passed_over`; empty without one.
    """

    cell: Cell
    compared_in: str
    runner_up: str
    margin: Estimate
    verdict: str
    passed: str

    @property
    def tied(self) -> bool:
        """Whether it is not known to be faster than the next one."""
        return self.verdict not in ("", "faster")


@dataclass(frozen=True)
class UndecidedCase:
    """A case without a winner in one precision, because none of its cells may be called best. `passed`: words about the fastest of them."""

    case: str
    compared_in: str
    passed: str


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
            "verdict": winner.verdict,
        }
        for winner in winners
    )


def at_largest(data: RunData, workload: str, timing: Timing) -> list[Winner]:
    """The winners of `best_per_size` at the largest size."""
    every = best_per_size(data, workload, timing)
    largest = max((winner.cell.size_rank for winner in every), default=0)
    return [winner for winner in every if winner.cell.size_rank == largest]


def best_per_size(data: RunData, workload: str, timing: Timing, roles: tuple[str, ...] = _ROLES) -> tuple[Winner, ...]:
    """The winner of every charted case in each precision of a rung, among the rungs and the peers compared with them.

    A winner may be called best; see `trusted`. `undecided` has the cases without one.
    """
    sizes = {*charted_cases(data, workload)["case"]}
    return tuple(each for each in best_per_case(data, workload, timing, roles) if each.cell.case in sizes)


def best_per_case(data: RunData, workload: str, timing: Timing, roles: tuple[str, ...] = _ROLES) -> tuple[Winner, ...]:
    """The winners of all cases, as `best_per_size`: first of the charted ones by size, then of those without a size."""
    return tuple(each for each in _contests(data, workload, timing, roles) if isinstance(each, Winner))


def undecided(data: RunData, workload: str, timing: Timing, roles: tuple[str, ...] = _ROLES) -> tuple[UndecidedCase, ...]:
    """The charted cases that `best_per_size` leaves out."""
    sizes = {*charted_cases(data, workload)["case"]}
    return tuple(
        each for each in _contests(data, workload, timing, roles) if isinstance(each, UndecidedCase) and each.case in sizes
    )


@lru_cache(maxsize=8)
def _contests(data: RunData, workload: str, timing: Timing, roles: tuple[str, ...]) -> tuple[Winner | UndecidedCase, ...]:
    charted = charted_cases(data, workload)[["case", "size", "series", "size_value"]]
    best = best_config(in_timing(cells(data), workload, timing)).merge(charted, on="case", how="left")
    best = best[best["role"].isin(roles)].sort_values(["size_rank", "median_ns"], kind="stable")
    of_rows = dict(zip(best.index, records(best), strict=True))
    contests = {
        (str(case), place): _decided(data, timing, precision, rows, of_rows)
        for place, precision in enumerate(precisions(best))
        for case, rows in compared(best, precision).groupby("case", sort=False)
    }
    order = list(dict.fromkeys([*charted["case"], *data.cases["case"]]))
    return tuple(contests[key] for key in sorted(contests, key=lambda key: (order.index(key[0]), key[1])))


def _decided(
    data: RunData, timing: Timing, precision: str, rows: pd.DataFrame, of_rows: Mapping[Hashable, Cell]
) -> Winner | UndecidedCase:
    """The fastest of the rows of one case that may be called best, and its margin over the second.

    Args:
        rows: by time.
        of_rows: the rows as cells, by their index.
    """
    good = rows[is_trusted(rows)]
    passed = passed_over(rows, good.head(1))
    if good.empty:
        return UndecidedCase(str(rows["case"].iloc[0]), precision, passed)
    first, *others = (of_rows[place] for place in good.index[:2])
    runner_up, margin, word = "", Estimate.unknown(), ""
    for second in others:
        comparison = CaseTimes.of(data, first.workload, first.case, timing).judge(first.entry, second.entry)
        runner_up, margin, word = second.variant, comparison.ratio.estimate, comparison.verdict
    return Winner(first, precision, runner_up, margin, word, passed)
