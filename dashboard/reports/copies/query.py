"""Speedups over the sequential host code, with and without the copies in and out."""

from typing import Final

import pandas as pd

from warpladder.dashboard.core.axes import charted_cases
from warpladder.dashboard.core.baseline import baseline_variant
from warpladder.dashboard.core.cells import best_config, cells
from warpladder.dashboard.core.intervals import paired_ratio
from warpladder.dashboard.core.run_data import Entry, RunData, find_entry
from warpladder.dashboard.core.timing import Timing
from warpladder.dashboard.reports.sources import SEQUENTIAL
from warpladder.data import figures

_COLUMNS: Final = [
    "variant",
    "title",
    "config",
    "case",
    "size_rank",
    "size",
    "series",
    "copies",
    "scope",
    "cache",
    "reference",
    "speedup",
    "low",
    "high",
    "n",
    "paired",
]


def with_and_without_copies(data: RunData, workload: str) -> pd.DataFrame:
    """Speedups over the sequential host code, as in the tensor report's tables 4 (without the copies) and 5 (with them).

    Host and device are not measured in the same rounds, so the ratios are not paired.

    Returns:
        One row for each (case, variant, copies) of the rungs and peers, with the fastest config. Empty without host samples or
        without GPU samples. The columns are `variant`, `title`, `config`, `case`, `size_rank`, `scope`, `cache`, `speedup`,
        `low`, `high`, `n`, `paired`, and

        - `size`, `series`: see `axes.charted_cases`;
        - `copies`: True for the scope `end_to_end`; False for the scope `device` with a hot L2, or `operation` where there is
          no device scope;
        - `reference`: the host variant.
    """
    every = cells(data)
    best = best_config(every[(every["workload"] == workload) & (every["gpus"] > 0) & every["role"].isin(["rung", "peer"])])
    best = best.merge(charted_cases(data, workload)[["case", "size", "series"]], on="case")
    host = _host_reference(data, workload)
    rows = []
    for copies, scopes in ((False, ("device", "operation")), (True, ("end_to_end",))):
        scope = next((scope for scope in scopes if (best["scope"] == scope).any()), "")
        for row in best[(best["scope"] == scope) & (best["cache"] == "hot")].to_dict("records"):
            of_host = data.rounds(workload, row["case"], "operation", "hot")
            reference = find_entry(of_host, host, "")
            if reference is None:
                continue
            own = data.rounds(workload, row["case"], row["scope"], row["cache"])[
                Entry(row["variant"], row["config"], int(row["gpus"]), 0)
            ]
            ratio = paired_ratio(of_host[reference], own, independent=True)
            rows.append(
                {
                    **{column: row[column] for column in _COLUMNS if column in row},
                    "copies": copies,
                    "reference": host,
                    "speedup": ratio.ratio,
                    "low": ratio.low,
                    "high": ratio.high,
                    "n": ratio.n,
                    "paired": ratio.paired,
                }
            )
    return pd.DataFrame(rows, columns=_COLUMNS)


def sizes_to_choose(frame: pd.DataFrame, workload: str) -> tuple[tuple[str, ...], str]:
    """The sizes that a reader can choose from, and the size to show first: the report's, or else the largest.

    Returns:
        No sizes where the workload has one series. The sizes are then the axis of the chart.
    """
    sizes = tuple(frame.sort_values("size_rank", kind="stable")["size"].unique())
    if frame["series"].nunique() < 2:
        return (), ""
    published = figures.read(workload)["case"] if workload in figures.reports() else pd.Series(dtype=str)
    of_report = frame.loc[frame["case"].isin(published), "size"]
    return sizes, str(of_report.iloc[0]) if len(of_report) else sizes[-1]


def _host_reference(data: RunData, workload: str) -> str:
    """The host variant that speedups are counted from, chosen as on a machine without a GPU; empty where there is none."""
    return baseline_variant(data, workload, Timing("operation", "hot"), on_host=True, preferred=SEQUENTIAL)
