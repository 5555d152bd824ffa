"""The occupancy of a kernel over its registers, its shared memory and its block size."""

from collections.abc import Iterator

import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from warpladder.dashboard.core.numbers import format_percent
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.ui.template import Chart, Look, blank, slug
from warpladder.dashboard.views.why.occupancy import query
from warpladder.dashboard.views.why.occupancy.query import RULES, Resident, WhatIf, in_words, limit_clause

_HEADS = {
    "registers": "registers of a thread",
    "shared_bytes": "shared memory of a block, KiB",
    "threads": "threads of a block",
}
_KIB = 1024


def charts(data: RunData, look: Look) -> Iterator[Chart]:
    """The curves of each launch of the last case of each workload, as it is; a kernel that several configs launch is drawn once."""
    capability, sms = str(data.info["compute_capability"]), query.sms_of_run(data)
    for workload in data.code.workloads:
        case = data.code.cases(workload)[-1]
        for name, (cell, kernel) in query.launch_names(data, workload, case).items():
            if result := query.what_if(kernel, capability, sms):
                yield curves(result, look, workload, case, cell.variant, name)


def curves(result: WhatIf, look: Look, workload: str, case: str, variant: str, name: str) -> Chart:
    """The occupancy over each of the three numbers, the other two as they are.

    Args:
        variant: of the kernel, for its colour.
        name: of the launch.
    """
    figure = make_subplots(rows=1, cols=len(_HEADS), shared_yaxes=True, horizontal_spacing=0.04)
    figure.update_layout(blank(look.theme, 320).layout)
    color = look.style(workload, variant).color
    frames = []
    for column, (number, head) in enumerate(_HEADS.items(), start=1):
        curve = result.curves[number]
        unit = _KIB if number == "shared_bytes" else 1
        figure.add_scatter(
            x=curve.index / unit,
            y=curve,
            mode="lines",
            line={"color": color, "width": 2, "shape": "vh"},
            showlegend=False,
            hoverinfo="text",
            hovertext=[
                f"{_number(number, int(place))}: {format_percent(percent)}"
                for place, percent in zip(curve.index, curve, strict=True)
            ],
            row=1,
            col=column,
        )
        _mark(figure, result.own, number, unit, look, column)
        figure.update_xaxes(title_text=head, rangemode="tozero", row=1, col=column)
        frames.append(pd.DataFrame({"over": number, "value": curve.index, "occupancy_percent": curve.to_numpy()}))
    figure.update_yaxes(range=[0, 106], tickvals=[0, 25, 50, 75, 100], zeroline=False)
    figure.update_yaxes(title_text="resident warps, % of the most", row=1, col=1)
    figure.update_layout(margin={"t": 16})
    words = in_words(result.own)
    waves = f"{words[:1].upper()}{words[1:]}. " if words else ""
    note = look.note(f"{case}; compute capability {result.limits.capability}. {waves}{RULES}")
    return Chart(
        slug("what-if", workload, case, name),
        f"{name}: {limit_clause(result.own)}",
        figure,
        pd.concat(frames, ignore_index=True),
        note,
    )


def _mark(figure: go.Figure, state: Resident, number: str, unit: int, look: Look, column: int) -> None:
    """The kernel as it is."""
    value = getattr(state.choice, number)
    figure.add_scatter(
        x=[value / unit],
        y=[state.occupancy.percent],
        mode="markers",
        showlegend=False,
        cliponaxis=False,
        hoverinfo="text",
        hovertext=[f"as it is: {_number(number, value)}, {format_percent(state.occupancy.percent)}"],
        marker={"size": 12, "color": look.tones.text},
        row=1,
        col=column,
    )


def _number(number: str, value: int) -> str:
    if number == "shared_bytes":
        return f"{value / _KIB:.4g} KiB"
    return f"{value} {number}"
