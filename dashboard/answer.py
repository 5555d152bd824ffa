"""The answer of a run as text: the best variant of each workload, its percent of floor, and its speedup over the best peer."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pandas as pd

from warpladder.dashboard.core import run_data
from warpladder.dashboard.core.estimate import Estimate
from warpladder.dashboard.core.precision import word
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.formats import ANSWERS, Answer
from warpladder.dashboard.ui.numbers import (
    ITSELF,
    NOTHING,
    format_duration,
    format_ends,
    format_estimate,
    format_percent,
    format_ratio,
)
from warpladder.dashboard.ui.plain_table import markdown_table, plain_table
from warpladder.dashboard.ui.spreadsheet import csv
from warpladder.dashboard.views.overview.query import overview
from warpladder.data import store

_FIGURES: Final = [
    "workload", "precision", "case", "scope", "cache", "best", "best_config", "best_ns", "best_ns_low", "best_ns_high",
    "percent_of_floor", "baseline", "baseline_config", "speedup", "speedup_low", "speedup_high",
    "peer", "peer_config", "over_peer", "over_peer_low", "over_peer_high",
]  # fmt: skip
HEADINGS: Final = (
    "workload",
    "precision",
    "case",
    "best",
    "time",
    "of the floor",
    "over the baseline",
    "over the best peer",
    "distrust",
)


def figures(data: RunData, root: Path | None = None) -> pd.DataFrame:
    """A row for each workload and precision, as in `views.overview.query`, with `run_id`, `peer_tied` and `distrust` (text).

    `peer_tied` is true where the interval of `over_peer` holds 1, and null without a peer.

    Args:
        root: as in `views.overview.query.overview`.
    """
    found = overview(data, root)
    rows = found[_FIGURES].copy()
    rows.insert(0, "run_id", str(data.info["run_id"]))
    tied = (found["over_peer_low"] <= 1) & (found["over_peer_high"] >= 1)
    rows["peer_tied"] = tied.astype("boolean").mask(found["over_peer"].isna())
    rows["distrust"] = ["; ".join(badges) for badges in found["badges"]]
    return rows


def render(rows: pd.DataFrame, form: Answer) -> str:
    """The rows of `figures` as text that ends with a line feed; without rows empty, except in JSON."""
    if form == "json":
        return json.dumps(json.loads(rows.to_json(orient="records")), indent=1) + "\n"
    if rows.empty:
        return ""
    if form == "csv":
        return csv(rows)
    lines = (markdown_table if form == "markdown" else plain_table)(HEADINGS, texts(rows))
    return "".join(f"{line}\n" for line in lines)


def texts(rows: pd.DataFrame) -> list[tuple[str, ...]]:
    """The rows of `figures` as texts under `HEADINGS`."""
    return [_line(row) for row in rows.to_dict("records")]


def _line(row: Mapping[Any, Any]) -> tuple[str, ...]:
    time = format_estimate(Estimate.of(row, "best_ns"), format_duration)
    return (
        str(row["workload"]),
        word(str(row["precision"])),
        str(row["case"]),
        _variant(row, "best"),
        time,
        format_percent(row["percent_of_floor"]),
        _over_baseline(row),
        _over_peer(row),
        str(row["distrust"]),
    )


def _over_baseline(row: Mapping[Any, Any]) -> str:
    if pd.isna(row["speedup"]):
        return NOTHING
    best, baseline = ((row[who], row[f"{who}_config"]) for who in ("best", "baseline"))
    return ITSELF if best == baseline else f"{format_ratio(row['speedup'])} {_variant(row, 'baseline')}"


def _over_peer(row: Mapping[Any, Any]) -> str:
    if pd.isna(row["over_peer"]):
        return NOTHING
    said = "tied with" if row["peer_tied"] else f"{format_ratio(row['over_peer'])}"
    return f"{said} {_variant(row, 'peer')} ({format_ends(Estimate.of(row, 'over_peer'), format_ratio)})"


def _variant(row: Mapping[Any, Any], name: str) -> str:
    config = row[f"{name}_config"]
    return f"{row[name]}[{config}]" if isinstance(config, str) and config else str(row[name])


def main(path: str, form: str) -> None:
    """Print the answer of the run in a folder. A recording calls this at its end."""
    assert form in ANSWERS
    print(render(figures(run_data.load(store.open_run(Path(path)))), form), end="")


if __name__ == "__main__":
    main(*sys.argv[1:])
