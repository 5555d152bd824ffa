"""From when to when the iterations of a job last, which ranks have a common clock, and when they arrived at collectives."""

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from warpladder.dashboard.core.critical_path.activities import RankActivities
from warpladder.dashboard.core.traces import Job
from warpladder.data.arrays import NONE, Bools, Floats, Int64s
from warpladder.data.iterations import launch_times

#: The order of two times is sure if they differ by more than this many standard deviations.
_SURE: Final = 2.0


@dataclass(frozen=True)
class Span:
    """The time of an iteration on the job's clock, or on that of its rank.

    Attributes:
        iteration: None for the whole of profiles without iterations.
        start_ns: end of the last device work of the iteration before; for the first one, the earliest start of the step on a host.
        end_ns: end of the last device work that was launched in the iteration.
        rank: whose work ends last.
    """

    iteration: int | None
    start_ns: int
    end_ns: int
    rank: int

    @property
    def duration_ns(self) -> int:
        return self.end_ns - self.start_ns


class Ranks:
    """The ranks of a job whose times can be compared, opened when they are first needed.

    Attributes:
        ranks: with a profile, ascending.
        aligned: the clocks of at least two ranks are known; `ranks` has no others. Else the times of different ranks cannot be compared.
        without_clock: ranks with a profile that were left out, because the others have a clock.
    """

    def __init__(self, job: Job) -> None:
        self._job = job
        rows = job.frame("ranks", "rank", "status", "uncertainty_ns")
        rows = rows[rows["status"] == "ok"].fillna({"uncertainty_ns": 0.0}).sort_values("rank")
        self._uncertainty = dict(zip(rows["rank"].tolist(), rows["uncertainty_ns"].astype(float).tolist(), strict=True))
        clocks = {rank: clock for rank, clock in job.clocks().items() if clock and rank in self._uncertainty}
        self.aligned = len(clocks) > 1
        self._clocks = clocks if self.aligned else {}
        self.ranks = tuple(clocks if self.aligned else self._uncertainty)
        self.without_clock = tuple(rank for rank in self._uncertainty if self.aligned and rank not in clocks)
        self._opened: dict[int, RankActivities] = {}

    def doubt_ns(self, one: npt.ArrayLike, other: npt.ArrayLike) -> Floats:
        """How far times of two ranks must differ, so that their order is sure: two standard deviations of their clocks."""
        deviation = np.zeros(max(self.ranks, default=0) + 1)
        deviation[list(self.ranks)] = [self._uncertainty[rank] for rank in self.ranks]
        doubt: Floats = _SURE * np.hypot(*(deviation[np.asarray(each, np.int64)] for each in (one, other)))
        return doubt

    def launched_in(self, rank: int, span: Span) -> Bools:
        """Which device work of a rank was launched in an iteration; all of it where there are no iterations."""
        work = self.of(rank).work
        if span.iteration is None:
            return np.ones(len(work), bool)
        step = self._steps.get((rank, span.iteration))
        if step is None:
            return np.zeros(len(work), bool)
        start, end = self.on_job_clock(rank, np.array(step))
        when = launch_times(work.start, work.stream, work.launched, work.thread != NONE)
        return np.asarray((when >= start) & (when < end))

    @cached_property
    def _steps(self) -> dict[tuple[int, int], tuple[int, int]]:
        """Start and end of each rank and iteration on the host, on the rank's clock."""
        columns = (self.iterations[name].tolist() for name in ("rank", "iteration", "start_ns", "end_ns"))
        return {(rank, iteration): (start, end) for rank, iteration, start, end in zip(*columns, strict=True)}

    @cached_property
    def iterations(self) -> pd.DataFrame:
        """The iterations of the ranks: `rank`, `iteration`, `start_ns`, `end_ns`, `device_end_ns`, on the clocks of the ranks."""
        rows = self._job.frame("iterations", "rank", "iteration", "start_ns", "end_ns", "device_end_ns")
        return rows[rows["rank"].isin(self.ranks)]

    def on_job_clock(self, rank: int, times: Int64s) -> Int64s:
        """Times of a rank on the job's clock, or its own times where clocks are not aligned."""
        return self._clocks[rank].aligned(times) if self.aligned else times

    def of(self, rank: int) -> RankActivities:
        """The activity of a rank.

        Raises:
            StoreError: its profile cannot be read.
        """
        if rank not in self._opened:
            own = self._kernels[slice(*np.searchsorted(self._kernels["rank"], (rank, rank + 1)))]
            self._opened[rank] = RankActivities(rank, self._job.open_rank(rank), self._clocks.get(rank), own)
        return self._opened[rank]

    @cached_property
    def _kernels(self) -> pd.DataFrame:
        columns = ["rank", "start_ns", "end_ns", "device", "stream", "match"]
        return self.collectives[columns].fillna(dict.fromkeys(("match", "device", "stream"), NONE)).astype("int64")

    @cached_property
    def collectives(self) -> pd.DataFrame:
        """The collectives of all ranks by rank: `rank`, `start_ns`, `end_ns`, `device`, `stream`, `match`, `arrival_ns`, `finish_ns`.

        A send that ended before its receive began did not wait for it: its bytes were buffered.
        """
        columns = ("rank", "start_ns", "end_ns", "device", "stream", "match", "arrival_ns", "finish_ns")
        frame: pd.DataFrame = self._job.arrow("collectives", (*columns, "sends_to")).to_pandas()
        early = frame["finish_ns"] < frame.groupby("match")["arrival_ns"].transform("max")
        frame.loc[early & frame.pop("sends_to").notna(), "match"] = np.nan
        if not self.aligned:
            frame["match"] = np.nan
        return frame.sort_values("rank", kind="stable", ignore_index=True)


