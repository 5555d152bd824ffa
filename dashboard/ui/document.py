"""Charts and tables as HTML pages that ask nothing of the network."""

import html
from collections.abc import Iterable, Sequence
from typing import Any, Final

import pandas as pd
import plotly.io as pio
from plotly.offline import get_plotlyjs

from warpladder.dashboard.ui.numbers import significant
from warpladder.dashboard.ui.template import Chart

CONFIG: Final = {"displaylogo": False, "responsive": True, "modeBarButtonsToRemove": ["select2d", "lasso2d", "autoScale2d"]}
#: The browser itself refuses what a name out of a run might ask for.
_POLICY: Final = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; font-src data:"
)
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
    return page(chart.title, section(chart), get_plotlyjs())


def section(chart: Chart) -> str:
    """A chart under its title, with its note and its data."""
    drawing = pio.to_html(chart.figure, include_plotlyjs=False, full_html=False, config=CONFIG, div_id=f"{chart.name}-plot")
    rows = len(chart.data)
    return (
        f'<section id="{chart.name}"><h3>{html.escape(chart.title)}</h3>'
        f'<div class="chart" style="min-height:{chart.figure.layout.height}px"><template>{drawing}</template></div>'
        f'<p class="note">{html.escape(chart.note)}</p><details><summary>Data, {rows} rows</summary>{table(chart.data)}</details></section>'
    )


def table(frame: pd.DataFrame) -> str:
    """A frame as a table, without its index."""
    return table_of_rows(list(frame.columns), frame.itertuples(index=False, name=None))


def table_of_rows(headings: Iterable[str], rows: Iterable[Sequence[Any]]) -> str:
    """Rows of values under their headings, every text escaped."""
    head = "".join(f"<th>{html.escape(str(name))}</th>" for name in headings)
    lines = ("<tr>" + "".join(f"<td>{html.escape(text_of(value))}</td>" for value in row) + "</tr>" for row in rows)
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{"".join(lines)}</tbody></table></div>'


def text_of(value: Any) -> str:
    """A value as a cell of a table shows it; not escaped."""
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    if pd.isna(value):
        return ""
    if isinstance(value, float):
        return f"{value:.0f}" if abs(value) >= 1000 else significant(value)
    return str(value)
