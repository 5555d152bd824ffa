"""What the reports printed, with our figure of the same work beside it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import pandas as pd

from warpladder.dashboard.core.cells import best_config, cells
from warpladder.dashboard.core.compare import find_copy
from warpladder.dashboard.core.estimate import Estimate
from warpladder.dashboard.core.intervals import paired_ratio
from warpladder.dashboard.core.run_data import Copy, RunData
from warpladder.dashboard.reports.conflicts.query import bank_conflicts

#: Operations a point that the convolution report counts, and that we count: a multiply and an add for each of 25 elements.
THEIR_OPERATIONS: Final = 25
OUR_OPERATIONS: Final = 50
#: What another page shows of ours, and where.
ELSEWHERE: Final = {
    "time_change": "Details, under Block size", "time_change_per_thread": "Details, under Block size",
    "overhead": "Details, under Overheads", "overhead_fraction": "Details, under Overheads", "bytes": "Transfers, of a run with a trace",
    "gain": "Ladder",
}  # fmt: skip
#: The reports' sequential code, which their speedups are counted from.
OUR_HOST: Final = "numba_serial"
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
    """A column of figures of a report: one quantity of one table."""

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
    """The tables of one report, in its order, each quantity apart; those of which we measure something first."""
    ours = figures.assign(has_ours=figures["our_variant"] != "")
    grouped = ours.groupby(["table", "quantity"], sort=False)["has_ours"].any().sort_values(ascending=False, kind="stable")
    return tuple(Source(str(table), str(quantity)) for table, quantity in grouped.index)


def beside_ours(data: RunData, figures: pd.DataFrame, source: Source, cache: str = "hot") -> pd.DataFrame:
    """One table of a report with our figure of the same variant, case and scope, in the report's unit and its way of counting.

    Args:
        figures: of one report, as `data.figures.read` gives them.
        cache: state of L2 of our samples; the other where a cell has none in it. The reports time run after run: `hot`.

    Returns:
        A row a printed number, in the report's order: `variant`, `our_variant`, `config`, `case`, `unit`, `published`, `hardware`,
        `ours`, `ours_low`, `ours_high` (95 % interval; null where we have nothing), `n`, `our_config`, `our_scope`, `our_cache`,
        `why` (why we have nothing; empty where we have), `note`. Rates have besides `published_at_50` and `ours_at_50`, which count 50 operations a point where `published` and
        `ours` count 25.
    """
    rows = figures[(figures["table"] == source.table) & (figures["quantity"] == source.quantity)]
    rows = rows.rename(columns={"value": "published"}).reset_index(drop=True)
    every = cells(data)
    measured = every[(every["n"] > 0) & (every["status"] == "ok")]
    ours = pd.DataFrame([_ours(data, measured, row, cache) for row in rows.to_dict("records")], columns=list(_NOTHING))
    keep = ["variant", "our_variant", "config", "case", "unit", "published", "hardware", "note"]
    frame = pd.concat([rows[keep], ours.astype({"ours": float, "ours_low": float, "ours_high": float})], axis=1)
    frame["why"] = [_why(data, source, row) for row in frame.to_dict("records")]
    if source.quantity == "rate":
        scale = OUR_OPERATIONS / THEIR_OPERATIONS
        frame = frame.assign(published_at_50=frame["published"] * scale, ours_at_50=frame["ours"] * scale)
    return frame


def _why(data: RunData, source: Source, row: Mapping[Any, Any]) -> str:
    """Why there is no figure of ours beside a printed one; empty where there is one."""
    if pd.notna(row["ours"]):
        return ""
    if source.quantity in ELSEWHERE:
        return f"on the page {ELSEWHERE[source.quantity].partition(',')[0]}"
    if not row["our_variant"]:
        return "nothing of ours does the same"
    if not data.on_gpu and row["our_variant"] != OUR_HOST:
        return "this run had no GPU"
    return "not measured in this run"


def _ours(data: RunData, measured: pd.DataFrame, row: Mapping[Any, Any], cache: str) -> Mapping[str, Any]:
    """Our figure of one printed number."""
    if row["quantity"] == "bank_conflicts":
        return _conflicts(row)
    cell = _cell(measured, row, cache)
    if cell is None:
        return _NOTHING
    values = _speedup(data, cell) if row["quantity"] == "speedup" else _in_unit(cell, row["quantity"], row["unit"])
    if values is None:
        return _NOTHING
    return {
        **values.columns("ours"), "n": int(cell["n"]),
        "our_config": cell["config"], "our_scope": cell["scope"], "our_cache": cell["cache"],
    }  # fmt: skip


def _cell(measured: pd.DataFrame, row: Mapping[Any, Any], cache: str) -> "pd.Series[Any] | None":
    """Our fastest config of the row's variant and case, in the row's config where it names one, and in its scope."""
    same = measured[(measured["workload"] == row["workload"]) & (measured["variant"] == row["our_variant"])]
    same = same[same["case"] == row["case"]]
    # A variant that has no config, such as the host's, is the same beside every config of the report.
    if row["config"] and (same["config"] != "").any():
        same = same[same["config"] == row["config"]]
    # The host is timed as a whole operation, whatever part of the GPU's work the report compares it with.
    same = same[same["scope"] == ("operation" if row["our_variant"] == OUR_HOST else row["scope"])]
    same = best_config(same)
    preferred = same[same["cache"] == cache]
    found = preferred if len(preferred) else same
    return None if found.empty else found.iloc[0]


def _in_unit(cell: "pd.Series[Any]", quantity: str, unit: str) -> Estimate | None:
    """Median and interval of a cell in the report's unit and way of counting; None for what a cell does not tell."""
    if quantity == "time":
        return Estimate.median_ns(cell).times(_PER_NANOSECOND[unit])
    if quantity not in ("bandwidth", "rate"):
        return None
    name, scale = ("gb_per_s", 1.0) if quantity == "bandwidth" else ("gflop_per_s", THEIR_OPERATIONS / OUR_OPERATIONS)
    return Estimate.of(cell, name).times(scale)


def _speedup(data: RunData, cell: "pd.Series[Any]") -> Estimate | None:
    """Time of the sequential host code over that of the cell; the two are not measured in the same rounds."""
    on_host = data.rounds(cell["workload"], cell["case"], "operation", "hot")
    host = find_copy(on_host, OUR_HOST, "")
    if host is None:
        return None
    own = data.rounds(cell["workload"], cell["case"], cell["scope"], cell["cache"])
    copy = Copy(cell["variant"], cell["config"], int(cell["gpus"]), 0)
    ratio = paired_ratio(on_host[host], own[copy], independent=True)
    return ratio.estimate


def _conflicts(row: Mapping[Any, Any]) -> Mapping[str, Any]:
    """Bank conflicts are computed, for the very tile that the report names; they have no interval."""
    tile = [int(extent) for extent in row["config"].removeprefix("tile=").split("x")]
    perm = [int(axis) for axis in row["case"].rsplit("perm=", 1)[1]]
    value = bank_conflicts(tile, perm)
    return {**_NOTHING, **Estimate(value, value, value).columns("ours"), "our_config": row["config"]}
