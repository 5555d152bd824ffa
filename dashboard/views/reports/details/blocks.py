"""How much the block size matters, as the convolution report shows it."""

import re
from collections.abc import Iterator
from typing import Final

import pandas as pd

from warpladder.dashboard.core.cell import Cell, Entry, Timing, records
from warpladder.dashboard.core.cells import cells, in_timing, timings
from warpladder.dashboard.core.intervals import paired_ratio
from warpladder.dashboard.core.numbers import format_duration, format_estimate, format_percent, format_ratio
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.ui.bars import panels
from warpladder.dashboard.ui.template import Chart, Look, error_bars, hover, measured, slug, text

_BLOCK_CONFIG: Final = re.compile(r"block=(\d+)")


def block_sensitivity(data: RunData, workload: str) -> pd.DataFrame:
    """The rungs that were measured with several configs `block=N`, in the first timing.

    Returns:
        Rows of `cells` with `block` (N of the config), and `relative`, `relative_low` and `relative_high`: time over that of
        the fastest block, paired by round.
    """
    known_timings = timings(data, workload)
    timing = known_timings[0] if known_timings else Timing("", "")
    every = in_timing(cells(data), workload, timing)
    timed = (every["n"] > 0) & every["size_rank"].notna()
    rows = every[timed & every["config"].str.fullmatch(_BLOCK_CONFIG.pattern)]
    rows = rows[rows.groupby(["variant", "case"])["config"].transform("nunique") > 1]
    rows = rows.assign(block=rows["config"].str.extract(_BLOCK_CONFIG.pattern, expand=False).astype(int))
    fastest = (
        rows.loc[rows.groupby(["variant", "case"])["median_ns"].idxmin()].set_index(["variant", "case"])["config"].to_dict()
    )
    ratios = []
    for row in rows.to_dict("records"):
        rounds = data.rounds(workload, row["case"], timing.scope, timing.cache)
        best = Entry(row["variant"], fastest[row["variant"], row["case"]], int(row["gpus"]), 0)
        ratios.append(paired_ratio(rounds[best._replace(config=row["config"])], rounds[best])[:3])
    relative = pd.DataFrame(ratios, columns=["relative", "relative_low", "relative_high"], index=rows.index, dtype=float)
    return rows.join(relative).sort_values(["rung", "size_rank", "block"], kind="stable").reset_index(drop=True)


def chart(frame: pd.DataFrame, look: Look) -> Chart:
    """Time over block size, with a panel for each variant and a line for each case.

    Args:
        frame: `query.block_sensitivity`, not empty.
    """
    variants, workload = list(dict.fromkeys(frame["variant"])), str(frame["workload"].iloc[0])
    cases = list(dict.fromkeys(frame.sort_values("size_rank")["case"]))
    names = [text(look.variant_name(workload, name)) for name in variants]
    figure = panels(look, names, 340, shared_yaxes=True, horizontal_spacing=0.03)
    symbols = ("circle", "square", "diamond", "triangle-up", "x", "star")
    for column, variant in enumerate(variants, start=1):
        color = look.style(workload, variant).color
        for number, case in enumerate(cases):
            line = frame[(frame["variant"] == variant) & (frame["case"] == case)].sort_values("block")
            points = records(line)
            figure.add_scatter(
                x=[str(point.block) for point in points],
                y=[100 * (point.relative.value - 1) for point in points],
                mode="lines+markers",
                row=1,
                col=column,
                name=text(case),
                legendgroup=case,
                showlegend=column == 1,
                opacity=0.35 + 0.65 * (number + 1) / len(cases),
                line={"color": color, "width": 1.8},
                marker={"symbol": symbols[number % len(symbols)], "size": 8, "color": color},
                error_y=error_bars(point.relative.times(100) for point in points),
                hoverinfo="text",
                hovertext=[_hover(point) for point in points],
            )
        figure.update_xaxes(title_text="block side, threads", type="category", row=1, col=column)
    figure.update_yaxes(title_text="slower than the fastest block", row=1, col=1)
    figure.update_yaxes(ticksuffix=" %", rangemode="tozero")
    figure.update_layout(margin={"t": 34}, legend={"x": 1.01, "y": 1})
    (worst,) = records(frame.nlargest(1, "relative"))
    where = f"{look.variant_name(workload, worst.variant)} with {worst.config} at {worst.case}"
    title = f"The wrong block costs up to {format_percent(100 * (worst.relative.value - 1))}: {where}"
    note = measured(frame, look.device, "Ratios are paired by round.")
    return Chart(slug("block-sensitivity", workload), title, figure, frame, note)


def _hover(point: Cell) -> str:
    median = format_estimate(point.median_ns, format_duration)
    return hover(point, ("median", median), ("over the fastest block", format_estimate(point.relative, format_ratio)))


def charts(data: RunData, look: Look, workload: str) -> Iterator[Chart]:
    frame = block_sensitivity(data, workload)
    if len(frame):
        yield chart(frame, look)
