"""Experiments on the cells of a run, each in a process that an altered kernel may break, and the run with what they showed."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

from warpladder.collectors.core import journal, under_tool
from warpladder.collectors.core.cells import Cell
from warpladder.collectors.core.signals import Stop
from warpladder.collectors.inside import LAUNCHES, START
from warpladder.collectors.inside.program import once
from warpladder.data import store
from warpladder.data.names import BROKE, Experiment, Source, Work, diagnostic_row

#: Steps of one cell that may break the process.
_MOST_BROKEN: Final = 6


#: Steps that run the kernels as they are -> what is told where one breaks.
_UNALTERED: Final = {
    START: "the process broke before the first experiment",
    LAUNCHES: "which kernel takes the most time is not known: its process broke while launches were timed one by one",
}


@dataclass
class Shown:
    """What the experiments on a cell showed.

    Attributes:
        rows: of table `experiments`.
        blocks: of table `experiment_blocks`.
        broken: the steps that broke the process, and how.
    """

    rows: list[dict[str, Any]] = field(default_factory=list)
    blocks: list[dict[str, Any]] = field(default_factory=list)
    broken: dict[str, str] = field(default_factory=dict)

    @property
    def problem(self) -> str:
        """Why there is no experiment; empty where there is one."""
        return "" if self.rows else "; ".join(self._told())

    def _told(self) -> Iterator[str]:
        for step, why in self.broken.items():
            yield f"{_UNALTERED.get(step) or f'without {step}: {BROKE}'} ({why})"

    def diagnostics(self, cell: Cell) -> list[dict[str, Any]]:
        """Rows of `diagnostics`."""
        return [diagnostic_row("warning", Source.EXPERIMENTS, text, cell.key) for text in self._told()]


def look_into(cell: Cell, file: Path | None, seconds: float, told: Callable[[str], object] = lambda step: None) -> Shown:
    """Make the experiments on a cell. A step that breaks the process is left out when they are made again.

    Args:
        file: the user's file that declares the workload; None for a workload of the project.
        seconds: of the rounds of each experiment.
        told: called with the name of each step as it begins.
    """
    shown = Shown()
    for _ in range(_MOST_BROKEN):
        request = {"file": str(file) if file else "", **cell.key, "seconds": seconds, "skip": list(shown.broken)}
        rows, step, why = once("experiment", request, told)
        if not why or step in shown.broken:
            break
        shown.broken[step] = why
    shown.blocks = [{**cell.key, **row} for row in rows if "multiprocessor" in row]
    of_cell = [row for row in rows if "multiprocessor" not in row]
    if of_cell:
        of_cell += [_broken(of_cell[0]["kernel"], step) for step in shown.broken if step in map(str, Work)]
    shown.rows = [{**cell.key, "place": place, **row} for place, row in enumerate(of_cell)]
    return shown


def _broken(kernel: str, work: str) -> dict[str, Any]:
    """The row of a class of work that could not be taken out."""
    without = {"experiment": str(Experiment.WITHOUT), "what": work, "value": None, "low": None, "high": None, "unit": "ns"}
    return {"kernel": kernel, **without, "lines": "", "note": BROKE}


def record(
    data_dir: Path,
    label: str,
    times: Callable[[Path], str],
    look: Callable[[store.Run], Sequence[tuple[Cell, Shown]]],
    stop: Stop,
) -> str:
    """Record times, make experiments on cells of that run, and write both as one run. Returns the run's id.

    Args:
        times: records into a data folder, and returns the run's id.
        look: makes the experiments.
    """
    with under_tool.begin(data_dir, label) as writer:
        _, runs = journal.make_folder(writer.staging)
        run = store.open_run(runs / times(runs))
        shown = [] if stop.number else look(run)
        return under_tool.finish(writer, data_dir, label, run, partial(_together, run, shown), stop.number)


def _together(run: store.Run, shown: Sequence[tuple[Cell, Shown]], into: store.RunWriter) -> None:
    broken = [row for cell, each in shown for row in each.diagnostics(cell)]
    journal.copy_run(run, into, broken)
    for _, each in shown:
        into.append("experiments", each.rows)
        into.append("experiment_blocks", each.blocks)
