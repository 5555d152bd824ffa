"""A view: one question, the page that answers it, and the charts of it that an export draws.

Nothing here loads Plotly or Streamlit: the answer that a recording prints at its end needs neither.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from warpladder.dashboard.core.axes import Timing
from warpladder.dashboard.core.run_data import RunData

if TYPE_CHECKING:
    from warpladder.dashboard.ui.template import Chart, Look


@dataclass(frozen=True)
class OfRun:
    """Charts of a whole run.

    Attributes:
        topic: what they are about; `export --topic` chooses by it.
        draw: the charts in their order; none where the run has nothing of them.
    """

    topic: str
    draw: "Callable[[RunData, Look], Iterator[Chart]]"


@dataclass(frozen=True)
class OfWorkload:
    """Charts of one workload of a run; the attributes are those of `OfRun`."""

    topic: str
    draw: "Callable[[RunData, Look, str], Iterator[Chart]]"


@dataclass(frozen=True)
class OfTiming:
    """Charts of one workload in one way of timing; the attributes are those of `OfRun`.

    Attributes:
        place: among the charts of the same workload and timing, which come from several views.
    """

    topic: str
    draw: "Callable[[RunData, Look, str, Timing], Iterator[Chart]]"
    place: int


Charts = OfRun | OfWorkload | OfTiming


@dataclass(frozen=True)
class View:
    """A page of the dashboard.

    Attributes:
        name: of its folder, and of its page in a URL.
        title: in the menu and above the page.
        question: that the page answers.
        charts: what an export draws of it.
    """

    name: str
    title: str
    question: str
    charts: tuple[Charts, ...] = ()


def page_of(name: str) -> str:
    """The script of a view's page, by the name of the view, relative to `app.py`. Pages link to each other by it."""
    return f"views/{name}/page.py"
