"""Hardware counters by variant: shares of the peaks, occupancy, traffic, and stalls of warps."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from warpladder.dashboard.core import counted, counters
from warpladder.dashboard.core.counted import THRESHOLDS, answer, limit, limit_clause, limit_words, reason_name
from warpladder.dashboard.core.limits import BOUND_PERCENT, LATENCY_PERCENT, PIPES, UNITS, Kind
from warpladder.dashboard.core.numbers import format_bytes, format_duration, format_percent, format_ratio, significant
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.core.why import Cause
from warpladder.dashboard.ui.bars import add_bars, panels, scale, write_beside
from warpladder.dashboard.ui.template import (
    ABOVE,
    Chart,
    Look,
    Theme,
    blank,
    bold_name,
    hatch,
    name_rows,
    patterns,
    slug,
    text,
    words_beside,
)
from warpladder.dashboard.views.why.counters import query
from warpladder.data.words import cut

_ROW_PX: Final = 26
_PIPE: Final = "pipe_percent"
#: Columns of the panels, and their names.
_UNITS: Final = {
    "dram_percent": "DRAM",
    "l2_percent": "L2",
    "l1_data_percent": "L1, shared",
    _PIPE: "busiest pipe",
    "issued_percent": "issue slots",
}
_TENSOR: Final = "tensor cores"
#: Names of pipes that a panel has no room for.
_SHORT: Final = {_TENSOR: "TC"}
#: For reports without the shares of single units.
_COARSE: Final = {"compute_percent": "compute", "memory_percent": "memory", "dram_percent": "DRAM"}
#: A reason below this percentage of every variant's time is drawn among the others.
_LEAST_PERCENT: Final = 3.0
_REASON_COLORS: Final = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#6A4C9C", "#8A6D3B", "#9B1C31")
_OTHERS: Final = "others"
#: Colours of the states without waiting, and of the reasons that are drawn together.
_GREYS: Final[Mapping[Theme, Mapping[str, str]]] = {
    "light": {_OTHERS: "#5C7A00", "selected": "#8d949e", "not_selected": "#c6cbd2"},
    "dark": {_OTHERS: "#B5D155", "selected": "#8d949e", "not_selected": "#555c67"},
}


def charts(data: RunData, look: Look) -> Iterator[Chart]:
    """The charts of the last case with counters of each workload."""
    for workload in counters.counted_workloads(data):
        case = counters.counted_cases(data, workload)[-1]
        every = counted.best(data, workload, case, counted.times(data, workload, case))
        frame = query.most_time(every)
        how = query.how_counted(data, len(frame), len(every)) + query.where_timed(frame, "")
        explained = counted.steps(data, workload, case, frame)
        if len(explained):
            yield steps(explained, look, workload, case, how)
        for draw in (speed_of_light, occupancy, traffic):
            yield draw(frame, look, workload, case, how)
        stalls = query.stalls(frame)
        if len(stalls):
            yield stall_reasons(stalls, look, workload, case, how)


def speed_of_light(frame: pd.DataFrame, look: Look, workload: str, case: str, how: str) -> Chart:
    """The shares of their peaks that the units reach in each variant.

    Args:
        frame: `query.best`, not empty.
        how: a sentence on how the counters were taken.
    """
    frame = frame.assign(pipe_percent=frame[[unit.column for unit in PIPES]].max(axis=1))
    units = _UNITS if frame["issued_percent"].notna().any() else _COARSE
    rows = frame.to_dict("records")
    widths = {"horizontal_spacing": 0.015, "column_widths": [1.4 if name == _PIPE else 1.0 for name in units]}
    figure = panels(look, list(units.values()), _ROW_PX * max(len(rows), 3) + 70, shared_yaxes=True, **widths)
    _name_variants(figure, rows, look, workload)
    for column, name in enumerate(units, start=1):
        _bars(figure, rows, look, workload, name, format_percent, row=1, col=column)
        for threshold in (LATENCY_PERCENT, BOUND_PERCENT):
            figure.add_vline(x=threshold, line={"color": look.tones.grid, "width": 1}, layer="below", row=1, col=column)
    # A panel has room for the words beside its longest bar, in a narrow window too.
    axis = {"tickvals": [0, 100], "ticktext": ["0", "100 %"], "tickangle": 0, "showgrid": False}
    figure.update_xaxes(range=[0, 172 if units is _COARSE else 205], **axis)
    if _PIPE in units:  # words of a share and a name
        figure.update_xaxes(range=[0, 270], col=list(units).index(_PIPE) + 1)
    for place, row in enumerate(rows):
        color = look.tones.text if limit(row).kind in (Kind.UNIT, Kind.FLOOR) else look.tones.muted
        at = {"xref": "paper", "yref": "y", "align": "left", "font": {"size": 12, "color": color}}
        figure.add_annotation(words_beside(text(limit_words(row)), 1.01, place, 10, **at))
    figure.update_layout(margin={"t": 28, "r": 190})
    tensor = f" {_SHORT[_TENSOR]}: {_TENSOR}." if _TENSOR in map(_busiest, rows) and _PIPE in units else ""
    note = f"{_note(frame, look, case, how)} Shares of the sustained peak of each unit.{tensor} {THRESHOLDS}"
    return Chart(slug("speed-of-light", workload, case), answer(frame), figure, frame, note)


def occupancy(frame: pd.DataFrame, look: Look, workload: str, case: str, how: str) -> Chart:
    """Achieved occupancy as bars, and theoretical occupancy as marks, of `query.best`, not empty."""
    rows = frame.to_dict("records")
    figure = _rows(look, rows, workload, 60)
    _bars(figure, rows, look, workload, "occupancy_percent", None)
    figure.add_scatter(
        x=frame["theoretical_percent"],
        y=list(range(len(rows))),
        mode="markers",
        showlegend=False,
        hoverinfo="skip",
        marker={"symbol": "line-ns", "size": 18, "line": {"width": 2.5, "color": look.tones.text}},
    )
    words = [f"<b>{text(format_percent(row['occupancy_percent']))}</b>  {text(_limited(row))}" for row in rows]
    write_beside(figure, [103] * len(rows), words, 0)
    axis = {"range": [0, 200], "tickvals": [0, 25, 50, 75, 100], "ticksuffix": " %"}
    figure.update_xaxes(title_text="resident warps, share of the most that fit", **axis)
    low = frame.assign(lost=frame["theoretical_percent"] - frame["occupancy_percent"]).nlargest(1, "lost").to_dict("records")
    title = "Achieved against theoretical occupancy"
    if low:
        title = (
            f"{look.variant_name(workload, low[0]['variant'])} has the largest gap: "
            f"{format_percent(low[0]['occupancy_percent'])} achieved of "
            f"{format_percent(low[0]['theoretical_percent'])} theoretical occupancy"
        )
    note = (
        f"{_note(frame, look, case, how)} Bar: achieved; line: theoretical, with the resource that limits it and the waves of "
        "blocks."
    )
    return Chart(slug("occupancy", workload, case), title, figure, frame, note)


#: The words of bars that end here or later reach the line at 1.
_BEFORE_LINE: Final = 0.7


def traffic(frame: pd.DataFrame, look: Look, workload: str, case: str, how: str) -> Chart:
    """Bytes of device memory of `query.best`, not empty, over the case's least bytes where these are known."""
    rows = frame.to_dict("records")
    relative = bool(frame["dram_over_min"].notna().any())
    column, write = ("dram_over_min", format_ratio) if relative else ("dram_bytes", format_bytes)
    figure = _rows(look, rows, workload, 60)
    _bars(figure, rows, look, workload, column, None)
    largest = float(np.nanmax([*frame[column].astype(float), 1.0]))
    moved = [f"  {text(format_bytes(row['dram_bytes']))}" if relative and pd.notna(row["dram_bytes"]) else "" for row in rows]
    words = [f"<b>{text(write(row[column]))}</b>{beside}" for row, beside in zip(rows, moved, strict=True)]
    ends = frame[column].astype(float).fillna(0.0)
    # The words of a bar that ends a little before the line stand behind the line, which would cross them.
    write_beside(figure, ends.mask(ends.between(_BEFORE_LINE, 1.0), 1.0) if relative else ends, words, 5)
    if relative:
        figure.add_vline(x=1, line={"color": look.tones.text, "width": 1.5, "dash": "dash"})
    scale(figure, "DRAM bytes over the least" if relative else "DRAM bytes", largest, 1.5, write)
    most = frame.dropna(subset=[column]).nlargest(1, column).to_dict("records")
    title = "Bytes moved to and from device memory"
    if most and relative:
        title = (
            f"{look.variant_name(workload, most[0]['variant'])} moves the most DRAM bytes: "
            f"{format_ratio(most[0]['dram_over_min'])} the least bytes of the case"
        )
    note = (
        f"{_note(frame, look, case, how)} Bytes read and written. Data that stays in L2 at the kernel's end is not "
        "counted, so a ratio can be below 1."
    )
    return Chart(slug("dram-bytes", workload, case), title, figure, frame, note)


