"""Two runs compared, with the table of their differences and the forest plot."""

import html
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import pandas as pd

from warpladder.dashboard.compare import changes
from warpladder.dashboard.compare.changes import Comparison, NotComparable, Options, Side
from warpladder.dashboard.core.run_data import RunData, RunError
from warpladder.dashboard.run.plot import Figure, of
from warpladder.dashboard.run.table import html_table
from warpladder.dashboard.text.compare import HEADINGS, LISTED, alone, changed_sources, fact_lines, row
from warpladder.dashboard.ui.template import Look, Theme, look
from warpladder.dashboard.views.compare import chart

#: The most cells that are listed below the figure: the slowest and the fastest.
_MOST_ROWS = 20


@dataclass(frozen=True, eq=False)
class RunComparison:
    """Run B against run A. A kernel shows the verdict, what differs between the recordings, the figure, and the cells that changed.

    Attributes:
        a, b: titles of the runs; A is the one whose method `compare` was called.
        found: the comparison of the cells.
        look: the colours of charts of B.
    """

    a: str
    b: str
    comparison: Comparison
    look: Callable[[Theme], Look]

    @classmethod
    def of(cls, a: tuple[str, RunData], b: tuple[str, RunData], options: Options, history: changes.History) -> "RunComparison":
        """Compare two runs, each with its title. Raises RunError."""
        try:
            comparison = changes.compare(Side(a[1]), Side(b[1]), options, history)
        except NotComparable as reason:
            raise RunError(str(reason).replace("add --any-device", "give any_device=True")) from None
        return cls(a[0], b[0], comparison, partial(look, b[1]))

    @property
    def sentence(self) -> str:
        """`1 wrong or lost, 3 slower, 61 tied; the worst: …; less than 1 to 3 % could not be told`."""
        return changes.sentence(self.comparison.changes, self.comparison.lost)

    def table(self) -> pd.DataFrame:
        """Every cell of both runs, the slowest of B first.

        Returns:
            A frame with `workload`, `case`, `scope`, `cache`, `variant`, `config`, `gpus`, the medians `a_ns` and `b_ns`, `ratio` (B over A)
            with the ends of its 95 % interval, `noise`, `same_source`, `n`, `verdict` (`slower`, `tied`, `faster`, `drifted` or
            `unknown`), and `least_effect`, the smallest slowdown that would have been called, a fraction.
        """
        return chart.frame_of(self.comparison.changes)

    def lost(self) -> pd.DataFrame:
        """The cells that A has and B lost, those that fail first.

        Returns:
            A frame with `workload`, `case`, `scope`, `cache`, `variant`, `config`, `gpus`, the median `a_ns`, `status` of B, such as
            `wrong_result` or `lost`, `detail`, and `fails`: whether a gate fails on it.
        """
        return chart.lost_of(self.comparison)

    def facts(self) -> pd.DataFrame:
        """The differences between the recordings: `what`, `a`, `b`, and `warning` where one matters."""
        return chart.facts_of(self.comparison)

    def figure(self, *, theme: Theme = "light") -> Figure:
        """The ratio of each cell with its 95 % interval, and the noise as a band around 1."""
        return of(chart.forest(self.comparison, self.look(theme)))

    def __repr__(self) -> str:
        return f"<RunComparison of {self.b} with {self.a}: {self.sentence}>"

    def __str__(self) -> str:
        lines = [f"A: {self.a}", f"B: {self.b}", *self._differences(), self.sentence]
        rows = self._rows()
        return "\n".join([*lines, rows.to_string(index=False)] if len(rows) else lines)

    def _repr_html_(self) -> str:
        lines = [f"A: {self.a}", f"B: {self.b}", *self._differences()]
        rows = self._rows()
        table = html_table(list(rows.columns), rows.to_numpy().tolist()) if len(rows) else ""
        return f"<b>{html.escape(self.sentence)}</b><br>{'<br>'.join(map(html.escape, lines))}{table}"

    def _ipython_display_(self) -> None:
        from IPython.display import HTML, display

        display(HTML(self._repr_html_()), self.figure())

    def _differences(self) -> list[str]:
        """A line for each difference between the recordings, for sources that differ, and for what one run alone has."""
        return [*fact_lines(self.comparison.facts), *changed_sources(self.comparison), *alone(self.comparison)]

    def _rows(self) -> pd.DataFrame:
        """The cells that changed, in words."""
        changed = self.comparison.of(*LISTED)
        half = _MOST_ROWS // 2
        shown = changed if len(changed) <= _MOST_ROWS else (*changed[:half], *changed[-half:])
        return pd.DataFrame(map(row, shown), columns=list(HEADINGS))
