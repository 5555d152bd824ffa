"""What a comparison of two runs asks of each cell of a run: its durations, its level, its noise floor and its source."""

from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np
import pandas as pd

from warpladder.dashboard.core.cells import cells
from warpladder.dashboard.core.estimate import Estimate
from warpladder.dashboard.core.history import Medians, TimedCell, alike
from warpladder.dashboard.core.levels import Level, levels
from warpladder.dashboard.core.noise import Noise, noise_of
from warpladder.dashboard.core.run_data import CELL, Entry, RunData


@dataclass(frozen=True)
class Timed:
    """A cell with samples.

    Attributes:
        key: what it is matched by: workload, case, scope, cache, variant, config and number of GPUs; the variant and the config are
            empty where they are not matched.
        not_done: sources of findings that its work was not done; see `names.NOT_DONE`.
    """

    key: tuple[str, str, str, str, str, str, int]
    variant: str
    config: str
    median_ns: Estimate
    not_done: tuple[str, ...] = ()

    @property
    def cell(self) -> TimedCell:
        _, case, scope, cache, _, _, gpus = self.key
        return TimedCell(case, scope, cache, self.variant, self.config, gpus)


@dataclass(frozen=True, eq=False)
class Reading:
    """A run whose samples of one process and of several ranks are together, with what is asked for each of its cells."""

    data: RunData
    _noises: dict[tuple[str, str, str, str, int], Noise] = field(default_factory=dict)
    _medians: dict[str, tuple[Medians, dict[TimedCell, int]]] = field(default_factory=dict)

    def durations(self, cell: Timed) -> "pd.Series[float]":
        """Durations of a cell in nanoseconds, by round."""
        workload, case, scope, cache, _, _, gpus = cell.key
        return self.data.rounds(workload, case, scope, cache)[Entry(cell.variant, cell.config, gpus, 0)]

    def noise(self, cell: Timed) -> float:
        """The noise floor of a cell, by the baseline's two copies on as many ranks."""
        workload, case, scope, cache, _, _, gpus = cell.key
        key = (workload, case, scope, cache, max(gpus, 1))
        if key not in self._noises:
            rounds = self.data.rounds(workload, case, scope, cache)
            same = {entry: rounds[entry] for entry in rounds if max(entry.gpus, 1) == key[-1]}
            self._noises[key] = noise_of(same, self.data.hosts(workload))
        return self._noises[key].between(cell.variant)

    def level(self, cell: Timed) -> Level:
        """The level of a cell."""
        medians, places = self._of(cell.key[0])
        return medians.levels.at(places[cell.cell])

    def source(self, cell: Timed) -> str:
        """Hash of a cell's source; empty where none was recorded."""
        return self._of(cell.key[0])[0].sources.get(cell.variant, "")

    def medians(self, workload: str) -> Medians:
        """What the run measured of a workload, as `history.medians` reads it, and with the samples that ranks took together."""
        return self._of(workload)[0]

    def _of(self, workload: str) -> tuple[Medians, dict[TimedCell, int]]:
        if workload not in self._medians:
            found = _medians_of(self.data, workload)
            self._medians[workload] = found, {cell: place for place, cell in enumerate(found.cells)}
        return self._medians[workload]


def _medians_of(data: RunData, workload: str) -> Medians:
    every = cells(data)
    every = every[(every["workload"] == workload) & (every["n"] > 0) & (every["status"] == "ok")]
    grouped = data.grouped
    keys = grouped.keys[(grouped.keys["workload"] == workload) & (grouped.keys["twin"] == 0)]
    places = dict(zip(keys[CELL].itertuples(index=False, name=None), keys.index, strict=True))
    rows = [places[key] for key in every[CELL].itertuples(index=False, name=None)]
    n = grouped.keys["n"].to_numpy()[rows]
    first = np.repeat(grouped.first[rows] - np.cumsum(n) + n, n)
    taken = first + np.arange(len(first))
    variants = data.variants[data.variants["workload"] == workload]
    of_run = tuple(map(TimedCell._make, every[list(TimedCell._fields)].itertuples(index=False, name=None)))
    return Medians(
        str(data.info["run_id"]),
        of_run,
        levels(grouped.durations[taken], n, grouped.processes[taken], [alike(cell) for cell in of_run]),
        every[["median_ns", "low_ns", "high_ns"]].to_numpy(dtype=float),
        dict(zip(variants["variant"], variants["source_sha256"].fillna(""), strict=True)),
        {},
        float("nan"),
    )


@lru_cache(maxsize=4)
def reading(data: RunData) -> Reading:
    """The reading of a run, made once."""
    if len(data.together):
        samples = pd.concat([data.samples, data.together], ignore_index=True)
        whole = data.selected_from and reading(data.selected_from).data
        data = replace(data, samples=samples, together=data.together.iloc[:0], selected_from=whole)
    return Reading(data)
