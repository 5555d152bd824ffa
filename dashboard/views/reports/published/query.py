"""The printed figures of the reports, each beside our figure for the same work."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd

from warpladder.dashboard.core.cell import Entry, Estimate
from warpladder.dashboard.core.cells import best_config, cells
from warpladder.dashboard.core.intervals import paired_ratio
from warpladder.dashboard.core.run_data import RunData, find_entry
from warpladder.dashboard.views.reports.published.conflicts import bank_conflicts
from warpladder.data.figures import SEQUENTIAL

#: Operations for each point, as the convolution report counts them and as we do. We count a multiply and an add for each of 25
#: elements.
THEIR_OPERATIONS: Final = 25
OUR_OPERATIONS: Final = 50
#: Quantity -> the other page that shows it.
ELSEWHERE: Final = {
    "time_change": "Details, under Block size",
    "time_change_per_thread": "Details, under Block size",
    "overhead": "Details, under Overheads",
    "overhead_fraction": "Details, under Overheads",
    "bytes": "Transfers, of a run with a trace",
    "gain": "Ladder",
}
_PER_NANOSECOND: Final = {"ns": 1.0, "ms": 1e-6, "s": 1e-9}
_NOTHING: Final = {
    "ours": None,
    "ours_low": None,
    "ours_high": None,
    "n": 0,
    "our_config": "",
    "our_scope": "",
    "our_cache": "",
}


@dataclass(frozen=True)
class Source:
    """One quantity of one table of a report."""

    table: str
    quantity: str

    @property
    def slug(self) -> str:
        """`1.bandwidth`."""
        return f"{self.table.replace(' ', '_')}.{self.quantity}"

    @property
    def label(self) -> str:
        """`Table 1: bandwidth`."""
        table = f"table {self.table}" if self.table[0].isdigit() else self.table
        return f"{table[0].upper()}{table[1:]}: {self.quantity.replace('_', ' ')}"


def sources(figures: pd.DataFrame) -> tuple[Source, ...]:
    """Each quantity of the tables of one report, in its order. Quantities that we measure come first."""
    with_ours = figures.assign(has_ours=figures["our_variant"] != "")
    grouped = with_ours.groupby(["table", "quantity"], sort=False)["has_ours"].any().sort_values(ascending=False, kind="stable")
    return tuple(Source(str(table), str(quantity)) for table, quantity in grouped.index)


def beside_ours(data: RunData, figures: pd.DataFrame, source: Source, cache: str = "hot") -> pd.DataFrame:
    """One table of a report, with our figures for the same variant, case and scope, in the report's unit and way of counting.

    Args:
        figures: the figures of one report, from `data.figures.read`.
        source: the quantity and its table.
        cache: the state of L2 of our samples. A cell without samples in this state takes the other. The reports do not flush L2
            between repetitions, which is `hot`.

    Returns:
        One row for each printed number, in the report's order. The columns are `variant`, `our_variant`, `config`, `case`,
        `unit`, `published`, `hardware`, `n`, `our_config`, `our_scope`, `our_cache`, `note`, and

        - `ours`, `ours_low`, `ours_high`: our figure and its 95 % interval; null where we have none;
        - `why`: the reason that we have no figure; empty where we have one;
        - `published_at_50`, `ours_at_50`: for rates only, the same with 50 operations for each point instead of 25.
    """
    rows = figures[(figures["table"] == source.table) & (figures["quantity"] == source.quantity)]
    rows = rows.rename(columns={"value": "published"}).reset_index(drop=True)
    every = cells(data)
    is_named = (
        every["workload"].isin(rows["workload"]) & every["variant"].isin(rows["our_variant"]) & every["case"].isin(rows["case"])
    )
    measured = every[is_named & (every["n"] > 0) & (every["status"] == "ok")]
    fastest = best_config(measured)
    ours = pd.DataFrame([_ours(data, measured, fastest, row, cache) for row in rows.to_dict("records")], columns=list(_NOTHING))
    keep = ["variant", "our_variant", "config", "case", "unit", "published", "hardware", "note"]
    frame = pd.concat([rows[keep], ours.astype({"ours": float, "ours_low": float, "ours_high": float})], axis=1)
    frame["why"] = [_why(data, source, row) for row in frame.to_dict("records")]
    if source.quantity == "rate":
        scale = OUR_OPERATIONS / THEIR_OPERATIONS
        frame = frame.assign(published_at_50=frame["published"] * scale, ours_at_50=frame["ours"] * scale)
    return frame


def _why(data: RunData, source: Source, row: Mapping[Any, Any]) -> str:
    """The reason that we have no figure for a printed number; empty where we have one."""
    if pd.notna(row["ours"]):
        return ""
    if source.quantity in ELSEWHERE:
        return f"on the page {ELSEWHERE[source.quantity].partition(',')[0]}"
    if not row["our_variant"]:
        return "nothing of ours does the same"
    if not data.on_gpu and row["our_variant"] != SEQUENTIAL:
        return "this run had no GPU"
    return "not measured in this run"


def _ours(
    data: RunData, measured: pd.DataFrame, fastest: pd.DataFrame, row: Mapping[Any, Any], cache: str
) -> Mapping[str, Any]:
    """Our figure for one printed number, from our cells and those of the fastest configs."""
    if row["quantity"] == "bank_conflicts":
        return _conflicts(row)
    cell = _cell(measured, fastest, row, cache)
    if cell is None:
        return _NOTHING
    values = _speedup(data, cell) if row["quantity"] == "speedup" else _in_unit(cell, row["quantity"], row["unit"])
    if values is None:
        return _NOTHING
    return {
        **values.columns("ours"),
        "n": int(cell["n"]),
        "our_config": cell["config"],
        "our_scope": cell["scope"],
        "our_cache": cell["cache"],
    }


def _cell(measured: pd.DataFrame, fastest: pd.DataFrame, row: Mapping[Any, Any], cache: str) -> "pd.Series[Any] | None":
    """Our cell for the variant, case and scope of a row: in the row's config where it names one, else in the fastest config."""
    # Host variants are timed as a whole operation, whichever part of the GPU's work the report compares them with.
    scope = "operation" if row["our_variant"] == SEQUENTIAL else row["scope"]
    wanted = {"workload": row["workload"], "variant": row["our_variant"], "case": row["case"]}
    same = _with(measured, wanted)
    # A variant without configs, such as the host's, corresponds to every config of the report.
    if row["config"] and (same["config"] != "").any():
        same = _with(same, {"config": row["config"], "scope": scope})
    else:
        same = _with(fastest, wanted | {"scope": scope})
    preferred = same[same["cache"] == cache]
    cells = preferred if len(preferred) else same
    return None if cells.empty else cells.iloc[0]


