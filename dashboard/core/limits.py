"""The limit of a variant: its floor, else the unit of the device that is busiest, else latency.

A verdict takes its name and its figure from one metric. The timed distance from the floor comes first: a variant that is as fast as the
device allows is at its floor, whatever the counters read.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

import pandas as pd

from warpladder.data import metrics

#: A variant at this percentage of its floor, or above it, is at its floor.
FLOOR_PERCENT: Final = 95.0
#: A kernel is bound by a unit that reaches this share of its peak.
BOUND_PERCENT: Final = 80.0
#: A kernel is latency-bound where every unit stays below this share.
LATENCY_PERCENT: Final = 60.0
#: A pipe is named in place of the issue slots that feed it, DRAM in place of L2 through which its bytes pass, and shared memory in place
#: of the data path that it shares with L1, where its own share is at least this part of theirs.
_MOSTLY: Final = 0.85


class Kind(StrEnum):
    """How a variant is limited."""

    FLOOR = "floor"
    UNIT = "unit"
    LATENCY = "latency"
    SHORT = "short"
    UNKNOWN = ""


@dataclass(frozen=True)
class Unit:
    """A unit of the device with a peak.

    Attributes:
        name: its own name.
        column: of `counters.by_config`, its share of its peak over the whole kernel, in percent.
        metric: Nsight Compute's name of that share.
    """

    name: str
    column: str
    metric: str


DRAM: Final = Unit("DRAM", "dram_percent", metrics.DRAM)
L2: Final = Unit("L2", "l2_percent", metrics.L2)
SHARED: Final = Unit("shared memory", "shared_percent", metrics.SHARED_DATA)
L1: Final = Unit("L1", "l1_data_percent", metrics.L1_DATA)
ISSUE: Final = Unit("issue slots", "issued_percent", metrics.ISSUED)
PIPES: Final = (
    Unit("tensor cores", "tensor_elapsed_percent", metrics.TENSOR_ELAPSED),
    Unit("FMA", "fma_percent", metrics.FMA),
    Unit("ALU", "alu_percent", metrics.ALU),
    Unit("FP64", "fp64_percent", metrics.FP64),
    Unit("XU", "xu_percent", metrics.XU),
    Unit("LSU", "lsu_percent", metrics.LSU),
)
UNITS: Final = (DRAM, L2, SHARED, L1, *PIPES, ISSUE)
#: A unit through which the work of others passes -> these others.
_FEEDERS: Final = {ISSUE: PIPES, L2: (DRAM,), L1: (SHARED,)}
#: For reports that lack the shares of single units.
_COARSE: Final = (
    DRAM,
    L2,
    Unit("L1 and shared memory", "l1_percent", metrics.L1),
    Unit("multiprocessors", "compute_percent", metrics.COMPUTE),
)


@dataclass(frozen=True)
class Limit:
    """The limit of a variant.

    Attributes:
        unit: the busiest unit; None where no unit was counted.
        percent: the share of its peak that this unit reaches, or for `Kind.FLOOR` the percentage of the floor.
    """

    kind: Kind
    unit: Unit | None
    percent: float

    @property
    def name(self) -> str:
        """The name of the unit; empty without one."""
        return self.unit.name if self.unit else ""


def busiest(row: Mapping[Any, Any]) -> tuple[Unit | None, float]:
    """The busiest unit of a row of `counters.by_config`, and its share of its peak in percent; None and NaN where none was counted."""
    units = UNITS if pd.notna(row[ISSUE.column]) else _COARSE
    shares = {unit: float(row[unit.column]) for unit in units if pd.notna(row[unit.column])}
    if not shares:
        return None, float("nan")
    for feeder, fed_units in _FEEDERS.items():
        fed = max((shares[each] for each in fed_units if each in shares), default=0.0)
        # Where the feeder is near its peak and the fed unit is not, the feeder is the limit.
        if feeder in shares and fed >= _MOSTLY * shares[feeder] and (fed >= BOUND_PERCENT or shares[feeder] < BOUND_PERCENT):
            shares.pop(feeder)
    unit = max(shares, key=shares.__getitem__)
    return unit, shares[unit]


def limit_of(row: Mapping[Any, Any], percent_of_floor: float = float("nan")) -> Limit:
    """Find the limit of a row of `counters.by_config`.

    Args:
        percent_of_floor: the floor over the variant's timed median, in percent; NaN where it is not known.
    """
    unit, percent = busiest(row)
    if percent_of_floor >= FLOOR_PERCENT:
        return Limit(Kind.FLOOR, unit, percent_of_floor)
    if unit is None:
        return Limit(Kind.UNKNOWN, None, percent)
    if percent >= BOUND_PERCENT:
        return Limit(Kind.UNIT, unit, percent)
    return Limit(Kind.LATENCY if percent < LATENCY_PERCENT else Kind.SHORT, unit, percent)
