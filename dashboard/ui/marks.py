"""Parts that several figures draw alike: error bars, hatched bars, legends and axes of names."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

import plotly.graph_objects as go

from warpladder.dashboard.core.estimate import Estimate
from warpladder.dashboard.ui.template import Look

#: A legend right of the plot.
BESIDE: Final = {"y": 1, "yanchor": "top", "x": 1.01, "xanchor": "left"}
#: A legend on one line above the plot.
ABOVE: Final = {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0}


def error_bars(estimates: Iterable[Estimate], **options: Any) -> dict[str, Any]:
    """Error bars from figures to the ends of their intervals, for `error_x` or `error_y`."""
    ends = [(each.high - each.value, each.value - each.low) for each in estimates]
    up, down = [high for high, _ in ends], [low for _, low in ends]
    return {"type": "data", "symmetric": False, "array": up, "arrayminus": down, "thickness": 1, "width": 3, **options}


def hatch(shape: str | list[str], solidity: float = 0.2) -> dict[str, Any]:
    """The pattern of a bar, or one for each bar."""
    return {"shape": shape, "fillmode": "overlay", "size": 5, "solidity": solidity}


def name_rows(figure: go.Figure, names: Sequence[str], look: Look, **options: Any) -> None:
    """Write names beside horizontal bars, which are at 0, 1, 2 and so on from the top.

    Args:
        names: escaped by `template.text`.
        options: further ones of the axis, such as its `range`.
    """
    font = {"color": look.tones.text, "size": 12}
    figure.update_yaxes(tickvals=list(range(len(names))), ticktext=list(names), showgrid=False, ticks="", tickfont=font)
    figure.update_yaxes(**options)


def stack_shares(figure: go.Figure, rows: Iterable[str], look: Look) -> None:
    """Make horizontal bars of shares in percent one stack for each row, with the rows by name from the top."""
    figure.update_layout(barmode="stack")
    figure.update_xaxes(range=[0, 100], ticksuffix=" %")
    order = {"categoryorder": "array", "categoryarray": list(rows)}
    figure.update_yaxes(autorange="reversed", showgrid=False, ticks="", tickfont={"color": look.tones.text}, **order)
