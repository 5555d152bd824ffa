"""A case on one rank and on several as text: a table for each workload that several GPUs, or several processes, measured."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from warpladder.dashboard.core.cell import Timing
from warpladder.dashboard.core.numbers import NOTHING, format_duration, format_percent, format_ratio
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.core.trusted import is_trusted
from warpladder.dashboard.ui.text import plain_table
from warpladder.dashboard.views.devices.gpus.query import scaling, timings


def lines(data: RunData, *, every: bool = False) -> list[str]:
    """For each workload on several ranks the times of its largest case, with speedup and efficiency against one rank.

    Args:
        every: a table of every case.
    """
    tables = []
    for workload in data.workloads:
        for timing in timings(data, workload)[:1]:
            frame = scaling(data, workload, timing)
            cases = list(dict.fromkeys(frame.sort_values("size_rank", kind="stable")["case"]))
            tables += [
                _table(workload, case, timing, frame[frame["case"] == case]) for case in (cases if every else cases[-1:])
            ]
    return [line for place, table in enumerate(tables) for line in (["", *table] if place else table)]


def _table(workload: str, case: str, timing: Timing, frame: pd.DataFrame) -> list[str]:
    frame = frame[is_trusted(frame)]
    ranks = sorted(frame["ranks"].unique())
    on_gpu = bool((frame["kind"] != "host").any())
    one, many = ("GPU", "GPUs") if on_gpu else ("process", "processes")
    rows = []
    for variant, of_variant in frame.groupby("variant", sort=False):
        cells = {row["ranks"]: _cell(row) for row in of_variant.to_dict("records")}
        rows.append([str(variant), *(cells.get(each, NOTHING) for each in ranks)])
    return [
        f"{workload} {case}: {timing.label(on_gpu=on_gpu)}, speedup over one {one}, efficiency",
        *plain_table(["variant", *(f"{each} {one if each == 1 else many}" for each in ranks)], rows),
    ]


def _cell(row: Mapping[Any, Any]) -> str:
    time = format_duration(row["median_ns"])
    if row["ranks"] == 1 or pd.isna(row["speedup"]):
        return time
    return f"{time}, {format_ratio(row['speedup'])}, {format_percent(row['efficiency'])}"
