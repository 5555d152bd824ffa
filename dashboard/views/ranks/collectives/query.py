"""Time and bandwidth of the collectives of a job, by group, kind and size."""

from typing import Final

import numpy as np
import pandas as pd
import pyarrow as pa

from warpladder.dashboard.core.run_data import RunData
from warpladder.data.arrays import Floats, Int64s

#: The columns of table `collectives` that are read; a job of 512 ranks has hundreds of thousands of rows.
COLUMNS: Final = (
    "rank", "collective", "group", "group_ranks", "group_size", "bytes", "kernels", "start_ns", "end_ns", "match", "wait_ns", "transfer_ns",
)  # fmt: skip
#: A group and kind with more sizes than this has one row for each power of two.
_MOST_SIZES: Final = 12
#: More groups than this are shown together, those with the same number of ranks as one.
MOST_GROUPS: Final = 12
#: The columns of `by_size`.
RESULT: Final = (
    "group", "collective", "ranks", "bytes", "least_bytes", "most_bytes", "count", "kernels", "kernel_ns", "wait_ns", "transfer_ns",
    "unmatched_ns", "wait_median_ns", "transfer_median_ns", "least_wait_ns", "most_wait_ns", "least_wait_rank", "least_transfer_ns",
    "most_transfer_ns", "algorithm_gb_per_s", "bus_gb_per_s", "bus_gb_per_s_low", "bus_gb_per_s_high", "percent_of_best",
)  # fmt: skip


def bus_factor(collective: str, ranks: Floats) -> Floats:
    """The ratio of bus bandwidth to algorithm bandwidth of a collective over n ranks; NaN for a kind without a definition.

    As NCCL's tests define it: the bytes that cross the link of a rank, in units of the size of the collective
    (https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md).
    """
    if collective == "all_reduce":
        return 2 * (ranks - 1) / ranks
    if collective in ("reduce_scatter", "all_gather", "alltoall", "gather", "scatter"):
        return (ranks - 1) / ranks
    if collective in ("broadcast", "reduce", "sendrecv"):
        return np.ones_like(ranks)
    return np.full_like(ranks, np.nan)


def many_groups(data: RunData) -> bool:
    """Whether a job has so many groups that they are shown together."""
    return len(data.job.arrow("collectives", ("group",)).column("group").unique()) > MOST_GROUPS


def collectives(data: RunData, *, together: bool) -> pd.DataFrame:
    """`by_size` of the collectives of a job."""
    uncertainty = data.job.frame("ranks", "uncertainty_ns")["uncertainty_ns"].max()
    return by_size(data.job.arrow("collectives", COLUMNS), float(uncertainty), together=together)


def reasons(data: RunData) -> tuple[str, ...]:
    """What the import found wrong with the collectives, each finding once."""
    found = data.diagnostics
    return tuple(dict.fromkeys(found.loc[found["source"] == "collectives", "text"]))


