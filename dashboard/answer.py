"""The answer of a run as text: the best variant of each workload, its percent of floor, and its speedup over the best peer."""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pandas as pd

from warpladder.dashboard import by_size
from warpladder.dashboard.core import run_data
from warpladder.dashboard.core.cell import Estimate
from warpladder.dashboard.core.compare import word
from warpladder.dashboard.core.numbers import (
    ITSELF,
    NOTHING,
    format_duration,
    format_ends,
    format_estimate,
    format_half_width,
    format_percent,
    format_ratio,
)
from warpladder.dashboard.core.overview import overview
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.formats import ANSWERS, Answer
from warpladder.dashboard.ui.tables import csv, markdown_table, plain_lines, plain_table
from warpladder.data import store

_FIGURES: Final = [
    "workload", "precision", "case", "scope", "cache", "best", "best_config", "tied_with", "best_ns", "best_ns_low", "best_ns_high",
    "percent_of_floor", "baseline", "baseline_config", "speedup", "speedup_low", "speedup_high", "speedup_verdict",
    "peer", "peer_config", "over_peer", "over_peer_low", "over_peer_high", "over_peer_verdict", "on",
]  # fmt: skip
#: The most rows that a recording prints.
_MOST_ROWS: Final = 16
#: The most doubts below them, on a narrow terminal.
_MOST_DOUBTS: Final = 3
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
    return plain_lines(markdown_table(HEADINGS, texts(rows)) if form == "markdown" else table(rows))


def texts(rows: pd.DataFrame) -> list[tuple[str, ...]]:
    """The rows of `figures` as texts under `HEADINGS`."""
    return [_line(row) for row in rows.to_dict("records")]


def _line(row: Mapping[Any, Any]) -> tuple[str, ...]:
    best_ns = Estimate.of(row, "best_ns")
    time = format_estimate(best_ns, format_duration) if best_ns.known else NOTHING
    return (
        ", ".join(filter(None, (str(row["workload"]), row["on"]))),
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
    if row["best"] == row["baseline"] and isinstance(row["best"], str):
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


def terminal(data: RunData, width: int, *, sizes: bool, every: bool) -> str:
    """The answer as text that ends with a line feed, as a recording prints it.

    Args:
        width: columns of the terminal; 0 where the lines may have any length.
        sizes: whether it starts with the times of every variant at every size.
        every: whether no row is left out.
    """
    rows = figures(data)
    lines = by_size.lines(data, width) if sizes else []
    shown = rows if every else rows.head(_MOST_ROWS)
    answered = table(shown, width, every=every)
    lines += ["", *answered] if lines and answered else answered
    if more := len(rows) - len(shown):
        lines.append(f"and {more} more rows: warpladder summary --all")
    return plain_lines(lines)


def table(rows: pd.DataFrame, width: int = 0, *, every: bool = True) -> list[str]:
    """The lines of the table of `figures`, without columns that have no figure.

    A table wider than the terminal has the variants without what they are compared with, and cells of several lines.

    Args:
        width: columns of the terminal; 0 where the lines may have any length.
        every: whether all doubts stand below a narrow table.
    """
    lines = plain_table(*_with_figures(HEADINGS, texts(rows)))
    if not width or max(map(len, lines), default=0) <= width:
        return lines
    found = rows.to_dict("records")
    told = (f"{row['workload']}: {doubt}" for row in found for doubt in str(row["distrust"]).split("; ") if doubt)
    doubts = list(dict.fromkeys(told))
    if not every and len(doubts) > _MOST_DOUBTS:
        doubts[_MOST_DOUBTS - 1 :] = [f"and {len(doubts) - _MOST_DOUBTS + 1} more doubts: warpladder summary --all"]
    texts_of = [_narrow(row) for row in found]
    for left_out in ((), *_LEFT_OUT):
        kept = [place for place, heading in enumerate(_NARROW) if heading not in left_out]
        narrow = _with_figures([_NARROW[place] for place in kept], [[row[place] for place in kept] for row in texts_of])
        if max(map(len, plain_table(*narrow))) <= width:
            break
    return [*plain_table(*narrow, width), *doubts]


_NARROW: Final = ("workload", "case", "best", "time", "", "floor", "baseline", "best peer")
#: Headings of the columns that a terminal has no room for, the first choice first.
_LEFT_OUT: Final = (("",), ("", "floor"), ("", "floor", "case"))


def _narrow(row: Mapping[Any, Any]) -> tuple[str, ...]:
    """The texts under `_NARROW`."""
    best_ns = Estimate.of(row, "best_ns")
    workload = str(row["workload"]) if row["precision"] == "fp32" else f"{row['workload']} {word(str(row['precision']))}"
    ratios = [
        {"unknown": "unknown", "tied": "tied"}.get(row[f"{name}_verdict"], format_ratio(row[name]))
        for name in ("speedup", "over_peer")
    ]
    if isinstance(row["best"], str) and (row["best"], row["best_config"]) == (row["baseline"], row["baseline_config"]):
        ratios[0] = "itself"
    best = NOTHING if pd.isna(row["best"]) else _variant(row, "best")
    best += " (tied)" if isinstance(row["tied_with"], str) else ""
    width = format_half_width(best_ns.value, best_ns.low, best_ns.high) if best_ns.known else ""
    return (
        workload,
        str(row["case"]),
        best,
        format_duration(best_ns.value),
        width,
        format_percent(row["percent_of_floor"]),
        *ratios,
    )


def _with_figures(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> tuple[list[str], list[list[str]]]:
    """A table without the columns that have no figure in any row."""
    kept = [place for place in range(len(headings)) if any(row[place] not in ("", NOTHING) for row in rows)]
    return [headings[place] for place in kept], [[row[place] for place in kept] for row in rows]


def main(path: str, form: str, width: str = "0", *options: str) -> None:
    """Print the answer of the run in a folder. A recording calls this at its end.

    Args:
        width: see `terminal`.
        options: of `sizes` and `every`; see `terminal`.
    """
    assert form in ANSWERS
    data = run_data.load(store.open_run(Path(path)))
    if form == "table":
        print(terminal(data, int(width), sizes="sizes" in options, every="every" in options), end="")
    else:
        print(render(figures(data), form), end="")


if __name__ == "__main__":
    main(*sys.argv[1:])
