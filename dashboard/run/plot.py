"""Charts of a run as figures that a notebook shows, with title and note."""

from typing import Any, Final

import plotly.graph_objects as go
import plotly.io as pio

from warpladder.dashboard.core import cells
from warpladder.dashboard.core.cell import Timing
from warpladder.dashboard.core.cells import best_of_charted
from warpladder.dashboard.core.run_data import RunData, RunError, chosen
from warpladder.dashboard.ui import headed
from warpladder.dashboard.ui.template import Chart, Theme, look
from warpladder.dashboard.views import sizes
from warpladder.dashboard.views.ladder import chart as ladder_chart
from warpladder.dashboard.views.ladder import query as ladder_query
from warpladder.dashboard.views.ladder.roofline import chart as roofline
from warpladder.dashboard.views.sizes.chart import Metric

#: Titles and notes are broken for this width, which the narrow cells of notebooks have. The figure itself is as wide as its cell.
_CELL_PX: Final = 720
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

    def _repr_mimebundle_(self, *args: Any, **options: Any) -> dict[str, Any]:
        bundle: dict[str, Any] = super()._repr_mimebundle_(*args, **options) or {}
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
    drawn: dict[str, Any] = headed.figure(chart, _CELL_PX)
    del drawn["layout"]["width"]
    return Figure(drawn)


class Plot:
    """The charts of a run, as on the pages and in `warpladder export`. A chart that cannot be drawn raises RunError.

    Methods that take `workload` need it only where the run has several. Those that take `scope` and `cache` show the first timing of the
    workload where none is given: device time with a cold L2 where it was measured.
    """

    def __init__(self, data: RunData, name: str) -> None:
        self._data, self._name = data, name

    def ladder(
        self,
        workload: str | None = None,
        case: str | None = None,
        *,
        scope: str | None = None,
        cache: str | None = None,
        theme: Theme = "light",
    ) -> Figure:
        """The variants of one case: time with interval, gain of each rung, and floor.

        Args:
            case: None for the last of the largest cases that were timed.
            theme: `light` or `dark`.
        """
        workload, timing = self._timing(workload, scope, cache)
        frame = ladder_query.ladder(self._data, workload, self._case(workload, case, timing), timing)
        if not (frame["n"] > 0).any():
            raise RunError(
                f"{workload} {case}: no variant was timed in {timing.scope} {timing.cache}; run.table() has the reasons"
            )
        return of(ladder_chart.ladder(frame, look(self._data, theme)))

    def sizes(
        self,
        workload: str | None = None,
        metric: Metric = "median_ns",
        *,
        series: str | None = None,
        scope: str | None = None,
        cache: str | None = None,
        theme: Theme = "light",
    ) -> Figure:
        """Every variant over size, with intervals.

        Args:
            metric: `median_ns`, `speedup`, `percent_of_floor`, `gb_per_s` or `gflop_per_s`.
            series: values of the axes that are no size, such as `perm=210`; None for the last one.
            theme: `light` or `dark`.
        """
        workload, timing = self._timing(workload, scope, cache)
        every = cells.series(self._data, workload)
        series = every[-1] if series is None else chosen(series, every, workload, "series")
        chosen(metric, sizes.chart.METRICS, "this figure", "metric")
        frame = sizes.query.sizes(self._data, workload, timing, series)
        sized = frame.loc[frame[metric].notna(), "size"].unique()
        if len(sized) < 2:
            has = f"{metric} at {sized[0]} alone" if len(sized) else f"no {metric}"
            raise RunError(
                f"{workload} in {timing.scope} {timing.cache} has {has}; record more sizes, or draw run.plot.ladder()"
            )
        return of(
            sizes.chart.over_size(frame, sizes.query.regions(self._data, workload, series), look(self._data, theme), metric)
        )

    def roofline(self, workload: str | None = None, *, theme: Theme = "light") -> Figure:
        """The variants of the largest case below the measured roofs of memory and arithmetic."""
        workload = self._workload(workload)
        drawn = next(roofline.charts(self._data, look(self._data, theme), workload), None)
        if drawn is None:
            raise RunError(f"{workload}: no variant has both a time and a roof; its cases need flops and min_bytes")
        return of(drawn)

    def _workload(self, workload: str | None) -> str:
        return chosen(workload, self._data.workloads, self._name, "workload")

    def _timing(self, workload: str | None, scope: str | None, cache: str | None) -> tuple[str, Timing]:
        """The workload, and the first of its timings that fits."""
        workload = self._workload(workload)
        timings = cells.timings(self._data, workload)
        fits = [each for each in timings if scope in (None, each.scope) and cache in (None, each.cache)]
        if not timings:
            raise RunError(f"{workload}: no variant was timed; run.table() has the reasons")
        if not fits:
            names = ", ".join(f"{each.scope} {each.cache}" for each in timings)
            raise RunError(f"scope={scope!r}, cache={cache!r}: {workload} was not timed so; timed are {names}")
        return workload, fits[0]

    def _case(self, workload: str, choice: str | None, timing: Timing) -> str:
        names = list(self._data.cases.loc[self._data.cases["workload"] == workload, "case"])
        if choice is not None:
            return chosen(choice, names, workload, "case")
        timed = set(best_of_charted(self._data, workload, timing)["case"])
        charted = [case for case in cells.charted_cases(self._data, workload)["case"] if case in timed]
        return str(charted[-1] if charted else names[-1])
