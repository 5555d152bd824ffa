"""Charts as figures that a notebook shows, with title and note."""

from typing import Any, Final

import plotly.graph_objects as go
import plotly.io as pio

from warpladder.dashboard.ui.paper import Paper, figure
from warpladder.dashboard.ui.template import Chart

#: Titles and notes are broken for this width, which the narrow cells of notebooks have. The figure itself is as wide as its cell.
_CELL: Final = Paper(width_px=720)
_PLOTLY: Final = "application/vnd.plotly.v1+json"


class Figure(go.Figure):  # type: ignore[misc]
    """A Plotly figure that a kernel shows without the package nbformat too, which Plotly's own asks for, and that stays in the HTML
    that nbconvert makes of the notebook. The first figure of a process brings plotly.js for all.
    """

    _is_library_there = False

    def _ipython_display_(self) -> None:
        bundle = self._repr_mimebundle_()
        if not bundle:
            super()._ipython_display_()  # a renderer of the user's own, such as `browser`
            return
        from IPython.display import display

        display(bundle, raw=True)

    def _repr_mimebundle_(self, *args: Any, **named: Any) -> dict[str, Any]:
        bundle: dict[str, Any] = super()._repr_mimebundle_(*args, **named) or {}
        if _PLOTLY in bundle and "text/html" not in bundle:
            bundle["text/html"] = pio.to_html(
                self,
                full_html=False,
                include_mathjax=False,
                include_plotlyjs=not Figure._is_library_there,
                default_height="auto",
            )
            Figure._is_library_there = True
        return bundle


def of(chart: Chart) -> Figure:
    """A chart with its title above it, and below the title how it was measured."""
    drawn: dict[str, Any] = figure(chart, _CELL)
    del drawn["layout"]["width"]
    return Figure(drawn)
