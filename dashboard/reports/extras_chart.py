"""The source reports' own tables as charts."""

from typing import Any, Final

import numpy as np
import pandas as pd
from plotly.subplots import make_subplots

from dashboard.core.axes import Timing
from dashboard.reports.extras import DEFINITION, TENSOR
from dashboard.ui.numbers import format_duration, format_interval, format_percent, format_rate, format_ratio
from dashboard.ui.template import Chart, Look, blank, hover, measured, samples, slug, text
from dashboard.ui.ticks import ticks

_PARTS: Final = {"allocate": "|", "h2d": "\\", "compute": "", "d2h": "/", "free": "x"}
_CONFLICT_COLUMNS: Final = {
    "published": "as published", "store": "store, ours", "store_inverse": "store, inverse<br>permutation", "load": "load, ours",
}  # fmt: skip


def bank_conflicts(frame: pd.DataFrame, look: Look) -> Chart:
    """Heat map of `extras.bank_conflict_table`."""
    frame = frame.sort_values("padded", kind="stable")
    figures = frame[list(_CONFLICT_COLUMNS)].to_numpy(dtype=float)
    rows = [f"({', '.join(row['perm'])})  {row['tile'].replace('x', '×')}" for row in frame.to_dict("records")]
    places = np.arange(len(rows)) + 0.6 * frame["padded"].to_numpy(dtype=float)
    figure = blank(look.theme, 30 * len(rows) + 110)
    light = look.theme == "light"
    scale = [[0, "#eef2f7" if light else "#1d2127"], [1, "#D55E00"]]
    for padded in (False, True):
        part = (frame["padded"] == padded).to_numpy()
        figure.add_heatmap(
            z=figures[part], y=places[part], x=list(_CONFLICT_COLUMNS.values()), zmin=0, zmax=16, colorscale=scale, showscale=False,
            xgap=3, ygap=3, text=[[f"{value:g}" for value in row] for row in figures[part]], texttemplate="%{text}",
            hovertemplate="%{x}: %{z:.3g}<extra></extra>",
        )  # fmt: skip
    figure.update_yaxes(
        tickvals=places,
        ticktext=rows,
        autorange="reversed",
        showgrid=False,
        zeroline=False,
        ticks="",
        tickfont={"color": look.tones.text},
    )
    figure.update_xaxes(side="top", showgrid=False, ticks="")
    clean = int((frame.loc[frame["padded"], "store"] == 0).sum())
    title = (
        f"The report's padded tiles leave no bank conflict in the store of {clean} of {int(frame['padded'].sum())} permutations"
    )
    note = f"Computed, not measured; shared memory of 32 banks of 4 bytes; tiles as depth × height × width, plain above and padded below. {DEFINITION}"
    return Chart("bank-conflicts", title, figure, frame, note)


def overheads(frame: pd.DataFrame, look: Look, workload: str = "conv2d") -> Chart:
    """Stacked shares of `extras.overheads`, not empty: the first and the fastest variant of each size, at its last case."""
    frame = frame[frame["case"].isin(frame.drop_duplicates("size_rank", keep="last")["case"])]
    operation = frame[frame["part"] == "compute"]
    chosen = pd.concat([operation.drop_duplicates("case"), operation.sort_values("median_ns").drop_duplicates("case")])
    keys = chosen[["case", "variant", "size_rank"]].drop_duplicates().sort_values(["size_rank", "variant"], kind="stable")
    labels = [text(f"{row['case']}  {look.named(workload, row['variant'])}") for row in keys.to_dict("records")]
    figure = blank(look.theme, 30 * len(labels) + 90)
    colors = dict(zip(_PARTS, ("#7A5AA6", "#56B4E9", "#009E73", "#E69F00", "#8A6D3B"), strict=True))
    for part, pattern in _PARTS.items():
        rows = keys.merge(frame[frame["part"] == part], on=["case", "variant"], how="left").to_dict("records")
        if all(pd.isna(row["fraction"]) for row in rows):
            continue
        figure.add_bar(
            x=[100 * row["fraction"] for row in rows], y=labels, orientation="h", name=part, hoverinfo="text",
            marker={"color": colors[part], "pattern": {"shape": pattern, "fillmode": "overlay", "size": 5, "solidity": 0.2}},
            hovertext=[
                f"<b>{text(row['variant'])}</b>, {text(row['case'])}<br>{part}: <b>{text(format_percent(100 * row['fraction']))}</b>, "
                f"{text(format_duration(row['median_ns']))} ({text(_ends(row, format_duration, 'low_ns', 'high_ns'))})<br>n = {row['n']}"
                if pd.notna(row["fraction"]) else "" for row in rows
            ],
        )  # fmt: skip
    figure.update_layout(barmode="stack", legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0}, margin={"t": 36})
    figure.update_xaxes(range=[0, 100], ticksuffix=" %", title_text="share of the run")
    figure.update_yaxes(autorange="reversed", showgrid=False, ticks="", tickfont={"color": look.tones.text})
    largest = operation[operation["size_rank"] == operation["size_rank"].max()].nsmallest(1, "median_ns").iloc[0]
    title = f"At {largest['case']}, {format_percent(100 * (1 - largest['fraction']))} of a run of {look.named(workload, largest['variant'])} is allocation, copies and release"
    note = f"{look.device}; parts of one end-to-end operation; copies and computation by events on the device, allocation and release by the host's clock; shares of the sum of the medians; {samples(frame['n'])}."
    return Chart(slug("overheads", workload), title, figure, frame, note)


