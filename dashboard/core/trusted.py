"""Which cells may be called best, and words about faster cells that may not."""

from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd

from warpladder.dashboard.core.cell import name_of
from warpladder.dashboard.core.intervals import MIN_SAMPLES
from warpladder.dashboard.core.numbers import format_duration
from warpladder.data.words import counted

#: The columns that `with_doubts` adds.
DOUBTED: Final = ("doubted", "doubted_ns", "doubt")


@dataclass(frozen=True)
class PassedCell:
    """The fastest of the cells that were passed over when the best was chosen.

    Attributes:
        name: its variant and config.
        doubt: see `doubt`.
        others: how many others were passed over.
    """

    name: str
    median_ns: float
    doubt: str
    others: int


def is_trusted(frame: pd.DataFrame) -> "pd.Series[bool]":
    """Which rows of `cells` may be called best."""
    return (frame["n"] >= MIN_SAMPLES) & (frame["flags"].map(len) == 0)


def doubt(n: int, flags: tuple[str, ...]) -> str:
    """Why a cell may not be called best: `distrusted: above_ceiling`, or `of only 5 samples`; empty where it may."""
    if flags:
        return f"distrusted: {', '.join(flags)}"
    return "" if n >= MIN_SAMPLES else f"of only {counted(n, 'sample')}"


def fastest_trusted(frame: pd.DataFrame, same: list[str]) -> pd.DataFrame:
    """The fastest row of each group that may be called best, or the fastest row of a group without one.

    Args:
        frame: rows of `cells` with samples.
        same: the columns that make a group.

    Returns:
        The rows with the columns `doubted` (variant and config), `doubted_ns` and `doubt` of the fastest row of the group that may
        not be called best and is at least as fast; null without such a cell.
    """
    ordered = frame.sort_values("median_ns", kind="stable")
    trusted = is_trusted(ordered)
    trusted_first = [ordered[trusted], ordered[~trusted]]
    best = pd.concat(trusted_first).drop_duplicates(same).sort_index()
    if trusted.all():
        return best.assign(doubted=None, doubted_ns=np.nan, doubt=None)
    passed = ordered[~trusted].drop_duplicates(same)
    names = [name_of(*row) for row in passed[["variant", "config"]].itertuples(index=False, name=None)]
    doubts = [doubt(*row) for row in passed[["n", "flags"]].itertuples(index=False, name=None)]
    passed = passed[same].assign(doubted=names, doubted_ns=passed["median_ns"], doubt=doubts)
    joined = best.reset_index().merge(passed, on=same, how="left").set_index("index")
    slower = ~(joined["doubted_ns"] <= joined["median_ns"])
    joined.loc[slower, list(DOUBTED)] = [None, np.nan, None]
    return joined.rename_axis(None)


def passed_over(frame: pd.DataFrame, best: pd.DataFrame) -> PassedCell | None:
    """The fastest cell of a contest that may not be called best, among those that are faster than the best of their case.

    Args:
        frame: rows of `cells.best_config` among which the best was chosen.
        best: the best of each case; every doubtful cell of a case without one counts.
    """
    frame = frame[frame["doubted_ns"].notna()]
    if frame.empty:
        return None
    than = frame["case"].map(best.set_index("case")["median_ns"].groupby(level=0).min()).fillna(np.inf)
    faster = frame[frame["doubted_ns"] < than.astype(float)].sort_values("doubted_ns", kind="stable")
    if faster.empty:
        return None
    first = faster.iloc[0]
    return PassedCell(str(first["doubted"]), float(first["doubted_ns"]), str(first["doubt"]), faster["doubted"].nunique() - 1)


def about(passed: PassedCell | None, *, won: bool) -> str:
    """`v09_x is faster (1.20 µs) but distrusted: above_ceiling`; without a winner `no winner: v09_x (1.20 µs) is …`; empty for None."""
    if passed is None:
        return ""
    time = format_duration(passed.median_ns)
    more = f"; {passed.others} more like it" if passed.others else ""
    if won:
        return f"{passed.name} is faster ({time}) but {passed.doubt}{more}"
    return f"no winner: {passed.name} ({time}) is {passed.doubt}{more}"


def sentence(words: str) -> str:
    """The words as a sentence of a note; empty for none."""
    return f"{words.replace('no ', 'No ', 1) if words.startswith('no ') else words}." if words else ""
