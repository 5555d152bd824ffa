"""The cost of the copies of a trace, and the speedups with the copies counted."""

import math
from collections.abc import Iterator
from typing import Any, Final

import pandas as pd

from warpladder.dashboard.core.cell import ASIDE
from warpladder.dashboard.core.numbers import format_bytes, format_duration, format_percent, format_rate, format_ratio
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.core.traces import MEMORY_OPERATIONS, MIGRATIONS
from warpladder.dashboard.ui.bars import LEGEND, add_bars, rows_of_bars, scale, write_beside
from warpladder.dashboard.ui.template import SYMBOLS, Chart, Look, blank, free_symbol, hatch, text, ticks
from warpladder.dashboard.ui.text import cut
from warpladder.dashboard.views.time.transfers import query

_MOST_BARS: Final = 12
#: The plot in a window of 1024 pixels without the names of the bars, and a letter beside a bar.
_PLOT_PX: Final = 590
_LETTER_PX: Final = 6.4
_STAGES: Final = {"kernel": "kernel", "with_launch": "+ launch", "with_copies": "+ copies", "end_to_end": "end to end"}


def transfers(frame: pd.DataFrame, look: Look) -> Chart:
    """Bars of `query.transfers`, not empty: the time of copies while a kernel runs on the device, and the other time."""
    rows = frame.to_dict("records")
    figure = rows_of_bars(look, [text(_who(row)) for row in rows], 34, 90, least=2)
    hidden, alone = frame["overlap_ns"], frame["time_ns"] - frame["overlap_ns"]
    for values, name, color, pattern in (
        (alone, "no kernel runs meanwhile", "#E69F00", ""),
        (hidden, "while a kernel runs on the device", look.tones.good, "/"),
    ):
        style = {"name": name, "width": 0.7, "marker": {"color": color, "pattern": hatch(pattern, 0.25)}}
        add_bars(figure, values, [_transfer_hover(row) for row in rows], **style)
    about = [f"{_moved(row)}, {format_percent(row['percent_of_run'])} of the run" for row in rows]
    rates = [format_rate(row["gb_per_s"]) for row in rows]
    write_beside(
        figure, frame["time_ns"], [f"<b>{text(rate)}</b>  {text(each)}" for rate, each in zip(rates, about, strict=True)]
    )
    longest = max(float(frame["time_ns"].max()), 1.0)
    # The axis is so much longer than the bars that the words at their ends have room in a narrow window.
    needed = (
        time / longest / (1 - min(_LETTER_PX * (len(rate) + len(each) + 3) / _PLOT_PX, 0.8))
        for time, rate, each in zip(frame["time_ns"], rates, about, strict=True)
    )
    scale(figure, "sum of durations", longest, max(1.75, *needed))
    figure.update_layout(barmode="stack", **LEGEND)
    copies = frame[frame["kind"] != "memset"]
    first = (copies if len(copies) else frame).to_dict("records")[0]
    total = (copies if len(copies) else frame)["time_ns"].sum()
    title = (
        f"{'Copies' if len(copies) else 'Sets'} take {format_duration(total)}, {format_percent(100 * first['time_ns'] / max(total, 1))} "
        f"of it {_who(first)}: "
        + (
            "size not known"
            if pd.isna(first["bytes"])
            else f"{format_bytes(first['bytes'])} at {format_rate(first['gb_per_s'])}"
        )
    )
    note = look.note(
        "all copies of the trace. The run lasts from its first call or device work to its last. Share of the run: time in "
        "which at least one such copy ran. Rate: bytes over the sum of durations"
        + (", of the copies whose size is known." if frame["unknown"].any() else ".")
    )
    return Chart("transfers", title, figure, frame, note)


def stages(frame: pd.DataFrame, look: Look) -> Chart:
    """The time of `query.stages`, not empty, by stage.

    There is one line for each variant of a case, or in a report of another program for each range.
    """
    figure = blank(look.theme, 340)
    labels = list(_STAGES.values())
    title, rows_told = _title_and_rows(frame)
    shown = _drawn(frame, rows_told)
    used: set[tuple[str, str]] = set()
    for row in shown.to_dict("records"):
        style = look.style(row["workload"], row["variant"])
        # Several configs of a variant have its colour.
        symbol = free_symbol(style.color, [style.symbol, *SYMBOLS], used)
        used.add((style.color, symbol))
        name = " ".join(filter(None, (row["variant"], row["config"], row["case"])))
        figure.add_scatter(
            x=labels,
            y=[row[f"{stage}_ns"] for stage in _STAGES],
            mode="lines+markers",
            name=text(cut(name, 40)),
            line={"color": style.color, "dash": style.dash, "width": 1.8},
            marker={"symbol": symbol, "size": 9, "color": style.color},
            hoverinfo="text",
            hovertext=[_stage_hover(row, name, stage) for stage in _STAGES],
        )
    values = shown[[f"{stage}_ns" for stage in _STAGES]]
    # Room for a tick at 1, 2 or 5, even if all values are close together.
    low, high = float(values.min().min()) / 2, float(values.max().max()) * 2
    bounds = [math.log10(low), math.log10(high)]
    figure.update_yaxes(type="log", title_text="time", range=bounds, **ticks(low, high, format_duration, logarithmic=True))
    figure.update_xaxes(type="category", range=[-0.2, len(labels) - 0.8])
    figure.update_layout(legend={"x": 1.01, "y": 1})
    counts = f"{shown['n'].min()} to {shown['n'].max()}" if shown["n"].nunique() > 1 else str(shown["n"].iloc[0])
    part = f" {len(shown)} of {len(frame)} rows are drawn; the data has all rows." if len(shown) < len(frame) else ""
    note = look.note(
        f"medians over the ranges with a kernel and a copy, n = {counts}. Kernel: time on the device. + launch: plus the "
        "calls that launched the kernels. + copies: plus the copies. End to end: the range on the host, in which these can "
        f"overlap.{_whose(frame)}{part}"
    )
    return Chart("transfer-stages", title, figure, frame, note)


