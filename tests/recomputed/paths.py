"""The definitions of the section Critical path, for jobs whose hosts run ahead: each work waits for the work of its rank that ended last before it."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import pandas as pd

from tests.recomputed.definitions import Shipped
from tests.recomputed.displayed import Shown
from tests.recomputed.figures import Rule, Rules, Written

Row = Mapping[str, Any]
_SURE: Final = 2.0
_WORDS: Final = {"compute": "compute", "communication": "transfers"}


def span(run: Shipped) -> tuple[int, int, int]:
    """The number, start and end of the iteration with the median duration."""
    rows, clocks = run.table("iterations"), run.table("ranks").set_index("rank")["offset_ns"]
    ends: dict[int, int] = {}
    starts: dict[int, int] = {}
    for row in rows.itertuples():
        offset = round(clocks[row.rank])
        ends[row.iteration] = max(ends.get(row.iteration, 0), row.device_end_ns - offset)
        starts[row.iteration] = min(starts.get(row.iteration, 1 << 62), row.start_ns - offset)
    lasts = sorted((end - ends.get(number - 1, starts[number]), number) for number, end in ends.items())
    duration, number = lasts[(len(lasts) - 1) // 2]
    return number, ends[number] - duration, ends[number]


def _path(run: Shipped) -> dict[int, tuple[int, str, str, int, bool]]:
    """The path: start of each segment -> rank, kind, name, end, and whether the next work is on another stream, which collectives have for
    themselves.
    """
    _, begin, now = span(run)
    offset, doubt = run.table("ranks").set_index("rank")["offset_ns"], run.table("ranks").set_index("rank")["uncertainty_ns"]
    works = {}
    for rank in offset.index:
        frame = Shipped(run.folder / "ranks" / f"{rank:05d}").table("kernels")
        works[rank] = sorted(
            zip(frame["start_ns"] - round(offset[rank]), frame["end_ns"] - round(offset[rank]), frame["full_name"], strict=True)
        )
    collectives = run.table("collectives")
    rank = next(rank for rank, of_rank in works.items() if any(end == now for _, end, _ in of_rank))
    start, end, name = next(work for work in works[rank] if work[1] == now)
    segments: dict[int, tuple[int, str, str, int, bool]] = {}
    streams: list[str] = []
    while now > begin:
        same = collectives[
            (collectives["rank"] == rank) & (collectives["arrival_ns"] == start) & (collectives["finish_ns"] == end)
        ]
        if len(same):
            of_all = collectives[collectives["match"] == same["match"].iloc[0]]
            last = of_all.loc[of_all["arrival_ns"].idxmax()]
            shown = rank
            if last["arrival_ns"] - start > _SURE * (doubt[rank] ** 2 + doubt[last["rank"]] ** 2) ** 0.5:
                rank, start = int(last["rank"]), int(last["arrival_ns"])
            streams.append("communication")
        else:
            shown = rank
            streams.append("compute")
        segments[max(start, begin)] = (shown, streams[-1], name, now, streams[-2:] != [streams[-1]] * len(streams[-2:]))
        now = start
        start, end, name = max((work for work in works[rank] if work[1] <= now), key=lambda work: work[1])
        if begin < now:
            segments[max(end, begin)] = (rank, "idle", "", now, False)
            now = end
    return segments


def _of_segment(place: int) -> Rule:
    return lambda run, row, shown: _path(run)[row["start_ns"]][place]


def _of_kernel(run: Shipped, name: str) -> pd.DataFrame:
    rows = [(rank, kind, end - start) for start, (rank, kind, of, end, _) in _path(run).items() if of == name]
    return pd.DataFrame(rows, columns=["rank", "kind", "time_ns"])


def _time(run: Shipped, row: Row) -> int:
    return int(_of_kernel(run, row["name"])["time_ns"].sum())


def _percent(run: Shipped, row: Row, column: str) -> float:
    _, begin, end = span(run)
    return float(100 * (row["gain_ns"] if column == "gain" else _time(run, row)) / (end - begin))


RULES: Final[Mapping[str, Rules]] = {
    "critical-path": {
        "start_ns": None,
        **{name: _of_segment(place) for place, name in enumerate(("rank", "kind", "name", "end_ns"))},
        "inferred": _of_segment(4),
        "overlap_ns": lambda run, row, shown: 0,  # no shipped run has a kernel that starts before the end of the one before it
    },
    "critical-path-gains": {
        "kernel": None,
        "name": None,
        "kind": lambda run, row, shown: _WORDS[_of_kernel(run, row["name"])["kind"].iloc[0]],
        "time_ns": lambda run, row, shown: _time(run, row),
        "percent": lambda run, row, shown: _percent(run, row, "time"),
        "executions": lambda run, row, shown: len(_of_kernel(run, row["name"])),
        "inferred": lambda run, row, shown: sum(inferred for *_, of, _, inferred in _path(run).values() if of == row["name"]),
        "ranks": lambda run, row, shown: _of_kernel(run, row["name"])["rank"].nunique(),
        "tenth_ns": lambda run, row, shown: _time(run, row) / 10,
        "gain_percent": lambda run, row, shown: _percent(run, row, "gain"),
    },
}


def sentence(run: Shipped, shown: Shown) -> Iterator[tuple[str, Written]]:
    """The time of the iteration, and the share of the kind with the most of it."""
    if shown.title.startswith("Of "):
        _, begin, end = span(run)
        lasts, rest = shown.title.removeprefix("Of ").split(", ", 1)
        yield lasts, Written(end - begin)
        compute = sum(end - start for start, (_, kind, _, end, _) in _path(run).items() if kind == "compute")
        yield rest.split(" %")[0], Written(100 * compute / (end - begin))
