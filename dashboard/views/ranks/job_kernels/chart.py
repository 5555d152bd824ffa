"""The kernels of a job with the interval over its ranks, and the time of one kernel by rank."""

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import pandas as pd

from warpladder.dashboard.core.numbers import format_duration, format_interval, format_percent
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.ui.bars import add_bars, rows_of_bars, scale, write_beside
from warpladder.dashboard.ui.template import Chart, Look, blank, slug, text, ticks
from warpladder.dashboard.ui.text import apart, cut
from warpladder.dashboard.views.ranks.job_kernels import query
from warpladder.dashboard.views.ranks.job_kernels.query import NAME_CHARACTERS, title_of

_MOST_BARS: Final = 12
_HOVER_CHARACTERS: Final = 160
#: More ranks than this are drawn as points.
_MOST_RANK_BARS: Final = 64


def leading(frame: pd.DataFrame, look: Look, extent: str) -> Chart:
    """Bars of `query.over_ranks`, not empty: the mean time a rank, with the interval from the fastest to the slowest rank.

    Args:
        extent: the iterations that are counted, such as `all iterations`.
    """
    shown = frame.head(_MOST_BARS)
    rows = shown.to_dict("records")
    names = apart(list(shown["kernel"]), list(shown["name"]), NAME_CHARACTERS)
    figure = rows_of_bars(look, list(map(text, names)), 28, 66)
    everywhere = shown["ranks"] == shown["of_ranks"]
    least = shown["fastest_ns"].where(everywhere, 0.0)
    add_bars(
        figure,
        shown["mean_ns"],
        [_hover(row) for row in rows],
        width=0.7,
        marker={"color": [look.tones.bad if row["differs"] else look.tones.good for row in rows]},
        error_x={
            "type": "data",
            "symmetric": False,
            "array": shown["slowest_ns"] - shown["mean_ns"],
            "arrayminus": shown["mean_ns"] - least,
            "thickness": 1.5,
            "width": 4,
            "color": look.tones.text,
        },
    )
    longest = max(float(shown["slowest_ns"].max()), 1.0)
    words = [f"{format_percent(row['percent'])}{f', {_difference(row)}' if row['differs'] else ''}" for row in rows]
    write_beside(figure, shown[["slowest_ns", "mean_ns"]].max(axis=1), map(text, words), 8)
    scale(figure, "time a rank", longest, 1.5)
    more = f" The first {len(rows)} of {len(frame)} are drawn." if len(rows) < len(frame) else ""
    note = look.note(
        f"{extent}, mean over {frame['of_ranks'].iloc[0]} ranks; the interval is from the fastest to the slowest rank, from 0 where a rank "
        "does not execute the kernel. Beside each bar: share of the time of all kernels of the job, and how a rank differs. Kernels of "
        f"communication hold the wait for other ranks.{more}"
    )
    return Chart(slug("job-kernels", extent), title_of(frame), figure, frame, note)


def by_rank(frame: pd.DataFrame, row: "pd.Series[Any]", look: Look, extent: str) -> Chart:
    """The time of one kernel on each rank.

    Args:
        frame: `query.of_kernel`.
        row: of the kernel, from `query.over_ranks`.
        extent: see `leading`.
    """
    figure = blank(look.theme, 280)
    ranks, times = frame["rank"].tolist(), frame["total_ns"].astype(float)
    marked = [rank == row["differing_rank"] if row["differs"] else False for rank in ranks]
    colors = [look.tones.bad if each else look.tones.good for each in marked]
    hover = [_rank_hover(each) for each in frame.to_dict("records")]
    if len(ranks) <= _MOST_RANK_BARS:
        figure.add_bar(x=ranks, y=times, marker={"color": colors}, hoverinfo="text", hovertext=hover)
        low = 0.0
    else:
        size = [9 if each else 5 for each in marked]
        figure.add_scatter(
            x=ranks, y=times, mode="markers", marker={"color": colors, "size": size}, hoverinfo="text", hovertext=hover
        )
        low = max(float(times.min()) - 0.1 * float(np.ptp(times)), 0.0)
    high = max(float(times.max()), 1.0)
    median = float(times.median())
    figure.add_hline(median, line={"color": look.tones.muted, "dash": "dash", "width": 1})
    figure.update_xaxes(title_text="rank", **_rank_ticks(ranks))
    figure.update_yaxes(
        range=[low, high + 0.08 * (high - low)], title_text="time", **ticks(low, high, format_duration, logarithmic=False)
    )
    figure.update_layout(showlegend=False)
    title = (
        f"{cut(row['kernel'], NAME_CHARACTERS)}: "
        f"{format_interval(format_duration(row['fastest_ns']), format_duration(row['slowest_ns']))} a rank, "
        f"{_difference(row.to_dict()) if row['differs'] else 'no rank stands out'}"
    )
    note = look.note(f"{extent}, sum of the executions on each rank; the line is their median.")
    return Chart(slug("job-kernel-by-rank", extent, str(row["kernel"])), title, figure, frame, note)


def _difference(row: dict[Any, Any]) -> str:
    match row["differs"]:
        case "some ranks":
            return f"on {row['ranks']} of {row['of_ranks']} ranks"
        case "counts":
            return f"counts differ, rank {row['differing_rank']} most"
    return f"rank {row['differing_rank']} {row['differs'].split()[0]}"


def _rank_ticks(ranks: list[int]) -> dict[str, Any]:
    """All ranks where they are few, else whole numbers."""
    return {"tickmode": "array", "tickvals": ranks} if len(ranks) <= 16 else {"tickformat": "d"}


def _hover(row: dict[Any, Any]) -> str:
    lines = [
        f"<b>{text(cut(row['name'], _HOVER_CHARACTERS))}</b>",
        f"{row['kind']}, {row['count']} executions on {row['ranks']} of {row['of_ranks']} ranks",
        f"{text(format_duration(row['total_ns']))} in all, {text(format_percent(row['percent']))} of the job",
        f"a rank: mean {text(format_duration(row['mean_ns']))}, spread {text(format_duration(row['spread_ns']))}",
        f"slowest: rank {row['slowest_rank']}, {text(format_duration(row['slowest_ns']))}",
        f"fastest: rank {row['fastest_rank']}, {text(format_duration(row['fastest_ns']))}",
    ]
    return "<br>".join([*lines, *([text(_difference(row))] if row["differs"] else [])])


def _rank_hover(row: dict[Any, Any]) -> str:
    mean = "" if pd.isna(row["mean_ns"]) else f", {format_duration(row['mean_ns'])} each"
    return f"<b>rank {row['rank']}</b><br>{text(format_duration(row['total_ns']))} in {row['count']} executions{text(mean)}"


def charts(data: RunData, look: Look) -> Iterator[Chart]:
    """The kernels that take the most time, and the kernel that differs the most by rank."""
    frame = query.kernels(data, None) if data.job else None
    if frame is None or frame.empty:
        return
    yield leading(frame, look, query.ALL)
    row = query.to_show(frame)
    yield by_rank(query.by_rank(data, None, row["name"], row["kind"]), row, look, query.ALL)
