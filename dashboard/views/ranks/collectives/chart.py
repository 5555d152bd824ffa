"""Bars of the time in collectives, and their bus bandwidth over the size."""

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import pandas as pd

from warpladder.dashboard.core.numbers import (
    NOTHING,
    format_bytes,
    format_duration,
    format_interval,
    format_percent,
    format_rate,
)
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.ui.bars import LEGEND, add_bars, rows_of_bars, scale, write_beside
from warpladder.dashboard.ui.template import SYMBOLS, Chart, Look, blank, hatch, palette, text, ticks
from warpladder.dashboard.ui.text import cut
from warpladder.dashboard.views.ranks.collectives import query

_MOST_BARS: Final = 12
_NAME_CHARACTERS: Final = 44
_LEGEND_CHARACTERS: Final = 36
#: Below this percentage of the best bus bandwidth of its group and kind, the title names a size.
_WEAK: Final = 80.0
_PARTS: Final = (
    ("wait_ns", "waited for the last rank", ""),
    ("transfer_ns", "transferred", "/"),
    ("unmatched_ns", "not told apart", "."),
)
_TIMES: Final = "A rank waits from the start of its kernel to the start of the kernel of the last rank, and transfers from then to its own end."


def times(frame: pd.DataFrame, look: Look) -> Chart:
    """Stacked bars of `query.by_kind`, not empty: time waited and transferred, and kernels that were not matched."""
    shown = frame.head(_MOST_BARS)
    rows = shown.to_dict("records")
    figure = rows_of_bars(look, [text(cut(_who(row), _NAME_CHARACTERS)) for row in rows], 34, 90, least=2)
    colors = look.tones.bad, look.tones.good, look.tones.muted
    for (column, name, pattern), color in zip(_PARTS, colors, strict=True):
        if frame[column].any():
            style = {"name": name, "width": 0.7, "marker": {"color": color, "pattern": hatch(pattern, 0.25)}}
            add_bars(figure, shown[column].clip(lower=0), [_time_hover(row) for row in rows], **style)
    ends = shown["wait_ns"] + shown["transfer_ns"].clip(lower=0) + shown["unmatched_ns"]
    write_beside(figure, ends, [text(_beside(row)) for row in rows])
    scale(figure, "sum over ranks", max(float(ends.max()), 1.0), 1.55)
    figure.update_layout(barmode="stack", **LEGEND)
    more = f" The first {len(rows)} of {len(frame)} groups and kinds are drawn." if len(rows) < len(frame) else ""
    note = look.note(f"times of communication kernels, summed over ranks. {_TIMES}{more}")
    return Chart("collectives-time", _times_title(frame), figure, frame, note)


def bandwidth(frame: pd.DataFrame, look: Look) -> Chart:
    """The bus bandwidth of `query.by_size` over the size, with a line for each group and kind; a row at least has a bandwidth."""
    told = frame[frame["bus_gb_per_s"].notna()]
    figure = blank(look.theme, 380)
    keys = list(told.groupby(["group", "collective", "ranks"], sort=False)["kernel_ns"].sum().nlargest(_MOST_BARS).index)
    colors = palette(look.theme)
    for place, (group, collective, ranks) in enumerate(keys):
        rows = told[(told["group"] == group) & (told["collective"] == collective) & (told["ranks"] == ranks)].sort_values(
            "bytes"
        )
        low, middle, high = (rows[f"bus_gb_per_s{end}"] for end in ("_low", "", "_high"))
        who = _who({"group": group, "collective": collective, "ranks": ranks})
        figure.add_scatter(
            x=rows["bytes"],
            y=middle,
            error_y={
                "type": "data",
                "symmetric": False,
                "array": (high - middle).fillna(0),
                "arrayminus": (middle - low).fillna(0),
                "thickness": 1,
                "width": 3,
            },
            mode="lines+markers",
            name=text(cut(who, _LEGEND_CHARACTERS)),
            line={"color": colors[place % len(colors)], "width": 1.5},
            marker={"symbol": SYMBOLS[place % len(SYMBOLS)], "size": 8},
            hoverinfo="text",
            hovertext=[_bandwidth_hover(row) for row in rows.to_dict("records")],
        )
    top = float(told[["bus_gb_per_s", "bus_gb_per_s_high"]].max().max())
    left, right = told["bytes"].min() / 1.6, told["bytes"].max() * 1.6
    figure.update_xaxes(
        type="log", range=[np.log10(left), np.log10(right)], title_text="size of the collective",
        **ticks(left, right, format_bytes, logarithmic=True),
    )  # fmt: skip
    figure.update_yaxes(range=[0, 1.12 * top], title_text="bus bandwidth", **ticks(0, top, format_rate, logarithmic=False))
    figure.update_layout(showlegend=True)
    more = f" The {len(keys)} groups and kinds with the longest time are drawn." if len(keys) == _MOST_BARS else ""
    note = look.note(
        "median and quartiles over executions. Bus bandwidth as NCCL's tests define it: size over time, times 2(n − 1)/n for all_reduce, "
        "(n − 1)/n for all_gather, reduce_scatter and alltoall, and 1 for broadcast, reduce and sendrecv, with n ranks in the group. The "
        f"time is the transfer, from the arrival of the last rank; the kernel's time would hold the wait too.{more}"
    )
    return Chart("collectives-bandwidth", _bandwidth_title(told), figure, told, note)


