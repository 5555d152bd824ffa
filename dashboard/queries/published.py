"""What the reports printed, with our figure of the same work beside it."""

from dataclasses import dataclass
from typing import Any, Final

import pandas as pd

from dashboard.queries import extras
from dashboard.queries.cells import best_config, cells
from dashboard.queries.run_data import RunData

#: Operations a point that the convolution report counts, and that we count: a multiply and an add for each of 25 elements.
THEIR_OPERATIONS: Final = 25
OUR_OPERATIONS: Final = 50
_PER_NANOSECOND: Final = {"ms": 1e-6, "s": 1e-9}
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
        table = self.table if self.table.startswith("section") else f"table {self.table}"
        return f"{table.capitalize()}: {self.quantity.replace('_', ' ')}"


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
        `note`. Rates have besides `published_at_50` and `ours_at_50`, which count 50 operations a point where `published` and
        `ours` count 25.
    """
    rows = figures[(figures["table"] == source.table) & (figures["quantity"] == source.quantity)]
    rows = rows.rename(columns={"value": "published"}).reset_index(drop=True)
    finders = {"speedup": _speedups, "bank_conflicts": _conflicts}
    find = finders.get(source.quantity, _timed)
    found = pd.DataFrame(find(data, rows, cache), columns=list(_NOTHING))
    keep = ["variant", "our_variant", "config", "case", "unit", "published", "hardware", "note"]
    frame = pd.concat([rows[keep], found.astype({"ours": float, "ours_low": float, "ours_high": float})], axis=1)
    if source.quantity == "rate":
        scale = OUR_OPERATIONS / THEIR_OPERATIONS
        frame = frame.assign(published_at_50=frame["published"] * scale, ours_at_50=frame["ours"] * scale)
    return frame


def _timed(data: RunData, rows: pd.DataFrame, cache: str) -> list[dict[str, Any]]:
    """Times and rates, from `cells`; quantities that are neither have nothing of ours."""
    measured = cells(data)
    measured = measured[(measured["n"] > 0) & (measured["status"] == "ok")]
    return [_timed_cell(measured, row, cache) for row in rows.to_dict("records")]


def _timed_cell(measured: pd.DataFrame, row: dict[str, Any], cache: str) -> dict[str, Any]:
    same = measured[(measured["workload"] == row["workload"]) & (measured["variant"] == row["our_variant"])]
    same = same[same["case"] == row["case"]]
    if row["config"]:
        same = same[same["config"] == row["config"]]
    # The host is timed as a whole operation, whatever part of the GPU's work the report compares it with.
    scopes = [row["scope"], "operation"] if row["variant"] in ("host", "serial") else [row["scope"]]
    same = _in_view(best_config(same), scopes, cache)
    if same.empty:
        return dict(_NOTHING)
    cell = same.iloc[0]
    values = _in_unit(cell, row["quantity"], row["unit"])
    if values is None:
        return dict(_NOTHING)
    return _found(values, cell)


def _in_unit(cell: "pd.Series[Any]", quantity: str, unit: str) -> tuple[float, float, float] | None:
    """Median and interval of a cell in the report's unit and way of counting."""
    suffixes = ("", "_low", "_high")
    if quantity == "time":
        scale = _PER_NANOSECOND[unit]
        return cell["median_ns"] * scale, cell["low_ns"] * scale, cell["high_ns"] * scale
    if quantity == "bandwidth":
        return tuple(cell[f"gb_per_s{suffix}"] for suffix in suffixes)  # type: ignore[return-value]
    if quantity == "rate":
        scale = THEIR_OPERATIONS / OUR_OPERATIONS
        return tuple(cell[f"gflop_per_s{suffix}"] * scale for suffix in suffixes)  # type: ignore[return-value]
    return None


def _speedups(data: RunData, rows: pd.DataFrame, cache: str) -> list[dict[str, Any]]:
    """Speedups over the sequential host code, from `extras.with_and_without_copies`."""
    every = {workload: extras.with_and_without_copies(data, workload) for workload in rows["workload"].unique()}
    answers = []
    for row in rows.to_dict("records"):
        same = every[row["workload"]]
        same = same[(same["variant"] == row["our_variant"]) & (same["case"] == row["case"])]
        if row["config"]:
            same = same[same["config"] == row["config"]]
        same = _in_view(same.sort_values("speedup", ascending=False), [row["scope"]], cache)
        if same.empty:
            answers.append(dict(_NOTHING))
        else:
            cell = same.iloc[0]
            answers.append(_found((cell["speedup"], cell["low"], cell["high"]), cell))
    return answers


def _conflicts(data: RunData, rows: pd.DataFrame, cache: str) -> list[dict[str, Any]]:
    """Bank conflicts are computed, for the very tile that the report names; they have no interval."""
    answers = []
    for row in rows.to_dict("records"):
        tile = [int(extent) for extent in row["config"].removeprefix("tile=").split("x")]
        perm = [int(axis) for axis in row["case"].rsplit("perm=", 1)[1]]
        value = extras.bank_conflicts(tile, perm)
        answers.append({**_NOTHING, "ours": value, "ours_low": value, "ours_high": value, "our_config": row["config"]})
    return answers


def _in_view(frame: pd.DataFrame, scopes: list[str], cache: str) -> pd.DataFrame:
    """The rows of the first of the scopes that there are rows of, in that cache if there are any."""
    for scope in scopes:
        found = frame[frame["scope"] == scope]
        if len(found):
            preferred = found[found["cache"] == cache]
            return preferred if len(preferred) else found
    return frame.iloc[:0]


def _found(values: tuple[float, float, float], cell: "pd.Series[Any]") -> dict[str, Any]:
    median, low, high = values
    return {
        "ours": median, "ours_low": low, "ours_high": high, "n": int(cell["n"]),
        "our_config": cell["config"], "our_scope": cell["scope"], "our_cache": cell["cache"],
    }  # fmt: skip