def by_size(table: pa.Table, uncertainty_ns: float, *, together: bool = False) -> pd.DataFrame:
    """Time and bandwidth by group, kind and size.

    The size of a collective is the largest of its ranks' (`alltoall` may have a size for each rank), of the whole array as NCCL's tests
    have it. Times of a transfer are from the arrival of the last rank to a rank's own end; times of a kernel hold the wait before.

    Args:
        table: the columns `COLUMNS` of table `collectives`.
        uncertainty_ns: of the ranks' clocks. Where the median transfer is not longer, the bandwidth cannot be told.
        together: groups with the same number of ranks count as one.

    Returns:
        One row for each group, kind and size, with `RESULT`, the longest first by the time of its kernels:

        - `group`: its name, or such as `8 groups` together;
        - `ranks`: the number n of the group; where the trace lacks it, the number of ranks with a kernel of it;
        - `bytes`: the median size, null where the trace lacks the elements; `least_bytes` and `most_bytes` differ from it where
          sizes are joined by powers of two;
        - `count`: matched collectives of the job, null without a match; `kernels`: of all ranks, several where a collective took several;
        - `kernel_ns`: sum over ranks; `wait_ns`, `transfer_ns`: the same, null without a match; `unmatched_ns`: the part of `kernel_ns`
          without a match;
        - `wait_median_ns`, `transfer_median_ns`: medians over executions, null without a match;
        - `least_wait_ns`, `most_wait_ns`: the least and the largest sum of a rank; `least_wait_rank` for whom the others wait,
          null where all wait equally long;
        - `least_transfer_ns`, `most_transfer_ns`: the least and the largest median of a rank;
        - `algorithm_gb_per_s`: size over transfer, the median over executions; `bus_gb_per_s` the same times `bus_factor`, with
          its quartiles `bus_gb_per_s_low` and `bus_gb_per_s_high`;
        - `percent_of_best`: `bus_gb_per_s` of the largest one of the group and kind.
    """
    frame = table.to_pandas()
    if frame.empty:
        return pd.DataFrame(columns=list(RESULT))
    frame["kernel_ns"] = frame["end_ns"] - frame["start_ns"]
    frame["group"], frame["ranks"] = _groups(frame, together)
    matched = frame["match"].notna()
    frame["bytes"] = frame.groupby("match")["bytes"].transform("max").where(matched, frame["bytes"])
    kind = frame.groupby(["group", "ranks", "collective"], observed=True, sort=False).ngroup().to_numpy()
    sizes = _sizes(kind, frame["bytes"].to_numpy(dtype=np.int64))
    row = pd.DataFrame({"kind": kind, "size": sizes}).groupby(["kind", "size"], sort=False).ngroup().to_numpy()
    frame = frame.assign(row=row, kind=kind, unmatched_ns=frame["kernel_ns"].where(~matched, 0))
    groups = frame.groupby("row", sort=False)
    result = groups.agg(
        group=("group", "first"),
        collective=("collective", "first"),
        kind=("kind", "first"),
        bytes=("bytes", "median"),
        least_bytes=("bytes", "min"),
        most_bytes=("bytes", "max"),
        ranks=("ranks", "max"),
        kernels=("kernels", "sum"),
        kernel_ns=("kernel_ns", "sum"),
        unmatched_ns=("unmatched_ns", "sum"),
        wait_median_ns=("wait_ns", "median"),
        transfer_median_ns=("transfer_ns", "median"),
    ).astype({"group": "str", "collective": "str"})
    result[["wait_ns", "transfer_ns"]] = groups[["wait_ns", "transfer_ns"]].sum(min_count=1)
    # A collective is in one row.
    result["count"] = frame.loc[matched & ~frame["match"].duplicated(), "row"].value_counts().astype("Int64")
    result = result.join(_over_ranks(frame[matched])).join(_bandwidths(frame[matched]))
    told = result["transfer_median_ns"] > uncertainty_ns
    factor = pd.Series(np.nan, index=result.index)
    for name, rows in result.groupby("collective"):
        factor[rows.index] = bus_factor(str(name), rows["ranks"].to_numpy(dtype=float))
    for column, of in (("algorithm_gb_per_s", 1.0), *((f"bus_gb_per_s{end}", factor) for end in ("", "_low", "_high"))):
        result[column] = (result[column] * of).where(told)
    result["percent_of_best"] = 100 * result["bus_gb_per_s"] / result.groupby("kind")["bus_gb_per_s"].transform("max")
    for column in ("bytes", "least_bytes", "most_bytes"):
        result[column] = result[column].where(result["most_bytes"] > 0)
    ordered = result.sort_values(["kernel_ns", "group", "collective"], ascending=[False, True, True], ignore_index=True)
    return pd.DataFrame(ordered, columns=list(RESULT))


