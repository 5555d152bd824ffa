"""A cell as a record, and the order of the roles."""

from dataclasses import dataclass
from typing import Final

from warpladder.dashboard.core.estimate import Estimate

#: The order of the roles of variants in charts and tables.
ROLE_ORDER: Final = ("ceiling", "rung", "peer", "host", "specimen")
#: The roles of variants that do not compete.
ASIDE: Final = ("ceiling", "specimen")


def name_of(variant: str, config: str) -> str:
    """`v03_tile[block=16]`."""
    return f"{variant}[{config}]" if config else variant


def name_on(variant: str, config: str, gpus: int) -> str:
    """`v03_tile[block=16] on 2 GPUs`, with the GPUs where several worked together."""
    return f"{name_of(variant, config)}{f' on {gpus} GPUs' if gpus > 1 else ''}"


@dataclass(frozen=True)
class Cell:
    """A row of `cells.cells`, which documents its columns; see `records.records`."""

    workload: str
    variant: str
    config: str
    case: str
    gpus: int
    cache: str
    scope: str
    n: int
    median_ns: Estimate
    interval_kind: str
    role: str
    kind: str
    precision: str
    title: str
    gb_per_s: Estimate
    gflop_per_s: Estimate
    percent_of_floor: Estimate
    floor_ns: float
    floor_bound: str
    floor_ceiling: str
    status: str
    detail: str
    rel_l2_error: float
    flags: tuple[str, ...]


@dataclass(frozen=True)
class Contender(Cell):
    """A cell of a charted case: `size`, `series` and `size_value` are those of `axes.charted_cases`."""

    size_rank: int
    size: str
    series: str
