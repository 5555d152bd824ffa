"""The critical path of an iteration in the words and pieces of the page."""

from dataclasses import replace
from typing import Final

import numpy as np
import pandas as pd

from warpladder.dashboard.core import critical_path as paths
from warpladder.dashboard.core.critical_path import CriticalPath
from warpladder.dashboard.core.numbers import format_duration, format_percent
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.trace.describe import short_names

#: Kind of a segment -> its words.
KINDS: Final = {
    "compute": "compute",
    "communication": "transfers",
    "memory": "copies",
    "graph": "CUDA graphs",
    "launch": "launches",
    "host": "host",
    "idle": "idle",
}
#: A kind with less than this percentage of the path is not in the headline.
_LEAST_PERCENT: Final = 1.0
_MOST_KINDS: Final = 3
#: The path is drawn in this many parts of its time; segments of one kind that are shorter are one piece.
_CELLS: Final = 1_500
#: More lanes are drawn as one, that of the other ranks.
MOST_LANES: Final = 24
#: The lane of the other ranks.
OTHERS: Final = -1


def iterations(data: RunData) -> pd.DataFrame:
    """See `critical_path.iterations`. Raises StoreError: the profile of a rank cannot be read."""
    return paths.iterations(data.job)


def path(data: RunData, iteration: int | None) -> CriticalPath:
    """The critical path of an iteration, whose `kernels` have a short name, `kernel`; see `critical_path.critical_path`.

    Raises:
        StoreError: the profile of a rank cannot be read.
    """
    found = paths.critical_path(data.job, iteration)
    shorts = short_names(found.kernels["name"].tolist())
    kernels = found.kernels.assign(gain_percent=100 * found.kernels["gain_ns"] / found.span.duration_ns)
    kernels.insert(0, "kernel", [shorts[name] for name in kernels["name"]])
    kernels["kind"] = kernels["kind"].map(lambda kind: word(found, kind))
    return replace(found, kernels=kernels)


def word(found: CriticalPath, kind: str) -> str:
    """A kind in words. Communication is no transfer where it holds waits."""
    return "communication" if kind == "communication" and not found.aligned else KINDS[kind]


def by_kind(found: CriticalPath) -> pd.DataFrame:
    """The time of each kind on the path, the longest first: `kind`, `time_ns`, `percent` of the iteration, `segments`, `longest_ns`,
    `inferred` of the segments.
    """
    groups = _timed(found.segments).groupby("kind")
    frame = groups.agg(
        time_ns=("time_ns", "sum"), segments=("rank", "size"), longest_ns=("time_ns", "max"), inferred=("inferred", "sum")
    ).reset_index()
    frame.insert(2, "percent", 100 * frame["time_ns"] / found.span.duration_ns)
    frame["kind"] = frame["kind"].map(lambda kind: word(found, kind))
    return frame.sort_values(["time_ns", "kind"], ascending=[False, True], ignore_index=True)


def by_rank(found: CriticalPath) -> "pd.Series[int]":
    """The time of each rank on the path, the longest first."""
    return _timed(found.segments).groupby("rank")["time_ns"].sum().sort_values(ascending=False, kind="stable")


def host_parts(found: CriticalPath) -> pd.DataFrame:
    """The calls and operators of the host on the path, the longest first: `name`, `time_ns`, `percent` of the iteration, `segments`, `ranks`.

    What is in neither has the name `between calls and operators`.
    """
    host = _timed(found.segments[found.segments["kind"] == "host"])
    host = host.assign(name=host["name"].where(host["name"] != "", "between calls and operators"))
    groups = host.groupby("name")
    frame = groups.agg(time_ns=("time_ns", "sum"), segments=("time_ns", "size"), ranks=("rank", "nunique")).reset_index()
    frame.insert(2, "percent", 100 * frame["time_ns"] / found.span.duration_ns)
    return frame.sort_values(["time_ns", "name"], ascending=[False, True], ignore_index=True)


