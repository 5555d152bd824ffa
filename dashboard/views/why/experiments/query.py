"""What experiments inside a kernel showed: times without each class of work, marks, and blocks of a multiprocessor over time."""

from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd

from warpladder.dashboard.core import counted
from warpladder.dashboard.core.inside import Inside
from warpladder.dashboard.core.run_data import RunData
from warpladder.data.names import Experiment
from warpladder.data.naming import CellName

#: What the bar without an alteration is called.
ORIGINAL: Final = "as it is"
#: Marks that are drawn, those that save the most.
_MOST_MARKS: Final = 10
#: Stages that have a colour of their own; the others are drawn as one.
_MOST_STAGES: Final = 7
OTHERS: Final = "other stages"


def cells(data: RunData, workload: str) -> tuple[CellName, ...]:
    """The cells of a workload whose kernels were looked into, in the order of the run."""
    return tuple(cell for cell in data.experiments.cells if cell.workload == workload)


def alterable(data: RunData, workload: str, case: str = "") -> tuple[str, ...]:
    """The variants of a workload with kernels in CUDA C++: those with times of the case first, of these rungs, the fastest before others."""
    rows = data.variants[(data.variants["workload"] == workload) & (data.variants["kind"] == "cuda")]
    roles = dict(zip(rows["variant"], rows["role"], strict=True))
    timed = [name for name in counted.times(data, workload, case).sort_values("timed_ns")["variant"] if name in roles]
    return tuple(dict.fromkeys([*sorted(timed, key=lambda name: roles[name] != "rung"), *roles]))


def inside(data: RunData, cell: CellName) -> Inside:
    """What the experiments on a cell showed."""
    return data.experiments.of(cell)


def bars(found: Inside) -> pd.DataFrame:
    """The time as it is, and without each class of work, the shortest first.

    Returns:
        The columns `what`, `ns`, `low_ns`, `high_ns`, `lines` and `note`.
    """
    original = found.of(Experiment.TIME, "original")[0]
    taken = sorted(found.of(Experiment.WITHOUT), key=lambda row: float(row["value"]))
    rows = [(ORIGINAL, original), *((f"without {row['what']}", row) for row in taken if np.isfinite(row["value"]))]
    return pd.DataFrame(
        [(what, row["value"], row["low"], row["high"], row["lines"], row["note"]) for what, row in rows],
        columns=["what", "ns", "low_ns", "high_ns", "lines", "note"],
    )


def marks(found: Inside) -> pd.DataFrame:
    """What a microsecond less at each mark saves, the most first: columns `mark`, `saved`, `low` and `high`, in microseconds."""
    rows = found.delays()[:_MOST_MARKS]
    return pd.DataFrame(
        [(row["what"], row["value"], row["low"], row["high"]) for row in rows], columns=["mark", "saved", "low", "high"]
    )


@dataclass(frozen=True)
class Blocks:
    """The blocks of some multiprocessors.

    Attributes:
        spans: a row for each block: `multiprocessor`, `block`, `start_ns`, `end_ns` and `place`, the row that it is drawn in.
        parts: a row for each block and stage: also `stage`, `from_ns` and `stage_ns`; the stages of a block one after another.
        stages: in the order of the kernel.
    """

    spans: pd.DataFrame
    parts: pd.DataFrame
    stages: tuple[str, ...]

    @property
    def multiprocessors(self) -> list[int]:
        """In the order in which they end, the last one first."""
        ends = self.spans.groupby("multiprocessor")["end_ns"].max()
        return [int(number) for number in ends.sort_values(ascending=False, kind="stable").index]

    def of(self, multiprocessor: int) -> pd.DataFrame:
        """The parts of a multiprocessor's blocks."""
        return self.parts[self.parts["multiprocessor"] == multiprocessor]

    def running(self) -> pd.DataFrame:
        """Blocks of a multiprocessor over time, the mean of those that are known: columns `at_ns` and `blocks`."""
        starts, ends = self.spans["start_ns"].to_numpy(), self.spans["end_ns"].to_numpy()
        at, place = np.unique(np.concatenate([starts, ends]), return_inverse=True)
        change = np.bincount(place, np.concatenate([np.ones(len(starts)), -np.ones(len(ends))]))
        return pd.DataFrame({"at_ns": at, "blocks": change.cumsum() / self.spans["multiprocessor"].nunique()})


def blocks(data: RunData, cell: CellName) -> Blocks | None:
    """The blocks of a cell's kernel; None where none are known."""
    rows = data.experiments.blocks(cell)
    if rows.empty:
        return None
    about = ["multiprocessor", "block", "start_ns", "end_ns"]
    spans = (
        rows[about].drop_duplicates().sort_values(["multiprocessor", "start_ns", "block"], kind="stable").reset_index(drop=True)
    )
    spans["place"] = _places(spans)
    stages = rows.groupby("stage", sort=False)["stage_ns"].sum()
    shown = set(stages.nlargest(_MOST_STAGES).index)
    rows = rows.assign(stage=[stage if stage in shown else OTHERS for stage in rows["stage"]])
    order = [*(stage for stage in stages.index if stage in shown), *([OTHERS] if len(stages) > len(shown) else [])]
    parts = rows.groupby([*about, "stage"], sort=False, as_index=False)["stage_ns"].sum()
    parts = parts.merge(spans, on=about)
    parts["order"] = parts["stage"].map({stage: place for place, stage in enumerate(order)})
    parts = parts.sort_values(["multiprocessor", "block", "order"], kind="stable").drop(columns="order")
    before = parts.groupby("block")["stage_ns"].cumsum() - parts["stage_ns"]
    return Blocks(spans, parts.assign(from_ns=parts["start_ns"] + before).reset_index(drop=True), tuple(order))


def _places(spans: pd.DataFrame) -> list[int]:
    """The first row of its multiprocessor that is free when a block begins."""
    places = list[int]()
    free = dict[int, list[int]]()
    for multiprocessor, start, end in spans[["multiprocessor", "start_ns", "end_ns"]].itertuples(index=False):
        ends = free.setdefault(multiprocessor, [])
        place = next((number for number, until in enumerate(ends) if until <= start), len(ends))
        ends[place : place + 1] = [end]
        places.append(place)
    return places
