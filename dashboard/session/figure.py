"""Charts as figures that a notebook shows, with title and note."""

import importlib.util
from typing import Any, Final

import plotly.graph_objects as go

from warpladder.dashboard.ui.paper import Paper, figure
from warpladder.dashboard.ui.template import Chart

#: Titles and notes are broken for this width, which the narrow cells of notebooks have. The figure itself is as wide as its cell.
_CELL: Final = Paper(width_px=720)


class Figure(go.Figure):  # type: ignore[misc]
    """A Plotly figure that a kernel shows without the package nbformat too, which Plotly's own asks for."""

    def _ipython_display_(self) -> None:
        bundle = self._repr_mimebundle_()
        if bundle and importlib.util.find_spec("nbformat") is None:
            from IPython.display import display

            display(bundle, raw=True)
        else:
            super()._ipython_display_()


def of(chart: Chart) -> Figure:
    """A chart with its title above it, and below the title how it was measured."""
    drawn: dict[str, Any] = figure(chart, _CELL)
    del drawn["layout"]["width"]
    return Figure(drawn)