def spans(ranks: Ranks) -> list[Span]:
    """The iterations with device work, in order. Where clocks are not aligned, each on the rank on which it lasts longest.

    Profiles without iterations are one span, for which all ranks are opened.
    """
    rows = ranks.iterations.dropna(subset="device_end_ns")
    if rows.empty:
        return _whole(ranks)
    rows = rows.astype("int64").sort_values("rank", kind="stable")
    every, first = np.unique(rows["rank"], return_index=True)
    times = rows[["start_ns", "device_end_ns"]].to_numpy()
    on_clock = [ranks.on_job_clock(rank, own) for rank, own in zip(every.tolist(), np.split(times, first[1:]), strict=True)]
    rows[["start_ns", "device_end_ns"]] = np.concatenate(on_clock)
    found = rows.sort_values(["iteration", "device_end_ns"])
    if ranks.aligned:
        return _in_order(found)
    each = [span for _, own in found.groupby("rank") for span in _in_order(own)]
    longest: dict[int | None, Span] = {}
    for span in each:
        if span.iteration not in longest or span.duration_ns > longest[span.iteration].duration_ns:
            longest[span.iteration] = span
    return [longest[iteration] for iteration in sorted(longest, key=lambda number: number or 0)]


def _in_order(rows: pd.DataFrame) -> list[Span]:
    """The iterations of ranks with one clock."""
    last = rows.drop_duplicates("iteration", keep="last")
    numbers, ends, of = (last[name].tolist() for name in ("iteration", "device_end_ns", "rank"))
    first = rows.loc[rows["iteration"] == numbers[0], "start_ns"].min()
    starts = [int(first), *ends[:-1]]
    return [Span(*each) for each in zip(numbers, starts, ends, of, strict=True) if each[1] < each[2]]


def _whole(ranks: Ranks) -> list[Span]:
    """From the first to the last device work of the ranks; where clocks are not aligned, of the rank on which that is longest."""
    works = {rank: ranks.of(rank).work for rank in ranks.ranks}
    times = {rank: (int(work.start[0]), int(work.end.max())) for rank, work in works.items() if len(work)}
    if not times:
        return []
    if ranks.aligned:
        last = max(times, key=lambda rank: times[rank][1])
        return [Span(None, min(start for start, _ in times.values()), times[last][1], last)]
    longest = max(times, key=lambda rank: times[rank][1] - times[rank][0])
    return [Span(None, *times[longest], longest)]


@dataclass(frozen=True)
class Arrivals:
    """The arrivals at matched collectives that were under way in a span.

    Attributes:
        rank, time: by match, the rank that came last, and when, in ns on the job's clock.
        rows: `rank`, `match`, `wait_ns` until the last arrival, and `late`: the rank was not surely earlier than the last.
    """

    rank: dict[int, int]
    time: dict[int, int]
    rows: pd.DataFrame

    @classmethod
    def of(cls, ranks: Ranks, span: Span) -> "Arrivals":
        """The arrivals of all ranks."""
        rows = ranks.collectives
        rows = rows[rows["match"].notna() & (rows["finish_ns"] >= span.start_ns) & (rows["arrival_ns"] <= span.end_ns)]
        rows = rows[["rank", "match", "arrival_ns"]].astype("int64")
        last = rows.sort_values("arrival_ns", kind="stable").drop_duplicates("match", keep="last").set_index("match")
        wait, by = rows["match"].map(last["arrival_ns"]) - rows["arrival_ns"], rows["match"].map(last["rank"])
        late = wait <= ranks.doubt_ns(rows["rank"].to_numpy(), by.to_numpy())
        rank, time = (dict(zip(last.index.tolist(), last[name].tolist(), strict=True)) for name in ("rank", "arrival_ns"))
        return cls(rank, time, rows.assign(wait_ns=wait, late=late))

    def covering(self, chosen: list[int]) -> list[int]:
        """Ranks of which one is late at each collective: the given ones, and few others."""
        left, every = self.rows[self.rows["late"]], list(chosen)
        left = left[~left["match"].isin(left.loc[left["rank"].isin(every), "match"])]
        while len(left):
            every.append(int(np.bincount(left["rank"]).argmax()))
            left = left[~left["match"].isin(left.loc[left["rank"] == every[-1], "match"])]
        return every
