"""The shares of allocation, copies and release in a whole operation, as the convolution report counts them."""

from collections.abc import Iterator
from typing import Final

import pandas as pd

from warpladder.dashboard.core.cell import Estimate
from warpladder.dashboard.core.cells import best_config, cells
from warpladder.dashboard.core.numbers import format_duration, format_ends, format_percent
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.ui.template import Chart, Look, blank, hatch, samples, slug, text
from warpladder.data.names import PHASE, Phase

PARTS: Final = {phase: phase.removeprefix(PHASE) for phase in (Phase.ALLOCATE, Phase.H2D, Phase.COMPUTE, Phase.D2H, Phase.FREE)}


def overheads(data: RunData, workload: str) -> pd.DataFrame:
    """The times and shares of allocation, copies, computation and release in an end-to-end operation.

    Returns:
        One row for each (case, variant, part), with the config that computes fastest. Empty where the run has no such phases.
        The columns are `case`, `size_rank`, `params`, `variant`, `title`, `config`, `median_ns`, `low_ns`, `high_ns`, `n`, and

        - `part`: `allocate`, `h2d`, `compute`, `d2h` or `free`;
        - `fraction`: the median over the sum of the medians of all parts.
    """
    every = cells(data)
    parts = every[(every["workload"] == workload) & every["scope"].isin(PARTS) & every["size_rank"].notna() & (every["n"] > 0)]
    parts = parts[~parts["role"].isin(["ceiling", "specimen"])]
    chosen = best_config(parts[parts["scope"] == Phase.COMPUTE])[["case", "variant", "config", "gpus", "cache"]]
    parts = parts.merge(chosen)
    parts["part"] = parts["scope"].map(PARTS)
    parts["fraction"] = parts["median_ns"] / parts.groupby(["case", "variant"])["median_ns"].transform("sum")
    columns = [
        "case",
        "size_rank",
        "params",
        "variant",
        "title",
        "config",
        "part",
        "median_ns",
        "low_ns",
        "high_ns",
        "n",
        "fraction",
    ]
    return parts.sort_values(["size_rank", "case", "variant"], kind="stable")[columns].reset_index(drop=True)


_PARTS: Final = {"allocate": "|", "h2d": "\\", "compute": "", "d2h": "/", "free": "x"}


def chart(frame: pd.DataFrame, look: Look, workload: str) -> Chart:
    """Stacked shares of the first and the fastest variant at the last case of each size.

    Args:
        frame: `query.overheads`, not empty.
    """
    frame = frame[frame["case"].isin(frame.drop_duplicates("size_rank", keep="last")["case"])]
    operation = frame[frame["part"] == "compute"]
    chosen = pd.concat([operation.drop_duplicates("case"), operation.sort_values("median_ns").drop_duplicates("case")])
    keys = chosen[["case", "variant", "size_rank"]].drop_duplicates().sort_values(["size_rank", "variant"], kind="stable")
    labels = [text(f"{row['case']}  {look.variant_name(workload, row['variant'])}") for row in keys.to_dict("records")]
    figure = blank(look.theme, 30 * len(labels) + 90)
    colors = dict(zip(_PARTS, ("#7A5AA6", "#56B4E9", "#009E73", "#E69F00", "#8A6D3B"), strict=True))
    for part, pattern in _PARTS.items():
        rows = keys.merge(frame[frame["part"] == part], on=["case", "variant"], how="left").to_dict("records")
        if all(pd.isna(row["fraction"]) for row in rows):
            continue
        figure.add_bar(
            x=[100 * row["fraction"] for row in rows],
            y=labels,
            orientation="h",
            name=part,
            hoverinfo="text",
            marker={"color": colors[part], "pattern": hatch(pattern)},
            hovertext=[
                f"<b>{text(row['variant'])}</b>, {text(row['case'])}<br>{part}: "
                f"<b>{text(format_percent(100 * row['fraction']))}</b>, {text(format_duration(row['median_ns']))} "
                f"({text(format_ends(Estimate.of(row, 'median_ns'), format_duration))})<br>n = {row['n']}"
                if pd.notna(row["fraction"])
                else ""
                for row in rows
            ],
        )
    figure.update_layout(barmode="stack", legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0}, margin={"t": 36})
    figure.update_xaxes(range=[0, 100], ticksuffix=" %", title_text="share of the run")
    figure.update_yaxes(autorange="reversed", showgrid=False, ticks="", tickfont={"color": look.tones.text})
    largest = operation[operation["size_rank"] == operation["size_rank"].max()].nsmallest(1, "median_ns").iloc[0]
    title = (
        f"At {largest['case']}, {format_percent(100 * (1 - largest['fraction']))} of a run of "
        f"{look.variant_name(workload, largest['variant'])} is allocation, copies and release"
    )
    note = (
        f"{look.device}; parts of one end-to-end operation; copies and computation are timed by events on the device, "
        f"allocation and release by the host's clock; shares of the sum of the medians; {samples(frame['n'])}."
    )
    return Chart(slug("overheads", workload), title, figure, frame, note)


def charts(data: RunData, look: Look, workload: str) -> Iterator[Chart]:
    """The charts in an export."""
    frame = overheads(data, workload)
    if len(frame):
        yield chart(frame, look, workload)
