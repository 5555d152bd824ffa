"""`report.html`: everything about a run in one file, which asks nothing of the network."""

import html
import json
from collections.abc import Sequence
from typing import Any, Final

import pandas as pd
from plotly.offline import get_plotlyjs

from warpladder.dashboard.core.estimate import Estimate
from warpladder.dashboard.core.precision import word
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.ui.document import page, section, table, table_of_rows, text_of
from warpladder.dashboard.ui.numbers import (
    ITSELF,
    format_duration,
    format_error,
    format_estimate,
    format_percent,
    format_ratio,
)
from warpladder.dashboard.ui.template import Chart
from warpladder.dashboard.views.trust import query as trust

_FACTS: Final = (
    ("device_name", "GPU"), ("device_count", "GPUs"), ("compute_capability", "compute capability"), ("driver_version", "driver"),
    ("cuda_version", "CUDA"), ("cpu_name", "processor"), ("os", "system"), ("python_version", "Python"), ("collector", "collector"),
    ("started_at", "started (UTC)"), ("git_commit", "commit"), ("command", "command"), ("packages", "packages"),
)  # fmt: skip
#: Those about the program that wrote the run, which of an import is not the one that was profiled.
_OF_COLLECTOR: Final = ("python_version", "git_commit", "packages")


def report(data: RunData, summary: pd.DataFrame, charts: Sequence[Chart]) -> str:
    """The report of a run as one HTML page.

    Args:
        summary: `views.overview.query.overview`.
        charts: those to show, in order.
    """
    title = f"{data.info['label'] or data.info['run_id']} · {data.device}"
    contents = "".join(f'<li><a href="#{chart.name}">{html.escape(chart.title)}</a></li>' for chart in charts)
    body = [
        f"<h1>{html.escape(title)}</h1>", '<p class="note">Recorded with Warpladder. Every median stands with its interval and n.</p>',
        _facts(data), "<h2>Overview</h2>", _overview(summary), "<h2>Ceilings</h2>",
        '<p class="note">What this device was measured to do, in the same run.</p>', table(data.ceilings),
        "<h2>Checks</h2>", _checks(data), f"<h2>Charts</h2><nav><ol>{contents}</ol></nav>", *map(section, charts),
    ]  # fmt: skip
    return page(title, "\n".join(body), get_plotlyjs())


def _facts(data: RunData) -> str:
    info = {
        **data.info, "started_at": f"{data.info['started_at']:%Y-%m-%d %H:%M:%S}",
        "packages": ", ".join(f"{name} {version}" for name, version in json.loads(data.info["packages"] or "{}").items()),
    }  # fmt: skip
    importer = "importer's " if info["kind"] == "import" else ""
    pairs = ((f"{importer if name in _OF_COLLECTOR else ''}{label}", text_of(info[name])) for name, label in _FACTS)
    return "<dl>" + "".join(f"<dt>{label}</dt><dd>{html.escape(value)}</dd>" for label, value in pairs if value) + "</dl>"


def _overview(summary: pd.DataFrame) -> str:
    headings = (
        "workload",
        "precision",
        "error against float64",
        "case",
        "baseline",
        "best",
        "median",
        "over the baseline",
        "% of floor",
        "over the best peer",
        "n",
        "distrusted",
    )
    rows = [
        (
            row["workload"], word(row["precision"]), format_error(row["error"]), f"{row['case']}, {row['cases']} cases" if row["cases"] > 1 else row["case"],
            f"{_who(row['baseline'], row['baseline_config'])} ({word(row['baseline_precision'])})" if pd.notna(row["baseline"]) else "", _who(row["best"], row["best_config"]), _with_ends(row, "best_ns", format_duration),
            ITSELF if (row["best"], row["best_config"]) == (row["baseline"], row["baseline_config"]) else _with_ends(row, "speedup", format_ratio), _with_ends(row, "percent_of_floor", format_percent),
            "" if pd.isna(row["peer"]) else f"{_with_ends(row, 'over_peer', format_ratio)} {row['peer']} ({word(row['peer_precision'])})", row["n"], "; ".join(row["badges"]),
        )
        for row in summary.to_dict("records")
    ]  # fmt: skip
    return f'<div class="wrap">{table_of_rows(headings, rows)}</div>' if rows else "<p>No variant was timed in this run.</p>"


def _checks(data: RunData) -> str:
    parts = ("What was distrusted", trust.findings(data)), ("Verdicts", trust.verdicts(data)), ("Not ok", trust.failures(data))
    return "".join(
        f"<details{' open' if len(frame) <= 10 else ''}><summary>{label}, {len(frame)} rows</summary>"
        f'<div class="wrap">{table(frame)}</div></details>'
        for label, frame in parts
    )


def _with_ends(row: dict[Any, Any], column: str, write: Any) -> str:
    if pd.isna(row[column]):
        return "–"
    return format_estimate(Estimate.of(row, column), write)


def _who(variant: Any, config: Any) -> str:
    return "" if pd.isna(variant) else f"{variant} [{config}]" if config else str(variant)
