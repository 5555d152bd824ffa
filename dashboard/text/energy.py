"""The energy of an execution as text: a table for each workload, and columns of the table of the best variants."""

from collections.abc import Mapping
from typing import Any, Final

import pandas as pd

from warpladder.dashboard.compare.energy import energies, metered_cases, of_case
from warpladder.dashboard.core.cell import Estimate, name_of
from warpladder.dashboard.core.numbers import (
    ITSELF,
    NOTHING,
    format_duration,
    format_energy,
    format_estimate,
    format_percent,
    format_rate,
    format_ratio,
)
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.ui.text import plain_table

_HEADINGS: Final = ("variant", "energy an execution", "a watt", "over the baseline", "in the loop")
#: The columns of `energies` that stand beside the best variant.
_COLUMNS: Final = [*Estimate.names("energy_mj"), "energy_n", *Estimate.names("per_watt"), "per_watt_unit"]


def lines(data: RunData, *, every: bool = False) -> list[str]:
    """For each workload with energy a table of its last case that has some, the least first.

    Args:
        every: a table of every case with energy.
    """
    tables = []
    for workload in data.workloads:
        cases = metered_cases(data, workload)
        tables += [_table(data, workload, case) for case in (cases if every else cases[-1:])]
    return [line for place, table in enumerate(tables) for line in (["", *table] if place else table)]


def _table(data: RunData, workload: str, case: str) -> list[str]:
    frame = of_case(data, workload, case)
    noise = frame["energy_noise"].iloc[0]
    copies = f"; two copies of the baseline differ by {format_percent(100 * (noise - 1))} at most" if noise > 1 else ""
    return [
        f"{workload} {case}: energy above {frame['idle_w'].median():.0f} W idle{copies}",
        *plain_table(_HEADINGS, [_line(row) for row in frame.to_dict("records")]),
    ]


def _line(row: Mapping[Any, Any]) -> tuple[str, ...]:
    name, baseline = name_of(row["variant"], row["config"]), name_of(row["baseline"], row["baseline_config"])
    ratio = Estimate.of(row, "energy_ratio")
    over = format_ratio(ratio.value) if row["energy_verdict"] in ("less", "more") else row["energy_verdict"] or NOTHING
    return (
        name,
        format_estimate(Estimate.of(row, "energy_mj"), format_energy),
        format_rate(row["per_watt"], row["per_watt_unit"]),
        ITSELF if name == baseline else over,
        f"{format_duration(row['loop_ns'])} at {row['loop_w']:.0f} W",
    )


def beside(rows: pd.DataFrame, data: RunData) -> pd.DataFrame:
    """The rows of `summary.figures`, in a run with energy with the columns of the best variant's."""
    if data.energy.empty:
        return rows
    own = energies(data)[["workload", "variant", "config", "case", *_COLUMNS]].rename(
        columns={"variant": "best", "config": "best_config"}
    )
    return rows.merge(own, on=["workload", "best", "best_config", "case"], how="left")
