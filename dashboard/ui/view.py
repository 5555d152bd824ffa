"""A view: one question, the page that answers it, and its charts in an export.

Nothing here loads Plotly or Streamlit, because a recording prints its answer without them.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from warpladder.dashboard.core.cell import Timing
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.core.run_index import Need

if TYPE_CHECKING:
    from warpladder.dashboard.ui.template import Chart, Look


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
class View:
    """A page of the dashboard.

    Attributes:
        name: name of its folder, and of its page in a URL.
        title: title in the menu and above the page.
        question: question that the page answers.
        charts: its charts in an export.
        needs: what the page needs of a run; the run is chosen accordingly.
        of_one_run: the page shows one run, which its URL names; else the newest runs, and the URL names one only where it
            was chosen.
    """

    name: str
    title: str
    question: str
    charts: tuple[Charts, ...] = ()
    needs: Need = Need.TIMES
    of_one_run: bool = True


def page_of(name: str) -> str:
    """The script of a view's page, relative to `app.py`, for links between pages."""
    return f"views/{name}/page.py"
