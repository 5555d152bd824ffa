"""The work of the ranks of a job between collectives and messages, and their waits for each other.

A rank's time is cut at the starts of its collectives and messages. A **piece** begins at one of them and ends at the next, or at the end of the
iteration; the first piece of an iteration begins where the rank's iteration before ends. In a piece, a rank computes, waits for its host, does other
things (copies, short gaps), and communicates exposed. These four add up to the piece, to the nanosecond.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
import pandas as pd
import pyarrow.compute as pc

from warpladder.dashboard.core.traces import Job
from warpladder.data.job_tables import peers_of

_COLUMNS: Final = (
    "rank", "iteration", "collective", "group", "group_ranks", "group_title", "match", "arrival_ns", "finish_ns", "wait_ns", "transfer_ns",
    "sends_to", "receives_from", "in_splits", "out_splits", "bytes", "start_ns", "end_ns",
    "next_ns", "next_compute_ns", "next_host_ns", "next_other_ns", "next_after_ns",
)  # fmt: skip
#: Of jobs with more pieces, the last iterations are read, at least so many.
_MOST_PIECES: Final = 20_000
_FEWEST: Final = 3
_TIMES: Final = ("compute_ns", "host_ns", "other_ns")


@dataclass(frozen=True)
class JobGraph:
    """The pieces of the iterations that all ranks have; of a long profile, those of the last ones. Times are on the job's clock, since the first collective.

    Attributes:
        ranks: that take part, ascending.
        iterations: their numbers, ascending.
        pieces: by rank, iteration and time: `rank`, `iteration`, `is_first` (of the iteration), `begin_ns`, `duration_ns`, `compute_ns`, `host_ns`,
            `other_ns`, `exposed_ns`, and of the collective or message at its begin (empty for a first piece): `match`, `collective`, `group`,
            `wait_ns`, `transfer_ns`, `ends_ns` after its begin, `after_ns` (work behind its end), and the columns of messages and splits.
        end_ns: a row for each iteration and a column for each rank, when the iteration ends there.
    """

    ranks: tuple[int, ...]
    iterations: tuple[int, ...]
    pieces: pd.DataFrame
    end_ns: pd.DataFrame

    @property
    def steps_ns(self) -> list[int]:
        """The time from the end of each iteration to the end of the next, over all ranks; of a single one, from its first begin."""
        ends = self.end_ns.max(axis=1).tolist()
        if len(ends) > 1:
            return [int(later - earlier) for earlier, later in pairwise(ends)]
        return [int(ends[0] - self.pieces["begin_ns"].min())]


def job_graph(job: Job) -> JobGraph | None:
    """The pieces of a job; None where its clocks are not aligned, or ranks have no iterations in common."""
    table = job.arrow("collectives", _COLUMNS)
    if not table.num_rows:
        return None
    origin = pc.min(table["start_ns"]).as_py()
    for name in ("arrival_ns", "finish_ns", "start_ns", "end_ns"):  # small numbers are exact in the floats that nulls need
        table = table.set_column(table.schema.get_field_index(name), name, pc.subtract(table[name], origin))
    rows = table.to_pandas()
    texts = rows.select_dtypes("category").columns
    rows[texts] = rows[texts].astype(object)
    columns = ("rank", "iteration", "device_start_ns", "device_end_ns", "span_ns", "compute_ns", "exposed_ns", "host_wait_ns")
    iterations = job.frame("iterations", *columns).dropna(subset="device_end_ns")
    clocks, ranks = job.clocks(), job.frame("ranks", "rank", "status")
    known = [rank for rank, clock in clocks.items() if clock is not None]
    if len(known) < 2 or set(known) != set(ranks.loc[ranks["status"] == "ok", "rank"]):
        return None
    counts = iterations.groupby("iteration")["rank"].nunique()
    common = sorted(int(number) for number in counts[counts == len(known)].index)
    common = [number for place, number in enumerate(common) if number - place == common[0]]
    rows = rows[rows["iteration"].isin(common) & rows["next_ns"].notna()]
    if not common or rows.empty:
        return None
    common = common[-max(_FEWEST, _MOST_PIECES * len(common) // len(rows)) :]
    rows = rows[rows["iteration"].isin(common)]
    iterations = iterations[iterations["iteration"].isin(common)].sort_values(["rank", "iteration"], ignore_index=True)
    for name in ("device_start_ns", "device_end_ns"):
        aligned = [
            clock.aligned(iterations.loc[iterations["rank"] == rank, name].to_numpy(np.int64))
            for rank, clock in clocks.items()
            if clock
        ]
        iterations[name] = np.concatenate(aligned) - origin
    ends = iterations.pivot(index="iteration", columns="rank", values="device_end_ns")
    return JobGraph(tuple(known), tuple(common), _pieces(rows, iterations), ends)


def _pieces(rows: pd.DataFrame, iterations: pd.DataFrame) -> pd.DataFrame:
    rows = rows.assign(is_first=False, ends_ns=rows["end_ns"] - rows["start_ns"])
    unaligned = rows["arrival_ns"].isna()
    rows["begin_ns"] = rows["arrival_ns"].fillna(rows["start_ns"])
    rows = rows.rename(columns={f"next_{name}": name for name in (*_TIMES, "after_ns")} | {"next_ns": "duration_ns"})
    rows["exposed_ns"] = rows["duration_ns"] - rows[list(_TIMES)].sum(axis=1)
    rows.loc[unaligned, "match"] = np.nan
    of_rows = rows.groupby(["rank", "iteration"])[[*_TIMES, "exposed_ns", "duration_ns"]].sum()
    keys = pd.MultiIndex.from_frame(iterations[["rank", "iteration"]])
    of_rows = of_rows.reindex(keys, fill_value=0).reset_index(drop=True)
    before = iterations.groupby("rank")["device_end_ns"].shift()
    begin = before.fillna(iterations["device_start_ns"]).astype("int64")
    gap = (iterations["device_start_ns"] - begin).clip(lower=0)
    other = iterations["span_ns"] - iterations["compute_ns"] - iterations["exposed_ns"] - iterations["host_wait_ns"]
    first = iterations[["rank", "iteration"]].assign(
        is_first=True,
        begin_ns=begin,
        duration_ns=iterations["span_ns"] - of_rows["duration_ns"] + gap,
        compute_ns=iterations["compute_ns"] - of_rows["compute_ns"],
        host_ns=iterations["host_wait_ns"] - of_rows["host_ns"] + gap,
        other_ns=other - of_rows["other_ns"],
        exposed_ns=iterations["exposed_ns"] - of_rows["exposed_ns"],
    )
    rows["order"] = rows["start_ns"]
    every = pd.concat([first.assign(order=np.iinfo(np.int64).min), rows], ignore_index=True)
    every = every.sort_values(["rank", "iteration", "order"], kind="stable", ignore_index=True)
    numbers = ("duration_ns", *_TIMES, "exposed_ns")
    return every.astype(dict.fromkeys(numbers, "int64"))


def others_of(pieces: pd.DataFrame, name: str) -> list[list[int]]:
    """The ranks in `sends_to` or `receives_from` of each piece."""
    return [peers_of(text) if isinstance(text, str) else [] for text in pieces[name]]
