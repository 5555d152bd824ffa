"""Kernels over the ranks of a job: their time, its spread over ranks, and the ranks that differ."""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd
import pyarrow as pa

from warpladder.dashboard.core.lateness import lateness
from warpladder.dashboard.core.numbers import format_duration, format_percent
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.trace.describe import short_names
from warpladder.dashboard.ui.text import cut
from warpladder.data.arrays import Bools, Floats, Int64s
from warpladder.data.statistics import OVER_MEDIAN_DEVIATION

#: The columns of table `rank_kernels` that are read; a job of 512 ranks has hundreds of thousands of rows.
COLUMNS: Final = ("rank", "iteration", "name", "kind", "count", "total_ns")
#: A rank's mean time differs where it is farther from the median of the ranks than this many spreads, and than this part of it.
_MOST_SPREADS: Final = 5.0
_LEAST_PART: Final = 0.02
#: With fewer ranks no spread is usual.
_LEAST_RANKS: Final = 4
_TWO: Final = 2
_LEAST_OTHERS: Final = 3
#: A difference that is less of the time of a rank's kernels is not worth a title.
_LEAST_OF_RANK: Final = 0.002

#: The columns of `over_ranks`.
RESULT: Final = (
    "kernel", "name", "kind", "ranks", "of_ranks", "count", "total_ns", "percent", "mean_ns", "median_ns", "spread_ns", "slowest_rank",
    "slowest_ns", "fastest_rank", "fastest_ns", "differs", "differing_rank", "difference_ns",
    "median_all_ns",
)  # fmt: skip

#: The most characters of a kernel's name in a title.
NAME_CHARACTERS: Final = 40
#: The extent of a query in words, where it counts all iterations.
ALL: Final = "all iterations"

Booleans = Bools


@dataclass(frozen=True)
class RankKernels:
    """Executions of each kernel on each rank.

    Attributes:
        names: of the kernels, K; a name with two kinds is two kernels.
        kinds: of the kernels.
        ranks: numbers of the ranks with a profile, R, ascending.
        count: executions, K x R.
        total_ns: their time, K x R.
    """

    names: tuple[str, ...]
    kinds: tuple[str, ...]
    ranks: Int64s
    count: Int64s
    total_ns: Int64s


def iterations(data: RunData) -> tuple[int, ...]:
    """The iterations in which a kernel was launched, in order."""
    column = data.job.arrow("rank_kernels", ("iteration",)).column("iteration")
    return tuple(sorted(value for value in column.unique().to_pylist() if value is not None))


def kernels(data: RunData, iteration: int | None) -> pd.DataFrame:
    """`over_ranks` of a job, of one iteration or of all where that is None."""
    return over_ranks(_read(data, iteration), lateness(data).late)


def by_rank(data: RunData, iteration: int | None, name: str, kind: str) -> pd.DataFrame:
    """`of_kernel` of a job, of one iteration or of all where that is None."""
    return of_kernel(_read(data, iteration), name, kind)


def _read(data: RunData, iteration: int | None) -> RankKernels:
    ranks = data.job.frame("ranks", "rank", "status")
    present = ranks.loc[ranks["status"] == "ok", "rank"].to_numpy(dtype=np.int64)
    return summed(data.job.arrow("rank_kernels", COLUMNS), present, iteration)


def summed(table: pa.Table, ranks: Int64s, iteration: int | None = None) -> RankKernels:
    """Executions by kernel and rank.

    Args:
        table: the columns `COLUMNS` of table `rank_kernels`.
        ranks: numbers of the ranks with a profile, which need not have executed a kernel.
        iteration: the only iteration to count; None for all, and for what was launched outside of iterations.
    """
    frame = table.to_pandas()
    if iteration is not None:
        frame = frame[frame["iteration"] == iteration]
    ranks = np.union1d(ranks, frame["rank"].to_numpy(dtype=np.int64))
    groups = frame.groupby(["name", "kind"], observed=True, sort=False)
    place = groups.ngroup().to_numpy(dtype=np.int64)
    named = frame.loc[~pd.Series(place, frame.index).duplicated(), ["name", "kind"]].astype("str")
    shape = (len(named), len(ranks))
    cell = place * len(ranks) + np.searchsorted(ranks, frame["rank"])
    count, total = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    np.add.at(count.reshape(-1), cell, frame["count"].to_numpy())
    np.add.at(total.reshape(-1), cell, frame["total_ns"].to_numpy())
    return RankKernels(tuple(named["name"]), tuple(named["kind"]), ranks, count, total)


