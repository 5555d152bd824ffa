"""The tables of one run that comparisons are made of."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd

from data import store

#: The columns that name what a group of samples measured.
CELL: Final = ["workload", "variant", "config", "case", "gpus", "cache", "scope"]
VERDICT_CELL: Final = ["workload", "variant", "config", "case"]


class Copy(NamedTuple):
    """One of the things that ran in the rounds of a case: a cell, or the baseline's second copy (twin = 1)."""

    variant: str
    config: str
    gpus: int
    twin: int


@dataclass(frozen=True, eq=False)
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

    def rounds(self, workload: str, case: str, scope: str, cache: str) -> "Mapping[Copy, pd.Series[float]]":
        """Durations in nanoseconds, indexed by round, of everything that was sampled in one case and view."""
        return self._rounds.get((workload, case, scope, cache), {})

    @cached_property
    def _rounds(self) -> "Mapping[tuple[str, str, str, str], dict[Copy, pd.Series[float]]]":
        samples = by_round(self.samples)
        key = ["workload", "case", "scope", "cache", "variant", "config", "gpus", "twin"]
        groups = samples.groupby(key, observed=True, sort=False)
        order = np.argsort(groups.ngroup().to_numpy(), kind="stable")
        sizes = groups.size()
        ends = np.cumsum(sizes.to_numpy())
        durations = samples["duration_ns"].to_numpy(dtype=float)[order]
        numbers = samples["round"].to_numpy()[order]
        found: dict[tuple[str, str, str, str], dict[Copy, pd.Series[float]]] = {}
        for (*where, variant, config, gpus, twin), end, size in zip(sizes.index, ends, sizes, strict=True):
            part = slice(end - size, end)
            by_number = pd.Series(durations[part], index=numbers[part])
            found.setdefault(tuple(where), {})[Copy(variant, config, int(gpus), int(twin))] = by_number
        return found


def by_round(samples: pd.DataFrame) -> pd.DataFrame:
    """Samples with the ranks of one execution joined: an operation of several processes takes as long as the slowest."""
    if not (samples["rank"] > 0).any():
        return samples
    same = [*CELL, "twin", "round", "position"]
    return samples.groupby(same, observed=True)["duration_ns"].max().reset_index()


def load(run: store.Run) -> RunData:
    """Read what comparisons need of a run.

    Raises:
        StoreError: a file is damaged or is not of this schema.
    """
    names = ("ceilings", "variants", "cases", "results", "samples", "diagnostics")
    return RunData(info=run.info, **{name: run.table(name) for name in names})