def block_sensitivity(frame: pd.DataFrame, look: Look) -> Chart:
    """Time over block size of `extras.block_sensitivity`, not empty: one panel a variant, one line a case."""
    variants, workload = list(dict.fromkeys(frame["variant"])), str(frame["workload"].iloc[0])
    cases = list(dict.fromkeys(frame.sort_values("size_rank")["case"]))
    figure = make_subplots(
        rows=1,
        cols=len(variants),
        shared_yaxes=True,
        horizontal_spacing=0.03,
        subplot_titles=[text(look.named(workload, name)) for name in variants],
    )
    figure.update_layout(blank(look.theme, 340).layout)
    figure.update_annotations(font={"size": 13})
    symbols = ("circle", "square", "diamond", "triangle-up", "x", "star")
    for column, variant in enumerate(variants, start=1):
        color = look.style(workload, variant).color
        for number, case in enumerate(cases):
            line = frame[(frame["variant"] == variant) & (frame["case"] == case)].sort_values("block")
            figure.add_scatter(
                x=line["block"].astype(str), y=100 * (line["relative"] - 1), mode="lines+markers", row=1, col=column, name=text(case),
                legendgroup=case, showlegend=column == 1, opacity=0.35 + 0.65 * (number + 1) / len(cases),
                line={"color": color, "width": 1.8}, marker={"symbol": symbols[number % len(symbols)], "size": 8, "color": color},
                error_y={
                    "type": "data", "symmetric": False, "array": 100 * (line["relative_high"] - line["relative"]),
                    "arrayminus": 100 * (line["relative"] - line["relative_low"]), "thickness": 1, "width": 3,
                },
                hoverinfo="text", hovertext=[_block_hover(row) for row in line.to_dict("records")],
            )  # fmt: skip
        figure.update_xaxes(title_text="block side, threads", type="category", row=1, col=column)
    figure.update_yaxes(title_text="slower than the fastest block", row=1, col=1)
    figure.update_yaxes(ticksuffix=" %", rangemode="tozero")
    figure.update_layout(margin={"t": 34}, legend={"x": 1.01, "y": 1})
    worst = frame.nlargest(1, "relative").iloc[0]
    title = f"The wrong block costs up to {format_percent(100 * (worst['relative'] - 1))}: {look.named(workload, worst['variant'])} with {worst['config']} at {worst['case']}"
    note = measured(frame, look.device, "Ratios are paired by round.")
    return Chart(slug("block-sensitivity", str(frame["workload"].iloc[0])), title, figure, frame, note)


def with_and_without_copies(frame: pd.DataFrame, look: Look, workload: str = TENSOR, size: str = "") -> Chart:
    """Speedup over the sequential host code with the copies and without, of `extras.with_and_without_copies`, not empty.

    Args:
        size: one of `extras.sizes_to_choose`, whose series stand side by side; empty where size is the axis.
    """
    frame = (frame[frame["size"] == size] if size else frame).sort_values(["size_rank", "case"], kind="stable")
    labels = _differing_parts(list(dict.fromkeys(frame["case"])))
    panels = [copies for copies in (False, True) if (frame["copies"] == copies).any()]
    titles = {False: "without the copies", True: "with the copies in and out"}
    figure = make_subplots(
        rows=1,
        cols=len(panels),
        shared_yaxes=True,
        horizontal_spacing=0.03,
        subplot_titles=[titles[copies] for copies in panels],
    )
    figure.update_layout(blank(look.theme, 400).layout)
    figure.update_annotations(font={"size": 13})
    for column, copies in enumerate(panels, start=1):
        part = frame[frame["copies"] == copies]
        for variant, line in part.groupby("variant", sort=False):
            style = look.style(workload, str(variant))
            figure.add_scatter(
                x=[labels[case] for case in line["case"]], y=line["speedup"], mode="markers" if size else "lines+markers", row=1, col=column,
                name=text(look.named(workload, str(variant))), legendgroup=text(str(variant)), showlegend=column == 1,
                marker={"symbol": style.symbol, "size": 9, "color": style.color}, line={"color": style.color, "dash": style.dash, "width": 1.5},
                error_y={
                    "type": "data", "symmetric": False, "array": line["high"] - line["speedup"],
                    "arrayminus": line["speedup"] - line["low"], "thickness": 1, "width": 3,
                },
                hoverinfo="text", hovertext=[_copies_hover(row) for row in line.to_dict("records")],
            )  # fmt: skip
    low, high = frame["speedup"].min(), frame["speedup"].max()
    figure.update_yaxes(type="log", **ticks(low, high, format_ratio, logarithmic=True))
    figure.update_xaxes(type="category", categoryorder="array", categoryarray=list(labels.values()))
    reference = look.named(workload, frame["reference"].iloc[0])
    figure.update_yaxes(title_text=f"speedup over {text(reference)}", row=1, col=1)
    figure.update_layout(margin={"t": 34}, legend={"x": 1.01, "y": 1})
    best = {copies: frame[frame["copies"] == copies].nlargest(1, "speedup").to_dict("records")[0] for copies in panels}
    title = "; ".join(
        f"{titles[copies]}, up to {format_ratio(row['speedup'])} ({look.named(workload, row['variant'])})"
        for copies, row in best.items()
    )
    scopes = " and ".join(Timing(row["scope"], row["cache"]).label(on_gpu=True) for row in best.values())
    note = (
        f"{look.device}; {scopes}, against the {reference} operation; ratios of medians with 95 % intervals, not paired, since host "
        f"and device have rounds of their own; {samples(frame['n'])}."
    )
    return Chart(
        slug("copies", workload, size), f"{reference} is beaten {title}{f', at {size}' if size else ''}", figure, frame, note
    )


