"""The shares of allocation, copies and release in a whole operation, as the convolution report counts them."""

from collections.abc import Iterator
from typing import Final

import pandas as pd

from warpladder.dashboard.core.cell import Estimate
from warpladder.dashboard.core.cells import best_config, cells
from warpladder.dashboard.core.numbers import format_duration, format_ends, format_percent
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.ui.bars import bars_of_shares
from warpladder.dashboard.ui.template import Chart, Look, samples, slug, text
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


_LOOKS: Final = {
    "allocate": ("#7A5AA6", "|"),
    "h2d": ("#56B4E9", "\\"),
    "compute": ("#009E73", ""),
    "d2h": ("#E69F00", "/"),
    "free": ("#8A6D3B", "x"),
}


def chart(frame: pd.DataFrame, look: Look, workload: str) -> Chart:
    """Stacked shares of the first and the fastest variant at the last case of each size.

    Args:
        frame: `query.overheads`, not empty.
    """
    frame = frame[frame["case"].isin(frame.drop_duplicates("size_rank", keep="last")["case"])]
    operation = frame[frame["part"] == "compute"]
    chosen = pd.concat([operation.drop_duplicates("case"), operation.sort_values("median_ns").drop_duplicates("case")])
    keys = chosen[["case", "variant", "size_rank"]].drop_duplicates().sort_values(["size_rank", "variant"], kind="stable")
    rows = keys.drop(columns="size_rank").merge(frame, on=["case", "variant"]).to_dict("records")
    bars = [
        {
            "label": text(f"{row['case']}  {look.variant_name(workload, row['variant'])}"),
            "part": row["part"],
            "share": row["fraction"],
            "hover": f"<b>{text(row['variant'])}</b>, {text(row['case'])}<br>{row['part']}: "
            f"<b>{text(format_percent(100 * row['fraction']))}</b>, {text(format_duration(row['median_ns']))} "
            f"({text(format_ends(Estimate.of(row, 'median_ns'), format_duration))})<br>n = {row['n']}",
        }
        for row in rows
    ]
    figure = bars_of_shares(look, pd.DataFrame(bars), _LOOKS, 30, "share of the run")
    figure.update_layout(legend_traceorder="reversed")
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
    frame = overheads(data, workload)
    if len(frame):
        yield chart(frame, look, workload)
