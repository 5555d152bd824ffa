"""The tables of one run that comparisons are made of."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from warpladder.dashboard.core.traces import NO_TRACES, Traces
from warpladder.data import schema, store

#: A number that Python wrote with a positive exponent. One with a negative exponent is a relative error, and stays as it is.
_EXPONENT: Final = re.compile(r"(?<![\w.])(\d(?:\.\d+)?e\+\d{1,2})(?![\w.]*\w)")

#: The columns that name what a group of samples measured.
CELL: Final = ["workload", "variant", "config", "case", "gpus", "cache", "scope"]
VERDICT_CELL: Final = ["workload", "variant", "config", "case"]
NO_COUNTERS: Final = pd.DataFrame(columns=schema.COUNTERS.arrow.names)
NO_SAMPLES: Final = pd.DataFrame(columns=schema.SAMPLES.arrow.names)


class Copy(NamedTuple):
    """One of the things that ran in the rounds of a case: a cell, or the baseline's second copy (twin = 1)."""

    variant: str
    config: str
    gpus: int
    twin: int


class Grouped(NamedTuple):
    """Samples in the order of their groups. `keys` has a row a group: the columns of `CELL`, `twin`, and `n`; `first` says where
    the group starts in `durations` (nanoseconds) and `rounds`."""

    keys: pd.DataFrame
    first: npt.NDArray[np.int64]
    durations: npt.NDArray[np.float64]
    rounds: npt.NDArray[np.int32]


@dataclass(frozen=True)
class Rounds(Mapping[Copy, "pd.Series[float]"]):
    """Durations in nanoseconds, indexed by round, of the copies of one case and view; a series is made when it is asked for."""

    grouped: Grouped
    places: Mapping[Copy, slice]

    def __getitem__(self, copy: Copy) -> "pd.Series[float]":
        place = self.places[copy]
        return pd.Series(self.grouped.durations[place], index=self.grouped.rounds[place])

    def __iter__(self) -> Iterator[Copy]:
        return iter(self.places)

    def __len__(self) -> int:
        return len(self.places)


@dataclass(frozen=True, eq=False)
class RunData:
    """One run: `info` is the row of table `run`; every frame has the columns that `data/README.md` gives its table.

    `samples` are what one process measured; those that several ranks took together, a row a rank and round, stand apart in
    `together`, so that a page that compares variants never compares different numbers of GPUs.
    """

    info: Mapping[str, Any]
    ceilings: pd.DataFrame
    variants: pd.DataFrame
    cases: pd.DataFrame
    results: pd.DataFrame
    samples: pd.DataFrame
    diagnostics: pd.DataFrame
    traces: Traces = NO_TRACES
    counters: pd.DataFrame = field(default_factory=lambda: NO_COUNTERS)
    together: pd.DataFrame = field(default_factory=lambda: NO_SAMPLES)

    @property
    def device(self) -> str:
        """What a chart names as the hardware: the GPU, or the processor where there is none."""
        return str(self.info["device_name"] or self.info["cpu_name"])

    @property
    def on_gpu(self) -> bool:
        """Whether the run was recorded with a GPU."""
        return bool(self.info["device_name"])

    @property
    def workloads(self) -> tuple[str, ...]:
        """Workloads in the order in which they were recorded."""
        return tuple(self.cases["workload"].unique())

    def hosts(self, workload: str) -> frozenset[str]:
        """The workload's variants that run on the processor, however many processes they take."""
        of_workload = self.variants[self.variants["workload"] == workload]
        return frozenset(of_workload.loc[of_workload["kind"] == "host", "variant"])

    def rounds(self, workload: str, case: str, scope: str, cache: str) -> "Rounds":
        """Durations in nanoseconds, indexed by round, of everything that was sampled in one case and view."""
        return Rounds(self.grouped, self._places.get((workload, case, scope, cache), {}))

    @cached_property
    def _places(self) -> Mapping[tuple[str, str, str, str], dict[Copy, slice]]:
        """Where the samples of each copy stand in `grouped`, by workload, case, scope and cache."""
        keys, first = self.grouped.keys, self.grouped.first
        found: dict[tuple[str, str, str, str], dict[Copy, slice]] = {}
        columns = ["workload", "case", "scope", "cache", "variant", "config", "gpus", "twin"]
        rows = zip(keys[columns].itertuples(index=False, name=None), first, keys["n"], strict=True)
        for (*where, variant, config, gpus, twin), start, n in rows:
            found.setdefault(tuple(where), {})[Copy(variant, config, int(gpus), int(twin))] = slice(start, start + n)
        return found

    @cached_property
    def grouped(self) -> Grouped:
        """The samples by cell and twin, grouped once for all that is made of them."""
        samples = by_round(self.samples)
        groups = samples.groupby([*CELL, "twin"], observed=True, sort=False)
        number = groups.ngroup().to_numpy()
        keys = groups.size().rename("n").reset_index()
        texts = keys.columns[keys.dtypes == "category"]
        order = np.argsort(number, kind="stable")
        n = keys["n"].to_numpy()
        return Grouped(
            keys.astype(dict.fromkeys(texts, "str")), np.cumsum(n) - n, samples["duration_ns"].to_numpy(dtype=float)[order],
            samples["round"].to_numpy()[order],
        )  # fmt: skip


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
    names = ("ceilings", "variants", "cases", "results", "diagnostics", "counters")
    # Hundreds of thousands of rows, which are grouped by their text.
    alone, together = _by_ranks(run.table("samples", categories=True))
    tables = {name: run.table(name) for name in names}
    for name, column in (("diagnostics", "text"), ("results", "detail")):
        told = tables[name][column]
        tables[name] = tables[name].assign(**{column: told.map(without_exponents, na_action="ignore").astype(told.dtype)})
    return RunData(info=run.info, samples=alone, together=together, **tables, traces=Traces(run))


def _by_ranks(samples: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Samples of one process, and those that several ranks took together.

    One process may use several GPUs, as an imported program does: where no rank but 0 took a sample, all are of one process.
    """
    if not (samples["rank"] > 0).any():
        return samples, NO_SAMPLES
    together = samples["gpus"] > 1
    return samples[~together].reset_index(drop=True), samples[together].reset_index(drop=True)


def without_exponents(text: str) -> str:
    """`71,200 GB/s` for `7.12e+04 GB/s`: recordings of earlier versions wrote their findings so."""
    return _EXPONENT.sub(lambda found: f"{float(found[1]):,.0f}", text)