def matrix_and_tensor(frame: pd.DataFrame, look: Look) -> Chart:
    """Bandwidth over size of `extras.matrix_and_tensor`, not empty: one line a variant and config."""
    figure = blank(look.theme, 400)
    marks = ("circle", "square", "diamond", "triangle-up", "x", "star")
    for number, ((variant, config), line) in enumerate(frame.groupby(["variant", "config"], sort=False)):
        style = look.style(TENSOR, str(variant))
        what = line["what"].iloc[0]
        figure.add_scatter(
            x=line["size_value"], y=line["gb_per_s"], mode="lines+markers", name=text(f"{what}: {variant} {config}".rstrip()),
            line={"color": style.color, "dash": {"2-D": "solid", "3-D": "dash", "copy": "longdash"}[what], "width": 2},
            marker={"symbol": marks[number % len(marks)], "size": 8, "color": style.color},
            error_y={
                "type": "data", "symmetric": False, "array": line["gb_per_s_high"] - line["gb_per_s"],
                "arrayminus": line["gb_per_s"] - line["gb_per_s_low"], "thickness": 1, "width": 3,
            },
            hoverinfo="text",
            hovertext=[
                hover(row, ("bandwidth", f"{format_rate(row['gb_per_s'])} ({_ends(row, format_rate, 'gb_per_s_low', 'gb_per_s_high')})"))
                for row in line.to_dict("records")
            ],
        )  # fmt: skip
    sizes = frame.drop_duplicates("size")
    figure.update_xaxes(
        type="log", tickmode="array", tickvals=sizes["size_value"], ticktext=[text(size) for size in sizes["size"]]
    )
    low, high = frame["gb_per_s"].min(), frame["gb_per_s"].max()
    figure.update_yaxes(type="log", title_text="bandwidth", **ticks(low, high, format_rate, logarithmic=True))
    figure.update_layout(legend={"x": 1.01, "y": 1})
    largest = frame[frame["size_rank"] == frame["size_rank"].max()].sort_values("gb_per_s").drop_duplicates("what", keep="last")
    rate = largest.set_index("what")["gb_per_s"].to_dict()
    title = (
        f"(0,2,1) as a stack of matrices moves {format_rate(rate['2-D'])}, as a tensor {format_rate(rate['3-D'])}, at {largest['size'].iloc[0]}"
        if {"2-D", "3-D"} <= set(rate) else "(0,2,1) as a stack of matrices and as a tensor"
    )  # fmt: skip
    return Chart("matrix-and-tensor", title, figure, frame, measured(frame, look.device))


def _block_hover(row: dict[Any, Any]) -> str:
    ends = _ends(row, format_ratio, "relative_low", "relative_high")
    median = f"{format_duration(row['median_ns'])} ({_ends(row, format_duration, 'low_ns', 'high_ns')})"
    return hover(row, ("median", median), ("over the fastest block", f"{format_ratio(row['relative'])} ({ends})"))


def _copies_hover(row: dict[Any, Any]) -> str:
    config = f" [{text(row['config'])}]" if row["config"] else ""
    ends = text(_ends(row, format_ratio, "low", "high"))
    return (
        f"<b>{text(row['variant'])}</b>{config}<br>{text(row['title'])}<br>speedup: <b>{text(format_ratio(row['speedup']))}</b> ({ends})<br>"
        f"{text(row['case'])} · {text(Timing(row['scope'], row['cache']).label(on_gpu=True))} · n = {row['n']}"
    )


def _differing_parts(cases: list[str]) -> dict[str, str]:
    """What tells the cases apart: `perm=210` of `n=512,perm=210` where all have n=512."""
    parts = {case: case.split(",") for case in cases}
    common = set.intersection(*(set(of_case) for of_case in parts.values()))
    return {case: text(",".join(part for part in of_case if part not in common) or case) for case, of_case in parts.items()}


def _ends(row: dict[Any, Any], write: Any, low: str, high: str) -> str:
    return format_interval(write(row[low]), write(row[high]))