def stall_reasons(stalls: pd.DataFrame, look: Look, workload: str, case: str, how: str) -> Chart:
    """Stacked bars of `query.stalls`, not empty: cycles of a warp between two instructions, by state of the warp."""
    pairs = list(dict.fromkeys(zip(stalls["variant"], stalls["config"], strict=True)))
    most = stalls.groupby("reason", sort=False)["percent"].max()
    issuing = [reason for reason in ("selected", "not_selected") if reason in most]
    drawn = [reason for reason in most.index if most[reason] >= _LEAST_PERCENT and reason not in issuing][: len(_REASON_COLORS)]
    figure = _rows(look, [{"variant": variant, "config": config} for variant, config in pairs], workload, 96)
    colors = {**dict(zip(drawn, _REASON_COLORS, strict=False)), **_GREYS[look.theme]}
    cells = {(row["variant"], row["config"], row["reason"]): row for row in stalls.to_dict("records")}
    rest = stalls[~stalls["reason"].isin([*drawn, *issuing])].groupby(["variant", "config"])["cycles"].sum()
    others = [rest.get(pair, 0.0) for pair in pairs]
    reasons = (*drawn, *([_OTHERS] if any(others) else []), *issuing)
    for reason, pattern in zip(reasons, patterns([colors[reason] for reason in reasons]), strict=True):
        reason_rows = [cells.get((*pair, reason)) for pair in pairs]
        hovers = [
            f"{bold_name(row['variant'], row['config'])}<br>{text(reason_name(reason))}: a warp {text(row['meaning'])}<br>"
            f"<b>{text(significant(row['cycles']))} cycles</b>, {text(format_percent(row['percent']))} of its time"
            if row
            else ""
            for row in reason_rows
        ]
        if reason == _OTHERS:
            hovers = [f"others: {text(significant(cycles))} cycles" for cycles in others]
        cycles = others if reason == _OTHERS else [row["cycles"] if row else None for row in reason_rows]
        name = text(reason_name(reason))
        marker = {"color": colors[reason], "pattern": hatch(pattern)}
        add_bars(figure, cycles, hovers, width=0.74, name=name, marker=marker)
    figure.update_xaxes(title_text="cycles between two instructions of a warp")
    figure.update_layout(barmode="stack", margin={"t": 50}, legend={**ABOVE, "traceorder": "normal"})
    waits = stalls[~stalls["reason"].isin(issuing)].nlargest(1, "cycles").to_dict("records")
    title = "What warps wait for"
    if waits:
        first = waits[0]
        title = (
            f"The longest wait: {significant(first['cycles'])} cycles between two instructions, in which a warp of "
            f"{look.variant_name(workload, first['variant'])} {first['meaning']}"
        )
    note = f"{look.device}, {case}; {how} Mean number of warps in each state for each issued instruction; grey: not waiting."
    return Chart(slug("warp-stalls", workload, case), title, figure, stalls, note)


