"""The tensor report's figure 5: one permutation as a stack of matrices and as a tensor."""

from collections.abc import Iterator
from typing import Final

import pandas as pd

from warpladder.dashboard.core.cell import Timing, records
from warpladder.dashboard.core.cells import cells, charted_cases, in_timing, timings
from warpladder.dashboard.core.numbers import format_estimate, format_rate
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.ui.template import Chart, Look, blank, error_bars, hover, measured, text, ticks

WORKLOAD: Final = "tensor_transpose"
#: Variant -> the way in which it moves the data.
MATRIX_AND_TENSOR: Final = {
    "v01_copy": "copy",
    "v06_shared_template": "3-D",
    "v07_bank_padding": "3-D",
    "v08_matrix_tile": "2-D",
}


def matrix_and_tensor(data: RunData) -> pd.DataFrame:
    """The tensor report's figure 5: a stack of matrices transposed with 8x8 and 32x32 tiles, and as a tensor with 8x8x8 tiles.

    Returns:
        Rows of `cells` in the first timing, of the permutation (0,2,1) and by variant, config and size, with `size` and
        `size_value` (see `axes.charted_cases`) and `what` (`2-D`, `3-D` or `copy`). Empty where the run lacks one of the two
        kinds.
    """
    known_timings = timings(data, WORKLOAD)
    timing = known_timings[0] if known_timings else Timing("", "")
    cases = charted_cases(data, WORKLOAD)
    cases = cases[cases["series"] == "perm=021"][["case", "size", "size_value"]]
    rows = in_timing(cells(data), WORKLOAD, timing)
    rows = rows[(rows["n"] > 0) & rows["variant"].isin(MATRIX_AND_TENSOR)].merge(cases, on="case")
    rows["what"] = rows["variant"].map(MATRIX_AND_TENSOR)
    if not {"2-D", "3-D"} <= set(rows["what"]):
        return rows.iloc[:0]
    return rows.sort_values(["what", "variant", "config", "size_value"], kind="stable").reset_index(drop=True)


def chart(frame: pd.DataFrame, look: Look) -> Chart:
    """Bandwidth over size, with a line for each variant and config.

    Args:
        frame: `query.matrix_and_tensor`, not empty.
    """
    figure = blank(look.theme, 400)
    marks = ("circle", "square", "diamond", "triangle-up", "x", "star")
    for number, ((variant, config), line) in enumerate(frame.groupby(["variant", "config"], sort=False)):
        style = look.style(str(line["workload"].iloc[0]), str(variant))
        what = line["what"].iloc[0]
        cells = records(line)
        figure.add_scatter(
            x=line["size_value"],
            y=line["gb_per_s"],
            mode="lines+markers",
            name=text(f"{what}: {variant} {config}".rstrip()),
            line={"color": style.color, "dash": {"2-D": "solid", "3-D": "dash", "copy": "longdash"}[what], "width": 2},
            marker={"symbol": marks[number % len(marks)], "size": 8, "color": style.color},
            error_y=error_bars(cell.gb_per_s for cell in cells),
            hoverinfo="text",
            hovertext=[hover(cell, ("bandwidth", format_estimate(cell.gb_per_s, format_rate))) for cell in cells],
        )
    sizes = frame.drop_duplicates("size")
    figure.update_xaxes(
        type="log", tickmode="array", tickvals=sizes["size_value"], ticktext=[text(size) for size in sizes["size"]]
    )
    low, high = frame["gb_per_s"].min(), frame["gb_per_s"].max()
    figure.update_yaxes(type="log", title_text="bandwidth", **ticks(low, high, format_rate, logarithmic=True))
    figure.update_layout(legend={"x": 1.01, "y": 1})
    largest = frame[frame["size_rank"] == frame["size_rank"].max()].sort_values("gb_per_s").drop_duplicates("what", keep="last")
    rate = largest.set_index("what")["gb_per_s"].to_dict()
    title = "(0,2,1) as a stack of matrices and as a tensor"
    if {"2-D", "3-D"} <= set(rate):
        both = f"{format_rate(rate['2-D'])}, as a tensor {format_rate(rate['3-D'])}"
        title = f"(0,2,1) as a stack of matrices moves {both}, at {largest['size'].iloc[0]}"
    return Chart("matrix-and-tensor", title, figure, frame, measured(frame, look.device))


def charts(data: RunData, look: Look) -> Iterator[Chart]:
    frame = matrix_and_tensor(data)
    if len(frame):
        yield chart(frame, look)
