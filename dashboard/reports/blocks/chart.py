"""Time over block size, a panel a variant."""

from typing import Any

import pandas as pd
from plotly.subplots import make_subplots

from warpladder.dashboard.core.estimate import Estimate
from warpladder.dashboard.ui.numbers import format_duration, format_estimate, format_percent, format_ratio
from warpladder.dashboard.ui.template import Chart, Look, blank, hover, measured, slug, text


def block_sensitivity(frame: pd.DataFrame, look: Look) -> Chart:
    """Time over block size of `query.block_sensitivity`, not empty: one panel a variant, one line a case."""
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


def _block_hover(row: dict[Any, Any]) -> str:
    median = format_estimate(Estimate.median_ns(row), format_duration)
    return hover(
        row, ("median", median), ("over the fastest block", format_estimate(Estimate.of(row, "relative"), format_ratio))
    )
