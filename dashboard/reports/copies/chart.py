"""Speedups over the sequential host code: a panel without the copies, and a panel with them."""

from typing import Any

import pandas as pd
from plotly.subplots import make_subplots

from warpladder.dashboard.core.estimate import Estimate
from warpladder.dashboard.core.timing import Timing
from warpladder.dashboard.ui.marks import error_bars
from warpladder.dashboard.ui.numbers import format_ends, format_ratio
from warpladder.dashboard.ui.template import Chart, Look, blank, samples, slug, text
from warpladder.dashboard.ui.ticks import ticks


def with_and_without_copies(frame: pd.DataFrame, look: Look, workload: str, size: str = "") -> Chart:
    """Speedups over the sequential host code: a panel without the copies, and a panel with them.

    Args:
        frame: `query.with_and_without_copies`, not empty.
        size: one of `query.sizes_to_choose`, and the axis has the series at that size; empty where the axis has the sizes.
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
                x=[labels[case] for case in line["case"]],
                y=line["speedup"],
                mode="markers" if size else "lines+markers",
                row=1,
                col=column,
                name=text(look.named(workload, str(variant))),
                legendgroup=text(str(variant)),
                showlegend=column == 1,
                marker={"symbol": style.symbol, "size": 9, "color": style.color},
                line={"color": style.color, "dash": style.dash, "width": 1.5},
                error_y=error_bars(_speedup(row) for row in line.to_dict("records")),
                hoverinfo="text",
                hovertext=[_copies_hover(row) for row in line.to_dict("records")],
            )
    low, high = frame["speedup"].min(), frame["speedup"].max()
    figure.update_yaxes(type="log", **ticks(low, high, format_ratio, logarithmic=True))
    figure.update_xaxes(type="category", categoryorder="array", categoryarray=list(labels.values()))
    axes = {label.split("=")[0] for label in labels.values() if label.count("=") == 1}
    if len(axes) == 1 and all(label.count("=") == 1 for label in labels.values()):
        # Five sizes with the axis before each have no room side by side in a narrow window.
        values = [label.split("=")[1] for label in labels.values()]
        figure.update_xaxes(tickvals=list(labels.values()), ticktext=values, title_text=axes.pop())
    reference = look.named(workload, frame["reference"].iloc[0])
    figure.update_yaxes(title_text=f"speedup over {text(reference)}", row=1, col=1)
    figure.update_layout(margin={"t": 34}, legend={"x": 1.01, "y": 1})
    best = {copies: frame[frame["copies"] == copies].nlargest(1, "speedup").to_dict("records")[0] for copies in panels}
    title = "; ".join(
        f"{titles[copies]}, {format_ratio(row['speedup'])} ({look.named(workload, row['variant'])})"
        for copies, row in best.items()
    )
    scopes = " and ".join(Timing(row["scope"], row["cache"]).label(on_gpu=True) for row in best.values())
    note = (
        f"{look.device}; {scopes}, against the {reference} operation; ratios of medians with 95 % intervals, not paired, "
        f"because host and device have separate rounds; {samples(frame['n'])}."
    )
    title = f"Largest speedup over {reference}: {title}{f', at {size}' if size else ''}"
    return Chart(slug("copies", workload, size), title, figure, frame, note)


def _copies_hover(row: dict[Any, Any]) -> str:
    config = f" [{text(row['config'])}]" if row["config"] else ""
    interval = text(format_ends(_speedup(row), format_ratio))
    return (
        f"<b>{text(row['variant'])}</b>{config}<br>{text(row['title'])}<br>speedup: "
        f"<b>{text(format_ratio(row['speedup']))}</b> ({interval})<br>"
        f"{text(row['case'])} · {text(Timing(row['scope'], row['cache']).label(on_gpu=True))} · n = {row['n']}"
    )


def _speedup(row: dict[Any, Any]) -> Estimate:
    return Estimate(row["speedup"], row["low"], row["high"])


def _differing_parts(cases: list[str]) -> dict[str, str]:
    """The axes in which the cases differ, such as `perm=210` for `n=512,perm=210` where all cases have n=512."""
    parts = {case: case.split(",") for case in cases}
    common = set.intersection(*(set(of_case) for of_case in parts.values()))
    return {case: text(",".join(part for part in of_case if part not in common) or case) for case, of_case in parts.items()}