#: Room for the words beside the longest bar of a step, as a part of the span of the bars.
_WORDS_ROOM: Final = 0.3


def steps(frame: pd.DataFrame, look: Look, workload: str, case: str, how: str) -> Chart:
    """The gain of each step of `query.steps`, not empty, the part of it that the counters explain, and its cause."""
    rows = frame.to_dict("records")
    figure = _rows(look, rows, workload, 70)
    gains = [float(np.log2(row["gain"])) for row in rows]
    for place, (row, gain) in enumerate(zip(rows, gains, strict=True)):
        part = 0.0 if pd.isna(row["explained_percent"]) or row["cause"] == Cause.NOTHING else row["explained_percent"] / 100
        for size, base, opacity in ((gain * part, 0.0, 1.0), (gain * (1 - part), gain * part, 0.3)):
            shape = {"base": [base], "y": [place], "width": 0.7, "opacity": opacity, "showlegend": False}
            color = look.style(workload, row["variant"]).color
            add_bars(figure, [size], [text(row["sentence"])], marker={"color": color}, **shape)
    words = [f"<b>{text(format_ratio(row['gain']))}</b>  {text(str(row['cause']))}" for row in rows]
    write_beside(figure, [max(gain, 0.0) for gain in gains], words)
    low, high = min([0.0, *gains]), max([1.0, *gains])
    marks = [mark for mark in (-4, -2, -1, 0, 1, 2, 4, 6) if low - 0.2 <= mark <= high + 0.2]
    figure.update_xaxes(
        range=[low * 1.1, high + _WORDS_ROOM * (high - low)],
        tickvals=marks,
        ticktext=[format_ratio(2.0**mark) for mark in marks],
        title_text="time of the step before over its own, log scale",
    )
    figure.update_layout(barmode="overlay")
    best = max(rows, key=lambda row: row["gain"])
    note = f"{look.device}, {case}; {how} Full colour: the part of the gain that the counters explain."
    return Chart(slug("steps-explained", workload, case), f"The largest step: {best['sentence']}", figure, frame, note)


