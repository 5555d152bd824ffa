"""A view: a page, the sections with the questions that it answers, and their charts in an export.

Nothing here loads Plotly or Streamlit, because a recording prints its answer without them.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from warpladder.dashboard.core.cell import Timing
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.core.run_index import Need

if TYPE_CHECKING:
    from warpladder.dashboard.ui.template import Chart, Look


def charts_of(module: str, function: str = "charts") -> "Callable[..., Iterator[Chart]]":
    """A function in the `chart.py` of a section, which is imported when it is first called.

    Args:
        module: the section's folder, as a package.
    """
    return lambda *args: getattr(import_module(f"{module}.chart"), function)(*args)


@dataclass(frozen=True)
class OfRun:
    """Charts of a whole run.

    Attributes:
        topic: topic of the charts, which `export --topic` selects.
        draw: yields the charts in order; yields nothing where the run has no data for them.
    """

    topic: str
    draw: "Callable[[RunData, Look], Iterator[Chart]]"


@dataclass(frozen=True)
class OfWorkload:
    """Charts of one workload of a run. The attributes are documented at `OfRun`."""

    topic: str
    draw: "Callable[[RunData, Look, str], Iterator[Chart]]"


@dataclass(frozen=True)
class OfTiming:
    """Charts of one workload in one timing. Further attributes are documented at `OfRun`.

    Attributes:
        place: place of the charts among the charts of the workload and timing, which come from several views.
    """

    topic: str
    draw: "Callable[[RunData, Look, str, Timing], Iterator[Chart]]"
    place: int


Charts = OfRun | OfWorkload | OfTiming


@dataclass(frozen=True)
class Section:
    """A part of a page, which answers one question: a folder with a query, a chart and `page.draw`.

    Attributes:
        module: its folder, as a package.
        title: title among the sections of its page.
        question: question that it answers.
        charts: its charts in an export.
        needs: what it needs of a run; the menu and the pages show it for runs that have it.
    """

    module: str
    title: str
    question: str
    charts: tuple[Charts, ...] = ()
    needs: Need = Need.TIMES

    @property
    def name(self) -> str:
        """The name of its folder, which the URL has."""
        return self.module.rpartition(".")[2]

    @property
    def where(self) -> str:
        """Its folder below `views`, such as `time.operators`."""
        return self.module.partition(".views.")[2]


@dataclass(frozen=True)
class View:
    """A page of the dashboard: sections, of which it shows one.

    Attributes:
        name: name of its folder, and of the page in a URL.
        title: title in the menu and above the page.
        sections: the first one that applies to the run is shown first.
    """

    name: str
    title: str
    sections: tuple[Section, ...]

    @property
    def charts(self) -> tuple[Charts, ...]:
        """The charts of its sections in an export."""
        return tuple(charts for section in self.sections for charts in section.charts)

    def applying(self, has: Callable[[Need], bool]) -> tuple[Section, ...]:
        """The sections for a run, which has a need or not."""
        return tuple(section for section in self.sections if has(section.needs))
