"""The definitions of the sections Collectives and Kernels of ranks, row by row from the tables `collectives` and `rank_kernels`."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
import pandas as pd

Row = Mapping[Any, Any]
_FACTORS: Final[Mapping[str, Callable[[int], float]]] = {
    "all_reduce": lambda n: 2 * (n - 1) / n,
    "all_gather": lambda n: (n - 1) / n,
    "sendrecv": lambda n: 1,
}


def of_row(table: pd.DataFrame, row: Row) -> pd.DataFrame:
    """The executions of one row of the section Collectives, with few sizes a group and kind."""
    size = table["bytes"] == (0 if pd.isna(row["bytes"]) else row["bytes"])
    return table[(table["group"] == row["group"]) & (table["collective"] == row["collective"]) & size]


def collective(table: pd.DataFrame, row: Row) -> dict[str, Any]:
    """Every figure of a row but the names and `percent_of_best`."""
    found = of_row(table, row)
    waits = {rank: rows["wait_ns"].sum() for rank, rows in found.groupby("rank")}
    transfers = [rows["transfer_ns"].median() for _, rows in found.groupby("rank")]
    rates = sorted(found["bytes"] / found["transfer_ns"])
    ranks = int(found["group_size"].iloc[0])
    factor = _FACTORS[row["collective"]](ranks)
    return {
        "ranks": ranks,
        "count": len(set(found["match"])),
        "kernels": sum(found["kernels"]),
        "kernel_ns": sum(found["end_ns"] - found["start_ns"]),
        "wait_ns": sum(found["wait_ns"]),
        "transfer_ns": sum(found["transfer_ns"]),
        "wait_median_ns": np.median(found["wait_ns"]),
        "transfer_median_ns": np.median(found["transfer_ns"]),
        "least_wait_rank": min(waits, key=lambda rank: waits[rank]),
        "least_wait_ns": min(waits.values()),
        "most_wait_ns": max(waits.values()),
        "least_transfer_ns": min(transfers),
        "most_transfer_ns": max(transfers),
        "algorithm_gb_per_s": found["bytes"].iloc[0] / np.median(found["transfer_ns"]),
        "bus_gb_per_s": factor * found["bytes"].iloc[0] / np.median(found["transfer_ns"]),
        "bus_gb_per_s_low": factor * 1 / np.quantile([1 / rate for rate in rates], 0.75),
        "bus_gb_per_s_high": factor * 1 / np.quantile([1 / rate for rate in rates], 0.25),
    }


def kernel(table: pd.DataFrame, ranks: int, row: Row) -> dict[str, Any]:
    """Every figure of a row of the page Kernels of ranks but the names."""
    found = table[(table["name"] == row["name"]) & (table["kind"] == row["kind"])]
    times = {int(rank): int(rows["total_ns"].sum()) for rank, rows in found.groupby("rank")}
    median = np.median(list(times.values()))
    return {
        "ranks": len(times),
        "of_ranks": ranks,
        "count": found["count"].sum(),
        "total_ns": sum(times.values()),
        "percent": 100 * sum(times.values()) / table["total_ns"].sum(),
        "mean_ns": sum(times.values()) / ranks,
        "median_ns": median,
        "spread_ns": 1.4826 * np.median([abs(time - median) for time in times.values()]),
        "slowest_rank": max(times, key=lambda rank: times[rank]),
        "slowest_ns": max(times.values()),
        "fastest_rank": min(times, key=lambda rank: times[rank]),
        "fastest_ns": min(times.values()),
        "median_all_ns": np.median([times.get(rank, 0) for rank in range(ranks)]),
    }
