"""The occupancy of a kernel over its registers, its shared memory and its block size."""

from collections.abc import Iterator

import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from warpladder.dashboard.core.numbers import format_percent
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.ui.template import ABOVE, Chart, Look, blank, slug, text
from warpladder.dashboard.views.why.occupancy import query
from warpladder.dashboard.views.why.occupancy.query import RULES, Resident, WhatIf, answer, differs, in_words

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
            own = query.own_choice(kernel)
            result = own and query.what_if(kernel, capability, sms, own.registers, own.shared_bytes, own.threads)
            if result:
                yield curves(result, look, workload, case, cell.variant, name)


def curves(result: WhatIf, look: Look, workload: str, case: str, variant: str, name: str) -> Chart:
    """The occupancy over each of the three numbers, the other two as chosen.

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
        _mark(figure, result.own, number, unit, look, "as it is", is_open=differs(result), column=column)
        if differs(result):
            _mark(figure, result.changed, number, unit, look, "other choice", is_open=False, column=column)
        figure.update_xaxes(title_text=head, rangemode="tozero", row=1, col=column)
        frames.append(pd.DataFrame({"over": number, "value": curve.index, "occupancy_percent": curve.to_numpy()}))
    figure.update_yaxes(range=[0, 106], tickvals=[0, 25, 50, 75, 100], zeroline=False)
    figure.update_yaxes(title_text="resident warps, % of the most", row=1, col=1)
    figure.update_layout(margin={"t": 36}, legend={**ABOVE, "y": 1.03})
    words = in_words(result.changed)
    waves = f"{words[:1].upper()}{words[1:]}. " if words else ""
    note = look.note(f"{case}; compute capability {result.limits.capability}. {waves}{RULES}")
    return Chart(
        slug("what-if", workload, case, name), answer(result, name), figure, pd.concat(frames, ignore_index=True), note
    )


def _mark(
    figure: go.Figure, state: Resident, number: str, unit: int, look: Look, name: str, *, is_open: bool, column: int
) -> None:
    value = getattr(state.choice, number)
    figure.add_scatter(
        x=[value / unit],
        y=[state.occupancy.percent],
        mode="markers",
        name=name,
        legendgroup=name,
        showlegend=column == 1,
        cliponaxis=False,
        hoverinfo="text",
        hovertext=[f"{text(name)}: {_number(number, value)}, {format_percent(state.occupancy.percent)}"],
        marker={
            "size": 12,
            "symbol": "circle-open" if is_open else "circle",
            "color": look.tones.text,
            "line": {"width": 2, "color": look.tones.text},
        },
        row=1,
        col=column,
    )


def _number(number: str, value: int) -> str:
    if number == "shared_bytes":
        return f"{value / _KIB:.4g} KiB"
    return f"{value} {number}"
