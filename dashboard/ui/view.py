"""A view: a page, the sections with the questions that it answers, and their charts in an export.

Nothing here loads Plotly or Streamlit, because a recording prints its answer without them.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, Literal

from warpladder.dashboard.core.run_index import Need

if TYPE_CHECKING:
    from warpladder.dashboard.ui.template import Chart

_VIEWS: Final = "warpladder.dashboard.views"
#: What the charts of a section are of: a whole run, each of its workloads, or each workload in each timing.
Of = Literal["run", "workload", "timing"]


@dataclass(frozen=True)
class Section:
    """A part of a page, which answers one question: a folder with a query, a chart and `page.draw`.

    Attributes:
        where: its folder below `views`, such as `time.operators`.
        title: title among the sections of its page.
        needs: what it needs of a run; the menu and the pages show it for runs that have it.
        of: what its charts are of.
    """

    where: str
    title: str
    needs: Need = Need.TIMES
    of: Of = "run"

    @property
    def name(self) -> str:
        """The name of its folder, which the URL has."""
        return self.where.rpartition(".")[2]

    @property
    def question(self) -> str:
        """The question that it answers, which is the docstring of its folder."""
        return import_module(f"{_VIEWS}.{self.where}").__doc__ or ""

    def part(self, name: str) -> ModuleType:
        """Its module `page`, `chart` or `query`, imported when it is first asked for."""
        return import_module(f"{_VIEWS}.{self.where}.{name}")

    def charts(self, *of: Any) -> "Iterator[Chart]":
        """Its charts in an export, in order; none where the run has no data for them.

        Args:
            of: the run and the look of its charts, then the workload and the timing, as `of` has it.
        """
        charts: Iterator[Chart] = self.part("chart").charts(*of)
        return charts


@dataclass(frozen=True)
class View:
    """A page of the dashboard: sections, of which it shows one.

    Attributes:
        title: title in the menu and above the page.
        sections: the first one that applies to the run is shown first.
    """

    title: str
    sections: tuple[Section, ...]

    @property
    def name(self) -> str:
        """The name of its folder, and of the page in a URL."""
        return self.sections[0].where.partition(".")[0]

    def applying(self, has: Callable[[Need], bool]) -> tuple[Section, ...]:
        """The sections for a run, which has a need or not."""
        return tuple(section for section in self.sections if has(section.needs))
