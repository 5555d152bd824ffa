"""`report.html`: a run in one self-contained file, which makes no request."""

import html
import json
from collections.abc import Sequence
from typing import Final

import pandas as pd

from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.text import summary
from warpladder.dashboard.ui.document import page, section, table, table_of_rows, text_of
from warpladder.dashboard.ui.template import Chart
from warpladder.dashboard.views.trust import query as trust
from warpladder.data.names import found_by_size

_FACTS: Final = (
    ("device_name", "GPU"),
    ("device_count", "GPUs"),
    ("compute_capability", "compute capability"),
    ("driver_version", "driver"),
    ("cuda_version", "CUDA"),
    ("cpu_name", "processor"),
    ("os", "system"),
    ("python_version", "Python"),
    ("collector", "collector"),
    ("started_at", "started (UTC)"),
    ("git_commit", "commit"),
    ("command", "command"),
    ("packages", "packages"),
)
#: Facts about the program that wrote the run. For an import, that is not the profiled program.
_OF_COLLECTOR: Final = ("python_version", "git_commit", "packages")


def report(data: RunData, rows: pd.DataFrame, charts: Sequence[Chart]) -> str:
    """The report of a run as one HTML page.

    Args:
        rows: `summary.figures`.
        charts: those to show, in order.
    """
    title = f"{data.info['label'] or data.info['run_id']} · {data.device}"
    contents = "".join(f'<li><a href="#{chart.name}">{html.escape(chart.title)}</a></li>' for chart in charts)
    body = [
        f"<h1>{html.escape(title)}</h1>",
        "<h2>Answer</h2>",
        '<p class="note">The best variant of each workload and precision at its largest size, with the interval of its time. '
        "⚠: the checks found something, which the table names.</p>",
        _answer(rows),
        "<h2>Run</h2>",
        _facts(data),
        "<h2>Ceilings</h2>",
        *_ceilings(data),
        "<h2>Checks</h2>",
        _checks(data),
        f"<h2>Charts</h2><nav><ol>{contents}</ol></nav>",
        *map(section, charts),
    ]
    return page(title, "\n".join(body), charts)


def _ceilings(data: RunData) -> list[str]:
    """The ceilings but for the many times of memory by size, which the run has."""
    by_size = data.ceilings["name"].map(found_by_size).notna()
    left_out = f" The run has {by_size.sum()} times of memory by size besides." if by_size.any() else ""
    note = f'<p class="note">Rates and times that this device reached in the same run.{left_out}</p>'
    return [note, table(data.ceilings[~by_size])]


def _facts(data: RunData) -> str:
    info = {
        **data.info,
        "started_at": f"{data.info['started_at']:%Y-%m-%d %H:%M:%S}",
        "packages": ", ".join(f"{name} {version}" for name, version in json.loads(data.info["packages"] or "{}").items()),
    }
    importer = "importer's " if info["kind"] == "import" else ""
    pairs = ((f"{importer if name in _OF_COLLECTOR else ''}{label}", text_of(info[name])) for name, label in _FACTS)
    return "<dl>" + "".join(f"<dt>{label}</dt><dd>{html.escape(value)}</dd>" for label, value in pairs if value) + "</dl>"


def _answer(rows: pd.DataFrame) -> str:
    """The table of `warpladder summary`, whose last column marks what the checks found: once for a workload, and for a row what it passed
    over.
    """
    if rows.empty:
        return "<p>No variant was timed in this run.</p>"
    distrusted = set(rows.loc[rows["distrust"] != "", "workload"])
    lines = [
        (*texts, f"⚠ {own}" if own else "⚠" if workload in distrusted else "✓")
        for (*texts, own), workload in zip(summary.texts(rows), rows["workload"], strict=True)
    ]
    return f'<div class="wrap answer">{table_of_rows((*summary.HEADINGS[:-1], "trust"), lines)}</div>'


def _checks(data: RunData) -> str:
    parts = ("What was distrusted", trust.findings(data)), ("Statuses", trust.statuses(data)), ("Not ok", trust.failures(data))
    return "".join(
        f"<details{' open' if len(frame) <= 10 else ''}><summary>{label}, {len(frame)} rows</summary>"
        f'<div class="wrap">{table(frame)}</div></details>'
        for label, frame in parts
    )