def headline(found: CriticalPath) -> str:
    """`Of 41.2 ms, 62 % is compute, 21 % transfers, 9 % launches; rank 13 holds 71 % of the path`."""
    kinds = by_kind(found)
    named = kinds[(kinds["percent"] >= _LEAST_PERCENT) | (kinds.index == 0)].head(_MOST_KINDS)
    shares = [f"{format_percent(percent)} {kind}" for percent, kind in zip(named["percent"], named["kind"], strict=True)]
    shares[0] = f"{format_percent(named['percent'].iloc[0])} is {named['kind'].iloc[0]}"
    ranks = by_rank(found)
    held = f"rank {ranks.index[0]} holds {format_percent(100 * ranks.iloc[0] / found.span.duration_ns)} of the path"
    return f"Of {format_duration(found.span.duration_ns)}, {', '.join(shares)}; {held}"


def bound(found: CriticalPath) -> str:
    """Why the gains are upper bounds; empty where all ranks were replayed."""
    if not found.aligned and len(found.ranks) > 1:
        return f"Rank {found.span.rank} alone was replayed, without the waits for other ranks."
    if not found.replayed:
        return "The iteration was not replayed: the path runs through too many ranks, or matched collectives contradict each other."
    if len(found.replayed) < len(found.ranks):
        return f"{len(found.replayed)} of {len(found.ranks)} ranks were replayed, so the gains are upper bounds."
    return ""


def notes(found: CriticalPath) -> tuple[str, ...]:
    """What the path cannot show, a sentence each."""
    lines = []
    if not found.aligned and len(found.ranks) > 1:
        lines.append(
            f"The clocks of the ranks are not aligned. The path stays in rank {found.span.rank}, whose iteration is the longest, and "
            "communication holds the wait for other ranks."
        )
    if found.without_clock:
        lines.append(f"The path leaves out ranks without an aligned clock: {', '.join(map(str, found.without_clock))}.")
    if inferred := int(found.segments["inferred"].sum()):
        lines.append(
            f"{inferred} {'segment is' if inferred == 1 else 'segments are'} on the path by inference: the profile does not name what the "
            "next one waited for. PyTorch's profiler names it with enable_cuda_sync_events=True."
        )
    if (found.segments["kind"] == "graph").any():
        lines.append(
            "CUDA graphs were traced as a whole: what runs inside of them, and which of it waits for other ranks, is not known. "
            "nsys profile --cuda-graph-trace=node records it."
        )
    if not found.has_launches:
        lines.append("The profiles have no launches, so the path follows the streams and never enters the host.")
    return tuple(lines)


def pieces(found: CriticalPath) -> pd.DataFrame:
    """The path for a drawing: neighbouring segments of one rank and kind, or shorter than a part of the time, are one piece.

    Returns:
        `rank`, `lane` (the rank, or `OTHERS`), `kind` with the most time in the piece, `name` of its longest segment, `segments`, `inferred` of these,
        `start_ns` and `end_ns` since the start of the iteration, by time.
    """
    rows = _timed(found.segments)
    width = max(found.span.duration_ns / _CELLS, 1.0)
    small = rows["time_ns"] < width
    cell = ((rows["start_ns"] - found.span.start_ns) / width).astype("int64")
    same_rank = rows["rank"] == rows["rank"].shift()
    same_kind = rows["kind"] == rows["kind"].shift()
    same_cell = small & small.shift(fill_value=False) & (cell == cell.shift())
    number = (~(same_rank & (same_kind | same_cell))).cumsum().rename("piece")
    longest = rows.loc[rows.groupby(number)["time_ns"].idxmax(), ["rank", "kind", "name"]].reset_index(drop=True)
    times = (
        rows.groupby(number)
        .agg(segments=("rank", "size"), inferred=("inferred", "sum"), start_ns=("start_ns", "min"), end_ns=("end_ns", "max"))
        .reset_index(drop=True)
    )
    of_kinds = rows.groupby([number, "kind"])["time_ns"].sum()
    kinds = of_kinds.loc[of_kinds.groupby(level=0).idxmax()].reset_index()["kind"]
    frame = pd.concat([longest.assign(kind=kinds.to_numpy()), times], axis=1)
    frame[["start_ns", "end_ns"]] -= found.span.start_ns
    shown = by_rank(found).index[: MOST_LANES if frame["rank"].nunique() <= MOST_LANES else MOST_LANES - 1]
    frame.insert(1, "lane", np.where(frame["rank"].isin(shown), frame["rank"], OTHERS))
    return frame


def _timed(segments: pd.DataFrame) -> pd.DataFrame:
    return segments.assign(time_ns=segments["end_ns"] - segments["start_ns"])
