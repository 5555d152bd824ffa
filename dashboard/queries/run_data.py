"""The tables of one run that comparisons are made of."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import pandas as pd

from data import store

#: The columns that name what a group of samples measured.
CELL: Final = ["workload", "variant", "config", "case", "gpus", "cache", "scope"]
VERDICT_CELL: Final = ["workload", "variant", "config", "case"]


@dataclass(frozen=True)
class RunData:
    """One run: `info` is the row of table `run`; every frame has the columns that `data/README.md` gives its table."""

    info: Mapping[str, Any]
    ceilings: pd.DataFrame
    variants: pd.DataFrame
    cases: pd.DataFrame
    results: pd.DataFrame
    samples: pd.DataFrame
    diagnostics: pd.DataFrame

    @property
    def device(self) -> str:
        """What a chart names as the hardware: the GPU, or the processor where there is none."""
        return str(self.info["device_name"] or self.info["cpu_name"])

    @property
    def workloads(self) -> tuple[str, ...]:
        """Workloads in the order in which they were recorded."""
        return tuple(self.cases["workload"].unique())


def load(run: store.Run) -> RunData:
    """Read what comparisons need of a run.

    Raises:
        StoreError: a file is damaged or is not of this schema.
    """
    names = ("ceilings", "variants", "cases", "results", "samples", "diagnostics")
    return RunData(info=run.info, **{name: run.table(name) for name in names})