def _with(frame: pd.DataFrame, values: Mapping[str, str]) -> pd.DataFrame:
    """The rows with these values."""
    chosen = np.ones(len(frame), dtype=bool)
    for column, value in values.items():
        chosen &= (frame[column] == value).to_numpy(dtype=bool)
    return frame[chosen]


def _in_unit(cell: "pd.Series[Any]", quantity: str, unit: str) -> Estimate | None:
    """Median and interval of a cell in the report's unit and way of counting; None for a quantity that cells do not have."""
    if quantity == "time":
        return Estimate.of(cell, "median_ns").times(_PER_NANOSECOND[unit])
    if quantity not in ("bandwidth", "rate"):
        return None
    name, scale = ("gb_per_s", 1.0) if quantity == "bandwidth" else ("gflop_per_s", THEIR_OPERATIONS / OUR_OPERATIONS)
    return Estimate.of(cell, name).times(scale)


def _speedup(data: RunData, cell: "pd.Series[Any]") -> Estimate | None:
    """The time of the sequential host code over the time of the cell. The two are not measured in the same rounds."""
    on_host = data.rounds(cell["workload"], cell["case"], "operation", "hot")
    host = find_entry(on_host, SEQUENTIAL, "")
    if host is None:
        return None
    own = data.rounds(cell["workload"], cell["case"], cell["scope"], cell["cache"])
    entry = Entry(cell["variant"], cell["config"], int(cell["gpus"]), 0)
    ratio = paired_ratio(on_host[host], own[entry], independent=True)
    return ratio.estimate


def _conflicts(row: Mapping[Any, Any]) -> Mapping[str, Any]:
    """The computed bank conflicts of the tile that the report names. They have no interval."""
    tile = [int(extent) for extent in row["config"].removeprefix("tile=").split("x")]
    perm = [int(axis) for axis in row["case"].rsplit("perm=", 1)[1]]
    value = bank_conflicts(tile, perm)
    return {**_NOTHING, **Estimate(value, value, value).columns("ours"), "our_config": row["config"]}
