"""What a comparison of two runs asks of each cell of a run: its durations, its noise floor and its source."""

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt
import pandas as pd

from warpladder.dashboard.core.estimate import Estimate
from warpladder.dashboard.core.noise import Noise, noise_of
from warpladder.dashboard.core.run_data import Entry, RunData


@dataclass(frozen=True)
class Timed:
    """A cell with samples.

    Attributes:
        key: what it is matched by: workload, case, scope, cache, variant, config and number of GPUs; the variant and the config are
            empty where they are not matched.
    """

    key: tuple[str, str, str, str, str, str, int]
    variant: str
    config: str
    median_ns: Estimate


@dataclass(frozen=True, eq=False)
class Reading:
    """A run whose samples of one process and of several ranks are together, with what is asked for each of its cells."""

    data: RunData
    noises: dict[tuple[str, str, str, str, int], Noise]

    def durations(self, cell: Timed) -> "pd.Series[float]":
        """Durations of a cell in nanoseconds, by round."""
        workload, case, scope, cache, _, _, gpus = cell.key
        return self.data.rounds(workload, case, scope, cache)[Entry(cell.variant, cell.config, gpus, 0)]

    def processes(self, cell: Timed) -> list[npt.NDArray[np.float64]]:
        """Durations of a cell in nanoseconds, one a round, of each process. Several of one round count as their median.

        A run is one process.
        """
        by_round = self.durations(cell)
        once = by_round if by_round.index.is_unique else by_round.groupby(level=0).median()
        return [np.asarray(once, dtype=np.float64)]

    def noise(self, cell: Timed) -> float:
        """The noise floor of a cell, by the baseline's two copies on as many ranks."""
        workload, case, scope, cache, _, _, gpus = cell.key
        key = (workload, case, scope, cache, max(gpus, 1))
        if key not in self.noises:
            rounds = self.data.rounds(workload, case, scope, cache)
            same = {entry: rounds[entry] for entry in rounds if max(entry.gpus, 1) == key[-1]}
            self.noises[key] = noise_of(same, self.data.hosts(workload))
        return self.noises[key].between(cell.variant)

    @cached_property
    def sources(self) -> dict[tuple[str, str], tuple[str, str]]:
        """Hash and text of each source as it was measured, by workload and variant."""
        columns = self.data.variants[["workload", "variant", "source_sha256", "source_text"]].fillna("")
        return {(workload, variant): (sha, text) for workload, variant, sha, text in columns.itertuples(index=False, name=None)}

    def source(self, cell: Timed) -> tuple[str, str]:
        """Hash and text of a cell's source; empty where none was recorded."""
        return self.sources.get((cell.key[0], cell.variant), ("", ""))


@lru_cache(maxsize=4)
def reading(data: RunData) -> Reading:
    """The reading of a run, made once."""
    if len(data.together):
        data = replace(
            data, samples=pd.concat([data.samples, data.together], ignore_index=True), together=data.together.iloc[:0]
        )
    return Reading(data, {})
