"""Charts and tables as HTML pages that make no request."""

import base64
import gzip
import html
import json
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, Final

import pandas as pd
import plotly.io as pio
from plotly.offline import get_plotlyjs

from warpladder.dashboard.core.numbers import significant
from warpladder.dashboard.ui import template
from warpladder.dashboard.ui.template import Chart


def config(*without: str, responsive: bool) -> dict[str, Any]:
    """How Plotly shows a chart: without the button that sends its data to a service of Plotly.

    Args:
        without: further buttons that it does not have.
    """
    removed = ["sendChartToCloud", "select2d", "lasso2d", "autoScale2d", *without]
    return {"displaylogo": False, "showSendToCloud": False, "responsive": responsive, "modeBarButtonsToRemove": removed}


CONFIG: Final = config(responsive=True)
#: With this policy the browser refuses any request that a name from a run could cause.
_POLICY: Final = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; font-src data:"
)
_STYLE: Final = """
:root { color-scheme: light; }
body { font: 15px/1.5 'Warpladder Sans', Inter, system-ui, -apple-system, 'Segoe UI', Roboto, Arial, sans-serif; color: #1f2328; background: #fff;
  max-width: 1200px; margin: 0 auto; padding: 24px; }
h1 { font-size: 26px; margin: 0; } h2 { font-size: 20px; margin: 40px 0 8px; } h3 { font-size: 16px; margin: 36px 0 4px; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 2px 16px; } dt, .note, summary { color: #626973; }
dd { margin: 0; overflow-wrap: anywhere; } .note { font-size: 13px; margin: 2px 0 8px; }
summary { cursor: pointer; font-size: 13px; }
.wrap td, .wrap th { white-space: pre-line; vertical-align: top; }
.wrap td:last-child { min-width: 180px; }
.answer td:nth-child(n+5):nth-child(-n+6) { white-space: nowrap; } .scroll { overflow: auto; max-height: 420px; }
table { border-collapse: collapse; font-size: 13px; font-variant-numeric: tabular-nums; }
th, td { padding: 4px 10px; text-align: left; border-bottom: 1px solid #e6e8ec; white-space: nowrap; }
thead th { position: sticky; top: 0; background: #fff; color: #626973; font-weight: 600; }
nav ol { columns: 2; font-size: 13px; } a { color: #0b6aa8; text-decoration: none; } a:hover { text-decoration: underline; }
"""
#: plotly.js and the figures are the most of a page, and are packed to a third. A chart is drawn when it comes into sight, or
#: before printing, because a hundred at once would take seconds.
_SCRIPT: Final = """
const unpack = async name => {
  const bytes = Uint8Array.from(atob(document.getElementById(name).textContent), letter => letter.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'))).text();
};
const frames = document.querySelectorAll('.chart');
const fail = error => frames.forEach(frame => {
  frame.textContent = `This browser cannot draw the charts (${error.message}). Open the page in one of 2023 or later.`;
});
const start = async () => {
  const [plotly, texts] = await Promise.all([unpack('plotly'), unpack('figures')]);
  const script = document.createElement('script');
  script.textContent = plotly;
  document.head.append(script);
  const figures = JSON.parse(texts);
  const draw = frame => {
    const figure = figures[frame.id];
    if (!figure) return;
    delete figures[frame.id];
    Plotly.newPlot(frame, figure.data, figure.layout, CONFIG);
  };
  const watch = new IntersectionObserver(seen => seen.forEach(entry => { if (entry.isIntersecting) draw(entry.target); }),
    { rootMargin: '600px' });
  frames.forEach(frame => watch.observe(frame));
  addEventListener('beforeprint', () => frames.forEach(draw));
};
start().catch(fail);
"""


def page(title: str, body: str, charts: Iterable[Chart]) -> str:
    """A self-contained HTML page.

    Args:
        title: plain text.
        body: HTML with escaped texts.
        charts: those that have a `section` in the body.
    """
    figures = ",".join(f"{json.dumps(_place(chart))}:{pio.to_json(chart.figure, validate=False)}" for chart in charts)
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n<title>{html.escape(title)}</title>\n'
        f"<style>{template.faces()}{_STYLE}</style></head>\n<body>\n{body}\n"
        f'<script type="text/plain" id="plotly">{_packed_plotly()}</script>\n'
        f'<script type="text/plain" id="figures">{_packed(f"{{{figures}}}")}</script>\n'
        f"<script>const CONFIG = {json.dumps(CONFIG)};{_SCRIPT}</script>\n</body></html>\n"
    )


@cache
def _packed_plotly() -> str:
    return _packed(get_plotlyjs())


def _packed(text: str) -> str:
    """Text for `unpack`: gzip in base64. Equal texts are packed equally."""
    return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()


def _place(chart: Chart) -> str:
    return f"{chart.name}-plot"


def chart_page(chart: Chart) -> str:
    return page(chart.title, section(chart), [chart])


def section(chart: Chart) -> str:
    """A chart under its title, with its note and its data."""
    return (
        f'<section id="{chart.name}"><h3>{html.escape(chart.title)}</h3>'
        f'<div class="chart" id="{_place(chart)}" style="min-height:{chart.figure.layout.height}px"></div>'
        f'<p class="note">{html.escape(chart.note)}</p>'
        f"<details><summary>Data, {len(chart.data)} rows</summary>{table(chart.data)}</details></section>"
    )


def table(frame: pd.DataFrame) -> str:
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
