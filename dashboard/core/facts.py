"""The differences between two recordings, and which of them make a comparison unlike."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pandas as pd

from warpladder.dashboard.core.run_data import RunData
from warpladder.data.names import Ceiling

#: Clocks and ceilings that differ by more than this are worth a warning.
_WORTH_A_WARNING: Final = 0.02

#: Columns of table `run` -> their words, and the reason that a difference makes a comparison unlike; empty for none.
_FACTS: Final[Mapping[str, tuple[str, str]]] = {
    "device_name": ("GPU", "different GPUs"),
    "cpu_name": ("processor", ""),
    "device_count": ("number of GPUs", ""),
    "collector": ("collector", "different collectors time different spans"),
    "collector_version": ("version of the collector", ""),
    "driver_version": ("driver", "the driver compiles and launches"),
    "cuda_version": ("CUDA", "the compiler's version changes machine code"),
    "python_version": ("Python", ""),
    "os": ("system", ""),
    "git_commit": ("commit", ""),
    "git_dirty": ("changes beyond the commit", ""),
}


@dataclass(frozen=True)
class Fact:
    """A difference between two recordings; `warning` says why they are not like with like, and is empty where they are."""

    what: str
    a: str
    b: str
    warning: str = ""


def facts(a: RunData, b: RunData) -> Iterator[Fact]:
    """The differences between two recordings, in the order of table `run`, then packages, ceilings and clocks."""
    for column, (what, warning) in _FACTS.items():
        before, after = (said(data.info[column]) for data in (a, b))
        if before != after:
            yield Fact(what, before, after, warning)
    yield from _packages(a, b)
    yield from _ceilings(a, b)
    clocks = [data.samples["sm_clock_mhz"].median() for data in (a, b)]
    if not any(map(pd.isna, clocks)) and abs(clocks[1] / clocks[0] - 1) > _WORTH_A_WARNING:
        yield Fact("SM clock, median", f"{clocks[0]:.0f} MHz", f"{clocks[1]:.0f} MHz", "the GPU ran at different clocks")


def said(value: Any) -> str:
    """A value of table `run` as text; empty for a null."""
    return "" if value is None or pd.isna(value) else str(value)


def _packages(a: RunData, b: RunData) -> Iterator[Fact]:
    before, after = (json.loads(said(data.info["packages"]) or "{}") for data in (a, b))
    for name in sorted(before.keys() | after.keys()):
        if before.get(name) != after.get(name):
            yield Fact(name, before.get(name, "not installed"), after.get(name, "not installed"))


def _ceilings(a: RunData, b: RunData) -> Iterator[Fact]:
    for name in (Ceiling.DEVICE_COPY, Ceiling.FP32_FMA, Ceiling.HOST_COPY):
        rows = [data.ceilings[data.ceilings["name"] == name].sort_values("device").head(1) for data in (a, b)]
        values = [(row["value"].iloc[0], row["unit"].iloc[0]) for row in rows if len(row)]
        if len(values) == 2 and abs(values[1][0] / values[0][0] - 1) > _WORTH_A_WARNING:
            before, after = (f"{value:.4g} {unit}" for value, unit in values)
            yield Fact(f"ceiling {name}", before, after, "the machine itself reached other limits")