def over_ranks(executed: RankKernels, late: Collection[int] = ()) -> pd.DataFrame:
    """Each kernel over the ranks of the job.

    Where the ranks that are not late are fewer than three, or no majority, they are what the others are compared with: a median over all
    ranks tells nothing then, as of two ranks.

    Args:
        late: numbers of the late ranks.

    Returns:
        One row a kernel, the longest first:

        - `kernel`: a short name, unique among the rows; `name`: the full one; `kind`;
        - `ranks`: the number of ranks that execute it; `of_ranks` of all ranks with a profile;
        - `count`, `total_ns`: executions and their time on all ranks; `percent` of the time of all kernels;
        - `mean_ns`: time a rank, over all ranks; `median_ns` the median over those that execute it, and `spread_ns` the robust standard
          deviation, 1.4826 times the median absolute deviation;
        - `slowest_rank`, `slowest_ns`, `fastest_rank`, `fastest_ns`: of the ranks that execute it, by their time;
        - `differs`: `some ranks` where not all execute it, `counts` where their numbers of executions differ, `slower rank` or `faster
          rank` where the mean time of an execution on a rank is far from the usual; else empty. Communication has no slower rank, because
          its kernels hold the wait for other ranks;
        - `differing_rank`: the rank that differs the most, by its time or by the mean time of its executions; null where none differs;
          `difference_ns`: its time less `median_all_ns`, the median over all ranks or those that are not late; of two ranks, the other's time.
    """
    ranks, total, runs = executed.ranks, executed.total_ns.astype(float), executed.count > 0
    if not total.size:
        return pd.DataFrame(columns=list(RESULT))
    usual, spread = _usual(np.where(runs, total, np.nan))
    is_late = np.isin(ranks, list(late))
    is_late &= len(ranks) - is_late.sum() < max(_LEAST_OTHERS, is_late.sum() + 1)
    far = _far(np.where(runs, total / np.maximum(executed.count, 1), np.nan), is_late)
    far[np.array(executed.kinds) == "communication"] = 0.0
    farthest = np.argmax(np.abs(far), axis=1)
    differs = np.select(
        [~runs.all(axis=1), np.ptp(executed.count, axis=1) > 0, _at(far, farthest) > 0, _at(far, farthest) < 0],
        ["some ranks", "counts", "slower rank", "faster rank"],
        default="",
    )
    more = total - _others(total, is_late)
    by_count = np.isin(differs, ["some ranks", "counts"])
    differing = np.where(by_count, np.argmax(more if len(ranks) == _TWO else np.abs(more), axis=1), farthest)
    slowest, fastest = np.argmax(np.where(runs, total, -np.inf), axis=1), np.argmin(np.where(runs, total, np.inf), axis=1)
    frame = pd.DataFrame(
        {
            "kernel": _short(executed),
            "name": executed.names,
            "kind": executed.kinds,
            "ranks": runs.sum(axis=1),
            "of_ranks": len(ranks),
            "count": executed.count.sum(axis=1),
            "total_ns": executed.total_ns.sum(axis=1),
            "percent": 100 * total.sum(axis=1) / max(total.sum(), 1.0),
            "mean_ns": total.mean(axis=1),
            "median_ns": usual,
            "spread_ns": spread,
            "slowest_rank": ranks[slowest],
            "slowest_ns": _at(total, slowest),
            "fastest_rank": ranks[fastest],
            "fastest_ns": _at(total, fastest),
            "differs": differs,
            "differing_rank": pd.array(ranks[differing], dtype="Int64"),
            "difference_ns": _at(more, differing),
            "median_all_ns": _at(total - more, differing),
        }
    )
    alike = frame["differs"] == ""
    frame["differing_rank"], frame["difference_ns"] = frame["differing_rank"].mask(alike), frame["difference_ns"].mask(alike)
    return frame.sort_values(["total_ns", "name"], ascending=[False, True], ignore_index=True)


def of_kernel(executed: RankKernels, name: str, kind: str) -> pd.DataFrame:
    """One kernel by rank: `rank`, `count`, `total_ns`, and `mean_ns` of an execution, null on a rank that does not execute it.

    Raises:
        ValueError: no rank executes such a kernel.
    """
    place = list(zip(executed.names, executed.kinds, strict=True)).index((name, kind))
    count, total = executed.count[place], executed.total_ns[place]
    mean = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    return pd.DataFrame({"rank": executed.ranks, "count": count, "total_ns": total, "mean_ns": mean})


def most_different(frame: pd.DataFrame) -> "pd.Series[Any] | None":
    """The row of `over_ranks` whose time differs the most on one rank; None where none differs by a 500th of a rank's time or more.

    Communication comes last, because its kernels hold the wait for other ranks.
    """
    least = _LEAST_OF_RANK * frame["mean_ns"].sum()
    found = frame[(frame["differs"] != "") & (frame["difference_ns"].abs().astype(float) >= least)]
    found = found[found["kind"] != "communication"] if (found["kind"] != "communication").any() else found
    return None if found.empty else found.iloc[int(found["difference_ns"].abs().to_numpy(dtype=float).argmax())]


