"""The shares of the phases in the time of a traced step."""

from typing import Any, Final

import pandas as pd

from warpladder.dashboard.reports.phases.query import COPIES, OTHER, PARTS, REST
from warpladder.dashboard.ui.marks import hatch, stack_shares
from warpladder.dashboard.ui.numbers import format_duration, format_percent
from warpladder.dashboard.ui.template import Chart, Look, blank, samples, slug, text

_LOOKS: Final = dict(
    zip(
        PARTS,
        (("#0072B2", ""), ("#D55E00", "/"), ("#009E73", "\\"), ("#7A5AA6", "x"), ("#E69F00", "-"), ("#8D939C", ".")),
        strict=True,
    )
)


def phases(frame: pd.DataFrame, look: Look, workload: str) -> Chart:
    """Stacked shares of one case, with a bar for each variant. Each label has the time of the whole operation.

    Args:
        frame: `query.phases` of one case, not empty.
    """
    case = str(frame["case"].iloc[0])
    keys = frame.drop_duplicates("variant")
    labels = {
        row["variant"]: f"{text(look.named(workload, row['variant']))}  {text(format_duration(row['total_ns']))}"
        for row in keys.to_dict("records")
    }
    figure = blank(look.theme, 30 * len(labels) + 90)
    for part, (color, pattern) in _LOOKS.items():
        rows = frame[(frame["part"] == part) & (frame["mean_ns"] > 0)].to_dict("records")
        if not rows:
            continue
        figure.add_bar(
            x=[100 * row["fraction"] for row in rows],
            y=[labels[row["variant"]] for row in rows],
            orientation="h",
            name=part,
            marker={"color": color, "pattern": hatch(pattern)},
            hoverinfo="text",
            hovertext=[_hover(row, part) for row in rows],
        )
    figure.update_layout(
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0, "traceorder": "normal"},
        margin={"t": 36},
    )
    stack_shares(figure, labels.values(), look)
    figure.update_xaxes(title_text="share of an operation")
    outside = frame[frame["part"].isin([COPIES, REST])].groupby("variant", sort=False)["fraction"].sum()
    title = f"At {case}, copies and the host take {format_percent(100 * outside.max())} of {outside.idxmax()}"
    if len(outside) > 1:
        title += f", {format_percent(100 * outside.min())} of {outside.idxmin()}"
    note = (
        f"{look.device}; operation time under a profiler, which makes launches longer; a kernel belongs to the phase that its "
        f"name begins with, and {OTHER} begin with none; means over the traced samples of each variant's fastest "
        f"config; {samples(keys['n'])}."
    )
    return Chart(slug("phases", workload, case), title, figure, frame, note)


def _hover(row: dict[Any, Any], part: str) -> str:
    config = f" [{text(row['config'])}]" if row["config"] else ""
    return (
        f"<b>{text(row['variant'])}</b>{config}<br>{text(row['title'])}<br>{part}: "
        f"<b>{text(format_percent(100 * row['fraction']))}</b>, {text(format_duration(row['mean_ns']))}<br>n = {row['n']}"
    )
