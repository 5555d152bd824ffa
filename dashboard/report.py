"""`report.html`: everything about a run in one file, which asks nothing of the network."""

import html
import json
from collections.abc import Iterable, Sequence
from typing import Any, Final

import pandas as pd
import plotly.io as pio
from plotly.offline import get_plotlyjs

from dashboard.core.precision import word
from dashboard.core.run_data import RunData
from dashboard.ui.numbers import (
    ITSELF,
    format_duration,
    format_error,
    format_interval,
    format_percent,
    format_ratio,
    significant,
)
from dashboard.ui.template import Chart
from dashboard.views.trust import query as trust

CONFIG: Final = {"displaylogo": False, "responsive": True, "modeBarButtonsToRemove": ["select2d", "lasso2d", "autoScale2d"]}
#: The browser itself refuses what a name out of a run might ask for.
_POLICY: Final = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; font-src data:"
)
_FACTS: Final = (
    ("device_name", "GPU"), ("device_count", "GPUs"), ("compute_capability", "compute capability"), ("driver_version", "driver"),
    ("cuda_version", "CUDA"), ("cpu_name", "processor"), ("os", "system"), ("python_version", "Python"), ("collector", "collector"),
    ("started_at", "started (UTC)"), ("git_commit", "commit"), ("command", "command"), ("packages", "packages"),
)  # fmt: skip
#: Those about the program that wrote the run, which of an import is not the one that was profiled.
_OF_COLLECTOR: Final = ("python_version", "git_commit", "packages")
_STYLE: Final = """
:root { color-scheme: light; }
body { font: 15px/1.5 Inter, system-ui, -apple-system, 'Segoe UI', Roboto, Arial, sans-serif; color: #1f2328; background: #fff;
  max-width: 1200px; margin: 0 auto; padding: 24px; }
h1 { font-size: 26px; margin: 0; } h2 { font-size: 20px; margin: 40px 0 8px; } h3 { font-size: 16px; margin: 36px 0 4px; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 2px 16px; } dt, .note, summary { color: #626973; }
dd { margin: 0; overflow-wrap: anywhere; } .note { font-size: 13px; margin: 2px 0 8px; } summary { cursor: pointer; font-size: 13px; }
.wrap td, .wrap th { white-space: normal; vertical-align: top; }
.wrap td:last-child { min-width: 180px; } table { border-collapse: collapse; font-size: 13px; font-variant-numeric: tabular-nums; } .scroll { overflow: auto; max-height: 420px; }
th, td { padding: 4px 10px; text-align: left; border-bottom: 1px solid #e6e8ec; white-space: nowrap; }
thead th { position: sticky; top: 0; background: #fff; color: #626973; font-weight: 600; }
nav ol { columns: 2; font-size: 13px; } a { color: #0b6aa8; text-decoration: none; } a:hover { text-decoration: underline; }
"""
#: A chart is drawn when it comes into sight, or before printing: a hundred at once would take seconds.
_SCRIPT: Final = """
const draw = frame => { const waiting = frame.querySelector('template');
  if (waiting) { frame.append(document.importNode(waiting.content, true)); waiting.remove(); } };
const watch = new IntersectionObserver(seen => seen.forEach(entry => { if (entry.isIntersecting) draw(entry.target); }),
  { rootMargin: '600px' });
const frames = document.querySelectorAll('.chart');
frames.forEach(frame => watch.observe(frame));
addEventListener('beforeprint', () => frames.forEach(draw));
"""


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
        '<p class="note">What this device was measured to do, in the same run.</p>', _table(data.ceilings),
        "<h2>Checks</h2>", _checks(data), f"<h2>Charts</h2><nav><ol>{contents}</ol></nav>", *map(_figure, charts),
    ]  # fmt: skip
    return page(title, "\n".join(body), get_plotlyjs())


def page(title: str, body: str, plotly_js: str) -> str:
    """An HTML page that holds all it needs.

    Args:
        title: plain text.
        body: HTML; every text in it escaped already.
        plotly_js: the source of plotly.js.
    """
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n<title>{html.escape(title)}</title>\n'
        f"<style>{_STYLE}</style>\n<script>{plotly_js}</script></head>\n<body>\n{body}\n<script>{_SCRIPT}</script>\n</body></html>\n"
    )


def chart_page(chart: Chart) -> str:
    """One chart as a page of its own."""
    return page(chart.title, _figure(chart), get_plotlyjs())


def _figure(chart: Chart) -> str:
    drawing = pio.to_html(chart.figure, include_plotlyjs=False, full_html=False, config=CONFIG, div_id=f"{chart.name}-plot")
    rows = len(chart.data)
    return (
        f'<section id="{chart.name}"><h3>{html.escape(chart.title)}</h3>'
        f'<div class="chart" style="min-height:{chart.figure.layout.height}px"><template>{drawing}</template></div>'
        f'<p class="note">{html.escape(chart.note)}</p><details><summary>Data, {rows} rows</summary>{_table(chart.data)}</details></section>'
    )


def _facts(data: RunData) -> str:
    info = {
        **data.info, "started_at": f"{data.info['started_at']:%Y-%m-%d %H:%M:%S}",
        "packages": ", ".join(f"{name} {version}" for name, version in json.loads(data.info["packages"] or "{}").items()),
    }  # fmt: skip
    importer = "importer's " if info["kind"] == "import" else ""
    pairs = ((f"{importer if name in _OF_COLLECTOR else ''}{label}", _text(info[name])) for name, label in _FACTS)
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
    return f'<div class="wrap">{_rows(headings, rows)}</div>' if rows else "<p>No variant was timed in this run.</p>"


def _checks(data: RunData) -> str:
    parts = ("What was distrusted", trust.findings(data)), ("Verdicts", trust.verdicts(data)), ("Not ok", trust.failures(data))
    return "".join(
        f"<details{' open' if len(frame) <= 10 else ''}><summary>{label}, {len(frame)} rows</summary>"
        f'<div class="wrap">{_table(frame)}</div></details>'
        for label, frame in parts
    )


def _with_ends(row: dict[Any, Any], column: str, write: Any) -> str:
    if pd.isna(row[column]):
        return "–"
    return f"{write(row[column])} ({format_interval(write(row[column + '_low']), write(row[column + '_high']))})"


def _who(variant: Any, config: Any) -> str:
    return "" if pd.isna(variant) else f"{variant} [{config}]" if config else str(variant)


def _table(frame: pd.DataFrame) -> str:
    return _rows(list(frame.columns), frame.itertuples(index=False, name=None))


def _rows(headings: Iterable[str], rows: Iterable[Sequence[Any]]) -> str:
    head = "".join(f"<th>{html.escape(str(name))}</th>" for name in headings)
    lines = ("<tr>" + "".join(f"<td>{html.escape(_text(value))}</td>" for value in row) + "</tr>" for row in rows)
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{"".join(lines)}</tbody></table></div>'


def _text(value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    if pd.isna(value):
        return ""
    if isinstance(value, float):
        return f"{value:.0f}" if abs(value) >= 1000 else significant(value)
    return str(value)
