"""Bandwidth over size of matrices and of a tensor."""

import pandas as pd

from warpladder.dashboard.core.estimate import Estimate
from warpladder.dashboard.reports.matrices.query import WORKLOAD
from warpladder.dashboard.ui.numbers import format_estimate, format_rate
from warpladder.dashboard.ui.template import Chart, Look, blank, hover, measured, text
from warpladder.dashboard.ui.ticks import ticks


def matrix_and_tensor(frame: pd.DataFrame, look: Look) -> Chart:
    """Bandwidth over size of `query.matrix_and_tensor`, not empty: one line a variant and config."""
    figure = blank(look.theme, 400)
    marks = ("circle", "square", "diamond", "triangle-up", "x", "star")
    for number, ((variant, config), line) in enumerate(frame.groupby(["variant", "config"], sort=False)):
        style = look.style(WORKLOAD, str(variant))
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
                hover(row, ("bandwidth", format_estimate(Estimate.of(row, "gb_per_s"), format_rate)))
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