def _bars(
    figure: go.Figure,
    rows: list[dict[Any, Any]],
    look: Look,
    workload: str,
    column: str,
    write: Callable[[float], str] | None,
    **place: int,
) -> None:
    """Bars of one column in the variants' colours, with values beside them where `write` is given."""
    styles = [look.style(workload, row["variant"]) for row in rows]
    words = [f"{write(row[column])}" if write and pd.notna(row[column]) else "" for row in rows]
    if column == _PIPE:
        names = (_SHORT.get(_busiest(row), _busiest(row)) for row in rows)
        words = [f"{each} {name}" if each else "" for each, name in zip(words, names, strict=True)]
    colors, shapes = [style.color for style in styles], [style.pattern for style in styles]
    beside: dict[str, Any] = {
        "text": list(map(text, words)),
        "textposition": "outside",
        "textfont": {"size": 12},
        "cliponaxis": False,
    }
    marker = {"color": colors, "pattern": hatch(shapes)}
    values, hovers = [row[column] for row in rows], list(map(_hover, rows))
    add_bars(figure, values, hovers, marker=marker, width=0.7, showlegend=False, **beside, **place)


def _busiest(row: Mapping[Any, Any]) -> str:
    """The name of the busiest pipe of a variant."""
    return next((unit.name for unit in PIPES if row[unit.column] == row[_PIPE]), "")


def _rows(look: Look, rows: list[dict[Any, Any]], workload: str, around_px: int) -> go.Figure:
    """A figure with a row for each variant and config."""
    figure = blank(look.theme, _ROW_PX * max(len(rows), 3) + around_px)
    _name_variants(figure, rows, look, workload)
    return figure


def _name_variants(figure: go.Figure, rows: list[dict[Any, Any]], look: Look, workload: str) -> None:
    """Name the rows; a config stands beside a variant that has several."""
    variants = [row["variant"] for row in rows]
    configs = [f" [{cut(row['config'], 24)}]" if variants.count(row["variant"]) > 1 else "" for row in rows]
    names = [text(f"{look.variant_name(workload, row['variant'])}{config}") for row, config in zip(rows, configs, strict=True)]
    name_rows(figure, names, look, range=[len(rows) - 0.45, -0.55], zeroline=False)


def _limited(row: dict[Any, Any]) -> str:
    if pd.isna(row["theoretical_percent"]):
        return "not counted"
    registers = f" ({row['registers']:.0f} a thread)" if row["limiter"] == "registers" and pd.notna(row["registers"]) else ""
    shared = (
        f" ({format_bytes(row['shared_bytes'])})" if row["limiter"] == "shared memory" and pd.notna(row["shared_bytes"]) else ""
    )
    limit = f", limited by {row['limiter']}{registers}{shared}" if row["limiter"] else ""
    waves = f"; {significant(row['waves'])} waves" if pd.notna(row["waves"]) else ""
    return f"of {format_percent(row['theoretical_percent'])}{limit}{waves}"


def _note(frame: pd.DataFrame, look: Look, case: str, how: str) -> str:
    means = "Over several launches of a variant, figures are means weighted by time, and bytes are sums."
    return f"{look.device}, {case}; {how} {means if (frame['launches'] > 1).any() else ''}".rstrip()


def _hover(row: dict[Any, Any]) -> str:
    lines = [bold_name(row["variant"], row["config"]), text(limit_clause(row)).replace("; ", "<br>")]
    figures = (
        ("compute, memory", f"{format_percent(row['compute_percent'])} · {format_percent(row['memory_percent'])}"),
        *((unit.name, format_percent(row[unit.column])) for unit in UNITS if pd.notna(row[unit.column])),
        ("occupancy", f"{format_percent(row['occupancy_percent'])} of {format_percent(row['theoretical_percent'])}"),
        ("DRAM bytes", format_bytes(row["dram_bytes"])),
        ("time under the profiler", format_duration(row["time_ns"])),
    )
    lines += [f"{label}: <b>{text(value)}</b>" for label, value in figures]
    kernels = ", ".join(row["kernels"][:3]) + ("…" if len(row["kernels"]) > 3 else "")
    lines.append(f"{row['launches']} {'launch' if row['launches'] == 1 else 'launches'}: {text(kernels)}")
    return "<br>".join(lines)
