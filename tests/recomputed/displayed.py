"""The figures that the pages show: the rows of charts and tables, and the texts above them. Nothing is computed here."""

import random
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple

import pandas as pd

from tests.recomputed.definitions import RECORDED
from warpladder.dashboard.core import cells, run_data
from warpladder.dashboard.core.cell import Timing
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.ui.template import look
from warpladder.dashboard.ui.view import Section
from warpladder.data import store


class Shown(NamedTuple):
    """Some rows that a page shows.

    Attributes:
        name: of the chart or table.
        title: the sentence above it; may be empty.
        where: workload, scope and cache, where the page shows one of each.
    """

    page: str
    run: str
    name: str
    title: str
    where: tuple[str, str, str]
    frame: pd.DataFrame


Source = Callable[[RunData, random.Random], Iterator[Shown]]


@cache
def loaded(run_id: str) -> RunData:
    return run_data.load(store.open_run(RECORDED / run_id))


def charts(section: Section, run_id: str, rng: random.Random, data: RunData | None = None) -> Iterator[Shown]:
    """The charts of a section for a run, workload and timing after another, in random order; each is drawn when it is asked for.

    Args:
        data: a part of the run; None for all of it.
    """
    data = data or loaded(run_id)
    style = look(data, "light")
    drawn: list[tuple[str, Timing, Callable[[], Iterator[Any]]]] = []
    if section.of == "run":
        drawn.append(("", Timing("", ""), lambda: section.charts(data, style)))
    for workload in data.workloads if section.of != "run" else ():
        if section.of == "workload":
            drawn.append((workload, Timing("", ""), lambda workload=workload: section.charts(data, style, workload)))
            continue
        for timing in cells.timings(data, workload):
            if not timing.scope.startswith("phase:"):
                make = lambda workload=workload, timing=timing: section.charts(data, style, workload, timing)  # noqa: E731
                drawn.append((workload, timing, make))
    rng.shuffle(drawn)
    for workload, timing, make in drawn:
        for chart in make():
            yield Shown(section.name, run_id, chart.name, chart.title, (workload, timing.scope, timing.cache), chart.data)