def _bandwidth_title(told: pd.DataFrame) -> str:
    """The best bandwidth, and the size that takes the most time of those far below the best of their group and kind."""
    rows = told.to_dict("records")
    best = max(rows, key=lambda row: row["bus_gb_per_s"])
    title = f"{_who(best)}: {format_rate(best['bus_gb_per_s'])} on the bus at {format_bytes(best['bytes'])}"
    weak = [row for row in rows if row["percent_of_best"] < _WEAK]
    if not weak:
        return title
    worst = max(weak, key=lambda row: row["transfer_ns"])
    same = _who(worst) == _who(best)
    what = "" if same else f"{_who(worst)} "
    return f"{title}; {what}{format_percent(worst['percent_of_best'])} of {'that' if same else 'its best'} at {format_bytes(worst['bytes'])}"


def _times_title(frame: pd.DataFrame) -> str:
    total, waited, unknown = (float(frame[name].sum()) for name in ("kernel_ns", "wait_ns", "unmatched_ns"))
    first = frame.iloc[0].to_dict()
    leads = f", {format_percent(100 * first['kernel_ns'] / max(total, 1))} of it in {_who(first)}" if len(frame) > 1 else ""
    if unknown >= total:
        return f"Collectives take {format_duration(total)} over all ranks{leads}; waits and transfers cannot be told apart"
    return f"Ranks wait {format_percent(100 * waited / max(total, 1))} of the {format_duration(total)} in collectives{leads}"


def _beside(row: dict[Any, Any]) -> str:
    if row["unmatched_ns"] >= row["kernel_ns"]:
        return f"{format_duration(row['kernel_ns'])} in {row['kernels']} kernels"
    return f"{format_percent(100 * row['wait_ns'] / max(row['kernel_ns'], 1))} waited, {row['count']} collectives"


def _who(row: dict[Any, Any]) -> str:
    """`all_reduce (group 0, 8 ranks)`, `all_reduce (4 groups of 8 ranks)`; a trace without groups names the stream."""
    group = str(row["group"])
    if group.endswith((" groups", "1 group")):
        return f"{row['collective']} ({group} of {row['ranks']} ranks)"
    return f"{row['collective']} ({group if group.startswith('stream ') else f'group {group}'}, {row['ranks']} ranks)"


def _time_hover(row: dict[Any, Any]) -> str:
    lines = [f"<b>{text(cut(_who(row), 160))}</b>", f"{row['count']} collectives, {row['kernels']} kernels"]
    for column, name, _ in _PARTS:
        lines.append(f"{name}: {text(format_duration(row[column]))}")
    return "<br>".join(lines)


def _bandwidth_hover(row: dict[Any, Any]) -> str:
    size = format_bytes(row["bytes"])
    if row["least_bytes"] < row["most_bytes"]:
        size += f" ({format_interval(format_bytes(row['least_bytes']), format_bytes(row['most_bytes']))})"
    quartiles = (
        format_interval(format_rate(row["bus_gb_per_s_low"]), format_rate(row["bus_gb_per_s_high"]))
        if not pd.isna(row["bus_gb_per_s_high"])
        else NOTHING
    )
    lines = [
        f"<b>{text(cut(_who(row), 160))}</b>",
        text(size),
        f"bus bandwidth: <b>{text(format_rate(row['bus_gb_per_s']))}</b> (quartiles {text(quartiles)})",
        f"algorithm bandwidth: {text(format_rate(row['algorithm_gb_per_s']))}",
        f"{text(format_percent(row['percent_of_best']))} of the best of the group and kind",
        f"median transfer {text(format_duration(row['transfer_median_ns']))}, wait {text(format_duration(row['wait_median_ns']))}",
        f"{row['count']} collectives, {row['kernels']} kernels",
    ]
    return "<br>".join(lines)


def charts(data: RunData, look: Look) -> Iterator[Chart]:
    """The time waited and transferred, and the bus bandwidth by size."""
    frame = query.collectives(data, together=query.many_groups(data)) if data.job else None
    if frame is None or frame.empty:
        return
    yield times(query.by_kind(frame), look)
    if frame["bus_gb_per_s"].notna().any():
        yield bandwidth(frame, look)