def _whose(frame: pd.DataFrame) -> str:
    """Which work counts for the ranges of another program."""
    of_ours = (frame["workload"] != "").any()
    return "" if of_ours else " Work that other threads launched while a step was open counts for the step."


def _title_and_rows(frame: pd.DataFrame) -> tuple[str, list[Any]]:
    """The title, and the index of the rows that it names.

    The title gives the fastest kernel's speedup over the first variant of its case at each stage. For a report of another
    program, it gives the range to which copies add the most.
    """
    compared = frame[~frame["role"].isin(ASIDE)] if not frame["role"].isin(ASIDE).all() else frame
    fast = compared.nlargest(1, "speedup_kernel").iloc[0]
    if fast["workload"] and fast["speedup_kernel"] > 1:
        first = _of_case(compared, fast).iloc[0]
        speedups = ", ".join(f"{format_ratio(fast[f'speedup_{stage}'])} {label}" for stage, label in _STAGES.items())
        same = fast["variant"] == first["variant"]
        name, over = (cut(row["variant"], 30) + (f" [{row['config'] or 'default'}]" if same else "") for row in (fast, first))
        where = f"{fast['workload']}, {fast['case']}: " if fast["case"] else ""
        return f"{where}{name} over {over}: {speedups}", [first.name, fast.name]
    worst = frame.assign(part=frame["with_copies_ns"] / frame["kernel_ns"]).nlargest(1, "part").iloc[0]
    title = (
        f"With launch and copies {cut(worst['variant'], 40)} takes {format_ratio(worst['part'])} its kernels' time, end to end "
        f"{format_ratio(worst['end_to_end_ns'] / worst['kernel_ns'])}"
    )
    return title, [worst.name]


def _of_case(frame: pd.DataFrame, row: "pd.Series[Any]") -> pd.DataFrame:
    rows: pd.DataFrame = frame[(frame["workload"] == row["workload"]) & (frame["case"] == row["case"])]
    return rows


def _drawn(frame: pd.DataFrame, rows: list[Any]) -> pd.DataFrame:
    """All rows up to `_MOST_BARS`. Of more rows, those that the title names and others of the same case."""
    if len(frame) <= _MOST_BARS:
        return frame
    of_case = _of_case(frame, frame.loc[rows[0]]).index
    others = [place for place in of_case if place not in rows]
    return frame.loc[sorted([*rows, *others[: _MOST_BARS - len(rows)]])]


def _transfer_hover(row: dict[Any, Any]) -> str:
    lines = [
        f"<b>{text(_who(row))}</b>",
        f"{text(_moved(row))}, {text(format_duration(row['time_ns']))}",
        text(format_rate(row["gb_per_s"])),
        f"{text(format_percent(row['overlap_percent']))} while a kernel runs on the device",
        f"{text(format_percent(row['percent_of_run']))} of the run",
    ]
    return "<br>".join(lines)


def _stage_hover(row: dict[Any, Any], name: str, stage: str) -> str:
    lines = [f"<b>{text(cut(name, 160))}</b>", f"{_STAGES[stage]}: <b>{text(format_duration(row[f'{stage}_ns']))}</b>"]
    lines.append(f"speedup over the first variant: {text(format_ratio(row[f'speedup_{stage}']))}")
    lines.append(f"n = {row['n']}")
    return "<br>".join(lines)


def _moved(row: dict[Any, Any]) -> str:
    """The bytes and the number of copies, such as `1.2 MB in 3`."""
    if not row["unknown"]:
        return f"{format_bytes(row['bytes'])} in {row['n']}"
    if pd.isna(row["bytes"]):
        return f"{row['n']} of unknown size"
    return f"{format_bytes(row['bytes'])} in {row['n']}, {row['unknown']} of unknown size"


def _who(row: dict[Any, Any]) -> str:
    """`host to device, pinned`. The host's memory of a migration is that of the managed memory itself."""
    memory = "" if row["kind"] in MIGRATIONS and row["host_memory"] == "unknown" else row["host_memory"]
    return ", ".join(filter(None, (MEMORY_OPERATIONS.get(row["kind"], row["kind"]), memory)))


def charts(data: RunData, look: Look) -> Iterator[Chart]:
    """The copies of the trace, and the speedups with the copies counted."""
    if "memory_ops" in data.traces.tables:
        yield transfers(query.transfers(data), look)
        of_ranges = query.stages(data)
        if len(of_ranges):
            yield stages(of_ranges, look)