def by_kind(frame: pd.DataFrame) -> pd.DataFrame:
    """Sums of `by_size` by group and kind, the longest first: `group`, `collective`, `ranks`, `count`, and the sums of times."""
    keys = ["group", "collective", "ranks"]
    sums = frame.groupby(keys, sort=False)[["count", "kernels", "kernel_ns", "wait_ns", "transfer_ns", "unmatched_ns"]].sum()
    return sums.reset_index().sort_values("kernel_ns", ascending=False, kind="stable", ignore_index=True)


def _groups(frame: pd.DataFrame, together: bool) -> tuple["pd.Categorical[str]", Int64s]:
    """The name of each row's group, and the number of its ranks.

    A name has the ranks behind it where groups of other ranks have the same name.
    """
    number = frame.groupby(["group", "group_ranks"], observed=True, sort=False).ngroup().to_numpy()
    first_of_group = ~pd.Series(number, frame.index).duplicated()
    groups = frame[first_of_group][["group", "group_ranks"]].astype("str").reset_index(drop=True)
    sizes = frame.groupby(number)["group_size"].max()
    if sizes.isna().any():
        seen = pd.DataFrame({"group": number, "rank": frame["rank"]}).drop_duplicates()["group"].value_counts()
        sizes = sizes.fillna(seen)
    ranks = sizes.to_numpy(dtype=np.int64)
    if together:
        each = pd.Series(ranks).map(pd.Series(ranks).value_counts())
        names = each.map(lambda count: f"{count} groups" if count > 1 else "1 group")
        return pd.Categorical(names.to_numpy()[number]), ranks[number]
    several = groups["group"].duplicated(keep=False)
    names = groups["group"].where(~several, groups["group"] + " " + groups["group_ranks"])
    return pd.Categorical.from_codes(number, categories=pd.Index(names)), ranks[number]


def _sizes(kind: Int64s, size: Int64s) -> Int64s:
    """The size of each row, or where its kind has many sizes the power of two below it."""
    distinct = pd.DataFrame({"kind": kind, "size": size}).drop_duplicates()
    several = np.bincount(distinct["kind"]) > _MOST_SIZES
    powers = np.left_shift(1, np.frexp(np.maximum(size, 1))[1] - 1)
    return np.where(several[kind] & (size > 0), powers, size)


def _over_ranks(matched: pd.DataFrame) -> pd.DataFrame:
    """The least and the largest sum of waits, and median of transfers, that a rank has of each row."""
    of_ranks = (
        matched.groupby(["row", "rank"], sort=False)
        .agg(wait=("wait_ns", "sum"), transfer=("transfer_ns", "median"))
        .reset_index()
    )
    ends = of_ranks.groupby("row").agg(
        least_wait_ns=("wait", "min"),
        most_wait_ns=("wait", "max"),
        least_transfer_ns=("transfer", "min"),
        most_transfer_ns=("transfer", "max"),
    )
    first = of_ranks.loc[of_ranks.groupby("row")["wait"].idxmin()].set_index("row")["rank"]
    return ends.assign(least_wait_rank=first.astype("Int64").mask(ends["least_wait_ns"] == ends["most_wait_ns"]))


def _bandwidths(matched: pd.DataFrame) -> pd.DataFrame:
    """The median of size over transfer of each row, and its quartiles in the columns of the bus bandwidth.

    Quartiles are of transfer over size, because an uncertain clock may make a short transfer negative. Null where they are.
    """
    with_size = matched[matched["bytes"] > 0]
    times = (
        (with_size["transfer_ns"] / with_size["bytes"])
        .groupby(with_size["row"])
        .quantile(np.array([0.25, 0.5, 0.75]))
        .unstack()
    )
    times = times.reindex(columns=[0.25, 0.5, 0.75]).astype(float)
    rates = 1 / times.where(times > 0)
    return pd.DataFrame(
        {
            "algorithm_gb_per_s": rates[0.5],
            "bus_gb_per_s": rates[0.5],
            "bus_gb_per_s_low": rates[0.75],
            "bus_gb_per_s_high": rates[0.25],
        }
    )
