"""What a reader can choose from in a run: the size axis and the series of a workload, and how cells were measured."""

from dataclasses import dataclass

import pandas as pd

from dashboard.queries.run_data import RunData


@dataclass(frozen=True)
class View:
    """How a cell is timed: a scope and a state of the L2 cache. `label` is what a page shows, e.g. `device, cold L2`."""

    scope: str
    cache: str

    @property
    def label(self) -> str:
        return f"{self.scope.replace('_', ' ')}, {self.cache} L2"


@dataclass(frozen=True)
class Baseline:
    """The variant, with its config, that speedups are counted from."""

    variant: str
    config: str


def views(data: RunData, workload: str) -> tuple[View, ...]:
    """The ways in which the workload was timed, the one to show first in front.

    In front stands `device` with a cold L2 where there is a GPU, then `device` hot, `operation`, `end_to_end`, phases.
    """
    raise NotImplementedError


def charted_cases(data: RunData, workload: str) -> pd.DataFrame:
    """The workload's cases on the size axis, by size_rank, with columns of `cases` and, besides:

    Returns:
        `size` (text of the axes that change with size_rank, e.g. `n=512`) and `series` (text of the other axes, e.g.
        `perm=210`; empty where the workload has none).
    """
    raise NotImplementedError


def series(data: RunData, workload: str) -> tuple[str, ...]:
    """The workload's series, e.g. `("perm=012", "perm=021", …)`; `("",)` where size is its only axis."""
    raise NotImplementedError


def baseline(data: RunData, workload: str, view: View) -> Baseline | None:
    """What speedups are counted from in that view: the variant that was sampled twice (A/A).

    Where none was, the lowest rung with samples in the view, then `numba_serial`, then the slowest host variant;
    None where the view has no sample.
    """
    raise NotImplementedError
