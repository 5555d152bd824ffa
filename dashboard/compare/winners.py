"""The winner of each charted case, in every precision that a rung has."""

from functools import lru_cache
from typing import Any, Final

import pandas as pd

from warpladder.dashboard.compare.within_run import CaseTimes, compared, precisions
from warpladder.dashboard.core.cell import Entry, Estimate, Timing
from warpladder.dashboard.core.cells import best_config, cells, charted_cases, in_timing, is_trusted, passed_over
from warpladder.dashboard.core.run_data import RunData

_ROLES: Final = ("rung", "peer", "host")
#: The columns that a contest adds to those of its winner; `is_winner` is False where no cell may be called best.
_OF_CONTEST: Final = ("compared_in", "runner_up", *Estimate.names("margin"), "verdict", "tied", "passed", "is_winner")
#: The columns of winners in an export.
EXPORTED: Final = (
    *("workload", "case", "series", "size", "size_rank", "compared_in", "variant", "precision", "config", "title"),
    *(*Estimate.names("median_ns"), "runner_up", *Estimate.names("margin"), "n", "verdict"),
)


def at_largest(data: RunData, workload: str, timing: Timing) -> pd.DataFrame:
    """The winners of `best_per_size` at the largest size."""
    every = best_per_size(data, workload, timing)
    largest: pd.DataFrame = every[every["size_rank"] == every["size_rank"].max()]
    return largest


def best_per_size(data: RunData, workload: str, timing: Timing, roles: tuple[str, ...] = _ROLES) -> pd.DataFrame:
    """The winner of every charted case in each precision of a rung, among the rungs and the peers compared with them.

    A winner may be called best; see `is_trusted`. `undecided` has the cases without one.

    Returns:
        Rows of `cells.best_config` by case and precision, with columns of `charted_cases`, and

        - `compared_in`: the precision, see `within_run.precisions`; a peer can have another one of its own;
        - `runner_up`: the next variant; empty without a second variant;
        - `margin`: an estimate, the runner-up's time over the winner's;
        - `verdict`: of the margin, see `within_run.verdict`; empty without a runner-up;
        - `tied`: it is not known to be faster than the runner-up;
        - `passed`: words about a faster cell that may not be called best, see `passed_over`; empty without one.
    """
    frame = best_per_case(data, workload, timing, roles)
    return frame[frame["case"].isin(charted_cases(data, workload)["case"])].reset_index(drop=True)


def best_per_case(data: RunData, workload: str, timing: Timing, roles: tuple[str, ...] = _ROLES) -> pd.DataFrame:
    """The winners of all cases, as `best_per_size`: first of the charted ones by size, then of those without a size."""
    frame = _contests(data, workload, timing, roles)
    return frame[frame["is_winner"]].reset_index(drop=True)


def undecided(data: RunData, workload: str, timing: Timing) -> pd.DataFrame:
    """The charted cases that `best_per_size` leaves out, because none of their cells may be called best: the fastest of them, with `passed`."""
    frame = _contests(data, workload, timing, _ROLES)
    charted = frame["case"].isin(charted_cases(data, workload)["case"])
    return frame[charted & ~frame["is_winner"]].reset_index(drop=True)


@lru_cache(maxsize=8)
def _contests(data: RunData, workload: str, timing: Timing, roles: tuple[str, ...]) -> pd.DataFrame:
    charted = charted_cases(data, workload)[["case", "size", "series", "size_value"]]
    best = best_config(in_timing(cells(data), workload, timing)).merge(charted, on="case", how="left")
    best = best[best["role"].isin(roles)].sort_values(["size_rank", "median_ns"], kind="stable")
    order = {case: place for place, case in enumerate(dict.fromkeys([*charted["case"], *data.cases["case"]]))}
    contests = [
        (order[str(case)], place, rows, precision)
        for place, precision in enumerate(precisions(best))
        for case, rows in compared(best, precision).groupby("case", sort=False)
    ]
    contests.sort(key=lambda each: each[:2])
    firsts, decided = [], []
    for *_, rows, precision in contests:
        good = rows[is_trusted(rows)]
        firsts.append((good if len(good) else rows).index[0])
        decided.append((precision, *_decided(data, workload, timing, good), passed_over(rows, good.head(1)), len(good) > 0))
    of_contests = pd.DataFrame(decided, columns=list(_OF_CONTEST)).astype({"is_winner": bool, "tied": bool})
    return best.loc[firsts].reset_index(drop=True).join(of_contests)


def _decided(data: RunData, workload: str, timing: Timing, good: pd.DataFrame) -> tuple[Any, ...]:
    """The runner-up, the margin over it and its ends, the verdict, and whether it is a tie.

    Args:
        good: the rows of a case that may be called best, by time.
    """
    if len(good) < 2:
        return "", *Estimate.unknown().columns("margin").values(), "", False
    rows = good[["case", "variant", "config", "gpus"]].head(2).itertuples(index=False, name=None)
    (case, *first), (_, *second) = rows
    times = CaseTimes.of(data, workload, case, timing)
    judged = times.judge(*(Entry(variant, config, int(gpus), 0) for variant, config, gpus in (first, second)))
    return second[0], *judged.ratio.estimate.columns("margin").values(), judged.verdict, judged.verdict not in ("", "faster")
