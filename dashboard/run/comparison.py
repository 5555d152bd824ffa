"""Two runs compared, with the table of their differences and the forest plot."""

import html
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import pandas as pd

from warpladder.dashboard.compare import changes
from warpladder.dashboard.compare.changes import Change, Comparison, NotComparable, Options, Side
from warpladder.dashboard.core.cell import name_of
from warpladder.dashboard.core.numbers import format_duration, format_ends
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.run.plot import Figure, of
from warpladder.dashboard.run.table import RunError, html_table
from warpladder.dashboard.text.compare import alone, noise_text
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
        lines = [
            f"{'warning: ' if fact.warning else ''}{fact.what}: {fact.a or '–'} → {fact.b or '–'}"
            + (f" ({fact.warning})" if fact.warning else "")
            for fact in self.comparison.facts
        ]
        if self.comparison.changed_sources:
            lines.append(f"sources that differ: {', '.join(' '.join(each) for each in self.comparison.changed_sources)}")
        return [*lines, *alone(self.comparison)]

    def _rows(self) -> pd.DataFrame:
        """The cells that changed, in words."""
        changed = self.comparison.of("slower", "faster", "drifted")
        half = _MOST_ROWS // 2
        return pd.DataFrame(map(_row, changed if len(changed) <= _MOST_ROWS else (*changed[:half], *changed[-half:])))


def _row(change: Change) -> dict[str, str]:
    before = name_of(*change.of_a)
    return {
        "verdict": change.verdict,
        "workload": change.workload,
        "case": change.case,
        "timing": f"{change.timing.scope} {change.timing.cache}",
        "variant": change.name if before == name_of(change.variant, change.config) else f"{before} → {change.name}",
        "A": format_duration(change.a_ns.value),
        "B": format_duration(change.b_ns.value),
        "B over A": f"{change.ratio.value:.3f} ({format_ends(change.ratio, lambda value: f'{value:.3f}')})",
        "noise": noise_text(change),
    }
