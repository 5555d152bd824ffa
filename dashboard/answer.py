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
from warpladder.dashboard.ui.plain_table import markdown_table, plain_lines, plain_table
from warpladder.dashboard.ui.spreadsheet import csv
from warpladder.dashboard.views.overview.query import overview
from warpladder.data import store

_FIGURES: Final = [
    "workload", "precision", "case", "scope", "cache", "best", "best_config", "tied_with", "best_ns", "best_ns_low", "best_ns_high",
    "percent_of_floor", "baseline", "baseline_config", "speedup", "speedup_low", "speedup_high", "speedup_verdict",
    "peer", "peer_config", "over_peer", "over_peer_low", "over_peer_high", "over_peer_verdict",
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
    """A row for each workload and precision, as in `views.overview.query`, with `run_id` and `distrust` (text).

    `distrust` has the faster cells that were passed over, then the reasons to distrust figures of the workload.

    Args:
        root: as in `views.overview.query.overview`.
    """
    found = overview(data, root)
    rows = found[_FIGURES].copy()
    rows.insert(0, "run_id", str(data.info["run_id"]))
    told = zip(found["doubts"], found["badges"], strict=True)
    rows["distrust"] = ["; ".join(filter(None, (doubts, *badges))) for doubts, badges in told]
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
    return plain_lines(lines)


def texts(rows: pd.DataFrame) -> list[tuple[str, ...]]:
    """The rows of `figures` as texts under `HEADINGS`."""
    return [_line(row) for row in rows.to_dict("records")]


def _line(row: Mapping[Any, Any]) -> tuple[str, ...]:
    best_ns = Estimate.of(row, "best_ns")
    time = format_estimate(best_ns, format_duration) if best_ns.known else NOTHING
    return (
        str(row["workload"]),
        word(str(row["precision"])),
        str(row["case"]),
        _best(row),
        time,
        format_percent(row["percent_of_floor"]),
        _over_baseline(row),
        _over_peer(row),
        str(row["distrust"]),
    )


def _best(row: Mapping[Any, Any]) -> str:
    if pd.isna(row["best"]):
        return NOTHING
    return f"{_variant(row, 'best')}{f', tied with {tied}' if isinstance(tied := row['tied_with'], str) else ''}"


def _over_baseline(row: Mapping[Any, Any]) -> str:
    best, baseline = ((row[who], row[f"{who}_config"]) for who in ("best", "baseline"))
    if best == baseline and isinstance(best[0], str):
        return ITSELF
    return _over(row, "speedup", "baseline")


def _over_peer(row: Mapping[Any, Any]) -> str:
    return _over(row, "over_peer", "peer", with_ends=True)


def _over(row: Mapping[Any, Any], name: str, other: str, *, with_ends: bool = False) -> str:
    """A ratio, or `tied with` and the ends of the interval, and the variant that it is over."""
    verdict = row[f"{name}_verdict"]
    if verdict == "unknown":
        return "unknown"
    if pd.isna(row[name]):
        return NOTHING
    said = f"{'tied with' if verdict == 'tied' else format_ratio(row[name])} {_variant(row, other)}"
    return f"{said} ({format_ends(Estimate.of(row, name), format_ratio)})" if with_ends or verdict == "tied" else said


def _variant(row: Mapping[Any, Any], name: str) -> str:
    config = row[f"{name}_config"]
    return f"{row[name]}[{config}]" if isinstance(config, str) and config else str(row[name])


def main(path: str, form: str) -> None:
    """Print the answer of the run in a folder. A recording calls this at its end."""
    assert form in ANSWERS
    print(render(figures(run_data.load(store.open_run(Path(path)))), form), end="")


if __name__ == "__main__":
    main(*sys.argv[1:])
