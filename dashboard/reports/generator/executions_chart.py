"""Figures 2 to 6 of the generator's report: kernels and copies of one execution of each variant, over time."""

from typing import Any, Final

import numpy as np
import pandas as pd

from warpladder.dashboard.reports.generator.names import (
    COPIES,
    DENSE,
    DIRECT,
    IN,
    KINDS,
    LAST,
    MIXED_VARIANT,
    NORMS,
    OPERANDS,
    OUT,
    OVERLAPPED_VARIANT,
    PRODUCTS,
)
from warpladder.dashboard.ui.greyscale import patterns
from warpladder.dashboard.ui.marks import hatch, name_rows
from warpladder.dashboard.ui.numbers import format_bytes, format_duration, format_percent, format_rate
from warpladder.dashboard.ui.template import Chart, Look, blank, palette, samples, slug, text
from warpladder.dashboard.ui.ticks import ticks

#: Places in the palette. Copies have the colours of `chart.parts`.
_COLORS: Final = {PRODUCTS: 0, OPERANDS: 3, DIRECT: 1, NORMS: 2, DENSE: 6, LAST: 7, IN: 5, OUT: 4}
#: Distance of a band's middle below the middle of its row, and the band's height. Copies in and out have separate bands,
#: because they can run at once.
_BANDS: Final = {IN: (0.23, 0.13), OUT: (0.38, 0.13)}
_KERNELS: Final = (-0.12, 0.5)
_ROW_PX: Final = 58
_MOST_BARS: Final = 2_000


def figures_2_to_6(frame: pd.DataFrame, look: Look, case: str) -> Chart:
    """One row for each execution of `executions.executions`, which is not empty, on a common time axis.

    At most 2,000 bars are drawn: those that start first, up to the same time in all rows.
    """
    keys = frame.drop_duplicates(["variant", "config"]).reset_index(drop=True)
    row_of = {(row["variant"], row["config"]): place for place, row in enumerate(keys.to_dict("records"))}
    whole_ns = int(keys["span_ns"].max())
    cut = len(frame) > _MOST_BARS
    until_ns = int(np.sort(frame["start_ns"])[_MOST_BARS]) if cut else whole_ns
    shown = frame[frame["start_ns"] < until_ns] if cut else frame
    figure = blank(look.theme, _ROW_PX * len(keys) + 112)
    drawn = [kind for kind in KINDS if (shown["kind"] == kind).any()]
    colors = [palette(look.theme)[_COLORS[kind]] if kind in _COLORS else look.tones.muted for kind in drawn]
    for kind, color, pattern in zip(drawn, colors, patterns(colors), strict=True):
        rows = shown[shown["kind"] == kind].to_dict("records")
        middle, height = _BANDS.get(kind, _KERNELS)
        figure.add_bar(
            x=[row["end_ns"] - row["start_ns"] for row in rows],
            base=[row["start_ns"] for row in rows],
            orientation="h",
            name=kind,
            width=height,
            y=[row_of[row["variant"], row["config"]] + middle for row in rows],
            hoverinfo="text",
            hovertext=[_hover(row) for row in rows],
            marker={"color": color, "pattern": hatch(pattern), "line": {"width": 0}},
        )
    figure.update_layout(
        barmode="overlay",
        legend={"orientation": "h", "y": 1.01, "yanchor": "bottom", "x": 0, "traceorder": "normal"},
        margin={"t": 56, "r": 28},  # two lines of legend
    )
    figure.update_xaxes(
        range=[0, until_ns],
        title_text="time from the start of an execution",
        **ticks(0, until_ns, format_duration, logarithmic=False),
    )
    labels = [_label(row) for row in keys.to_dict("records")]
    name_rows(figure, labels, look, range=[len(keys) - 0.45, -0.45], zeroline=False)
    left_out = (
        f" The chart has the {len(shown):,} bars of {len(frame):,} that start within {format_duration(until_ns)}; the Timeline "
        "has all of them."
        if cut
        else ""
    )
    note = look.note(
        "for each variant, the end-to-end execution of median duration, from its first device work to its last, traced under "
        f"a profiler, which makes launches longer; {samples(keys['n'])}; fp32. Wide bands are kernels. Thin bands below them "
        f"are copies in and copies out.{left_out} After figures 2 to 6 of S. Yi, SHPC 2021 Fall Term Project Report. "
        "Figures 2 to 5 show 16 inputs; the report does not name the GPU."
    )
    return Chart(slug("generator", "figures", case), _title(frame, case), figure, frame, note)


def name(row: dict[Any, Any]) -> str:
    """`v05_mixed [products=3]`, plain text."""
    return f"{row['variant']} [{row['config']}]" if row["config"] else str(row["variant"])


def _title(frame: pd.DataFrame, case: str) -> str:
    ran = frame.assign(who=[name(row) for row in frame.to_dict("records")], ns=frame["end_ns"] - frame["start_ns"])
    kernels = ran[~ran["kind"].isin(COPIES)]
    mixes = kernels[kernels["variant"] == MIXED_VARIANT]
    sums = (mixes if len(mixes) else kernels).groupby("who")["ns"].sum()
    if sums.empty:
        return f"At {case}, no kernel of the report's figures was traced"
    fastest, kernel_ns = str(sums.idxmin()), int(sums.min())
    shares = kernels[kernels["who"] == fastest].groupby("kind")["ns"].sum().nlargest(2) / kernel_ns
    where = ", ".join(f"{format_percent(100 * share)} {kind}" for kind, share in shares.items())
    take = (
        f"{fastest} is the fastest of {len(sums)} mixes: kernels take"
        if len(mixes) and len(sums) > 1
        else f"the kernels of {fastest} take"
    )
    copies = ran[ran["kind"].isin(COPIES) & (ran["variant"] == OVERLAPPED_VARIANT)]
    hides = (
        f"; {OVERLAPPED_VARIANT} hides {format_percent(100 * copies['hidden_ns'].sum() / copies['ns'].sum())} of its copies"
        if copies["ns"].sum()
        else ""
    )
    return f"At {case}, {take} {format_duration(kernel_ns)}, {where}{hides}"


def _label(row: dict[Any, Any]) -> str:
    return f"{text(name(row))}<br>{text(row['figure'])} · {text(format_duration(row['span_ns']))}"


def _hover(row: dict[Any, Any]) -> str:
    duration = row["end_ns"] - row["start_ns"]
    lines = [f"<b>{text(row['name'])}</b>: <b>{text(format_duration(duration))}</b>", row["kind"]]
    if pd.notna(row["bytes"]):
        rate = f" at {format_rate(row['bytes'] / duration)}" if duration else ""
        hidden = f", {format_percent(100 * row['hidden_ns'] / duration)} behind kernels" if duration else ""
        lines[0] = f"<b>{row['kind']}</b>: <b>{text(format_duration(duration))}</b>"
        lines[1] = text(f"{format_bytes(row['bytes'])}{rate}{hidden}")
    return "<br>".join([*lines, f"{text(name(row))}, after {text(format_duration(row['start_ns']))}"])