def title_of(frame: pd.DataFrame) -> str:
    """The kernel and the rank of `over_ranks` that differ the most, in a sentence."""
    most = most_different(frame)
    if most is None:
        return _longest(frame)
    alike = frame[(frame["differing_rank"] == most["differing_rank"]) & (frame["differs"] == most["differs"])]
    title = f"{cut(most['kernel'], NAME_CHARACTERS)} differs the most: {_on_rank(most)}"
    if len(alike) > 1 and most["differs"] in ("slower rank", "faster rank"):
        title += f", and is {str(most['differs']).split()[0]} in {len(alike)} of {len(frame)} kernels"
    return title


def _longest(frame: pd.DataFrame) -> str:
    """The kernel that takes the most time; where ranks differ in the longest one that does not wait for others, that one's times."""
    own = frame[frame["kind"] != "communication"]
    first = (own if len(own) else frame).iloc[0]
    if first["slowest_ns"] - first["fastest_ns"] <= _LEAST_PART * first["median_ns"]:
        alike = first["kind"] != "communication" and first["of_ranks"] > 1 and first.name == frame.index[0]
        first = frame.iloc[0]
        longest = f"{cut(first['kernel'], NAME_CHARACTERS)} takes the most time, {format_percent(first['percent'])}"
        return f"{longest}, about the same on each rank" if alike else longest
    longest = f"{cut(first['kernel'], NAME_CHARACTERS)} takes the most time, {format_percent(first['percent'])}"
    return (
        f"No rank stands out: {longest}, {format_duration(first['fastest_ns'])} on rank {first['fastest_rank']} to "
        f"{format_duration(first['slowest_ns'])} on rank {first['slowest_rank']}"
    )


def _on_rank(row: "pd.Series[Any]") -> str:
    """`rank 5 takes 103 ms in all, 16.1 ms more than the median rank`, and why that is no equal work."""
    time = row["median_all_ns"] + row["difference_ns"]
    whom = "the other rank" if row["of_ranks"] == _TWO else "the median rank"
    away = f"{format_duration(abs(row['difference_ns']))} {'more' if row['difference_ns'] > 0 else 'less'} than {whom}"
    why = {
        "some ranks": f", as {row['ranks']} of {row['of_ranks']} ranks execute it",
        "counts": ", as ranks run it unequally often",
    }
    return f"rank {row['differing_rank']} takes {format_duration(time)} in all, {away}{why.get(str(row['differs']), '')}"


def to_show(frame: pd.DataFrame) -> "pd.Series[Any]":
    """The kernel to show by rank at first: the one that differs the most, or else the longest."""
    most = most_different(frame)
    return frame.iloc[0] if most is None else most


def _short(executed: RankKernels) -> list[str]:
    """A short name of each kernel, with its kind where a name has two."""
    shorts, twice = short_names(executed.names), Counter(executed.names)
    return [
        f"{shorts[name]} ({kind})" if twice[name] > 1 else shorts[name]
        for name, kind in zip(executed.names, executed.kinds, strict=True)
    ]


def _usual(values: Floats) -> tuple[Floats, Floats]:
    """The median of each row, and its robust standard deviation, without NaN. Each row has a number."""
    median = np.nanmedian(values, axis=1)
    return median, OVER_MEDIAN_DEVIATION * np.nanmedian(np.abs(values - median[:, None]), axis=1)


def _far(values: Floats, is_late: Booleans) -> Floats:
    """How far each value is from the median of the ranks that are not late, where that is beyond their spread; else 0.

    Ranks that are late are compared with any number of others.
    """
    others = ~is_late & (~np.isnan(values[:, ~is_late])).any(axis=1, keepdims=True)
    usual = np.where(others | ~others.any(axis=1, keepdims=True), values, np.nan)
    median, spread = _usual(usual)
    away = values - median[:, None]
    least = np.maximum(_MOST_SPREADS * spread, _LEAST_PART * median)[:, None]
    enough = ((~np.isnan(usual)).sum(axis=1, keepdims=True) >= _LEAST_RANKS) | (is_late & others.any(axis=1, keepdims=True))
    return np.where(enough & (np.abs(away) > least), away, 0.0)


def _others(total: Floats, is_late: Booleans) -> Floats:
    """What the time of each rank is compared with: of two ranks that of the other, else the median over those that are not late."""
    if total.shape[1] == _TWO:
        return total[:, ::-1]
    others = total if is_late.all() else total[:, ~is_late]
    return np.broadcast_to(np.median(others, axis=1, keepdims=True), total.shape)


def _at(values: Floats, places: Int64s) -> Floats:
    """The value at one place of each row."""
    return np.take_along_axis(values, places[:, None], axis=1)[:, 0]
