"""What loops that draw power for a second tell, which short samples do not: the clock held, and who is the fastest at it."""

from collections.abc import Iterator
from typing import Final

import pandas as pd

from warpladder.dashboard.compare.within_run import compared, energies, loop_times, precisions, word
from warpladder.dashboard.core.cell import Entry, Timing, name_of
from warpladder.dashboard.core.cells import cells, is_trusted, select
from warpladder.dashboard.core.numbers import format_loop
from warpladder.dashboard.core.run_data import RunData

#: Clocks that differ by a larger factor are told.
_ONE_CLOCK: Final = 1.02


def remarks(data: RunData, workload: str, case: str) -> tuple[str, ...]:
    """Sentences about the loops of a case, without a full stop: a variant that is faster there than the fastest in short samples, of each
    precision; then the clocks held, where they differ.

    Short samples are those with a hot L2, which the loops have too, or else those with a cold one.
    """
    looped = _looped(data, workload, case)
    return (*_other_winners(looped, data, workload, case), *clocks(looped, "loop_mhz", "the loops"))


def _looped(data: RunData, workload: str, case: str) -> pd.DataFrame:
    """The rungs and peers of a case with loops that may be called best: rows of `cells` with the columns of `energies`."""
    own = energies(data)
    short = (select(cells(data), workload, case, Timing("device", cache)) for cache in ("hot", "cold"))
    timed = next((frame for frame in short if len(frame)), cells(data).head(0))
    timed = timed[timed["role"].isin(["rung", "peer"]) & is_trusted(timed)]
    of_loops = own[(own["workload"] == workload) & (own["case"] == case)].drop(columns=["workload", "case"])
    return timed.merge(of_loops, on=["variant", "config"])


def _other_winners(looped: pd.DataFrame, data: RunData, workload: str, case: str) -> Iterator[str]:
    times = loop_times(data, workload, case)
    names = precisions(looped)
    for precision in names:
        rivals = compared(looped, precision)
        short, loop = (rivals.sort_values(by, kind="stable").iloc[0] for by in ("median_ns", "loop_ns"))
        entries = (Entry(row["variant"], row["config"], 1, 0) for row in (loop, short))
        if times.judge(*entries).verdict == "faster":
            lead = f"{word(precision)}: " if len(names) > 1 else ""
            yield f"{lead}{_told(loop)} is faster in the loop than {_told(short)}, the fastest in short samples"


def clocks(frame: pd.DataFrame, column: str, what: str) -> Iterator[str]:
    """A sentence about the clocks of variants in a column, in MHz, where they differ; without a full stop."""
    known = frame[frame[column].notna()].sort_values(column, kind="stable")
    if len(known) and known[column].iloc[-1] > _ONE_CLOCK * known[column].iloc[0]:
        low, high = (f"{row[column]:,.0f} MHz ({_name(row)})" for _, row in known.iloc[[0, -1]].iterrows())
        yield f"Clocks held in {what}: {low} to {high}; ratios of times there include the ratio of the clocks"


def _told(row: "pd.Series[float]") -> str:
    return f"{_name(row)} ({format_loop(row['loop_ns'], row['loop_w'], row['loop_mhz'])})"


def _name(row: "pd.Series[float]") -> str:
    return name_of(str(row["variant"]), str(row["config"]))
