"""The sources and counters of one cell of a comparison, and the tables of all cells and of the recordings."""

from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, Final

import pandas as pd
import streamlit as st

from warpladder.dashboard.compare.changes import Change, Comparison
from warpladder.dashboard.core.cell import name_of
from warpladder.dashboard.core.counters import Counter
from warpladder.dashboard.core.numbers import NOTHING, format_bytes, format_duration, format_percent, format_ratio, significant
from warpladder.dashboard.core.run_index import label_of
from warpladder.dashboard.core.why import between
from warpladder.dashboard.ui import runs, source, widgets
from warpladder.dashboard.ui.template import tones
from warpladder.dashboard.ui.text import plain
from warpladder.dashboard.views.compare import chart, query
from warpladder.data import store

_CELLS: Final = "compared cells"
_TABLE_HEIGHT: Final = 420
_SOURCES: Final = """
<div class="sources" tabindex="0">
  <table><colgroup><col class="line"><col><col class="line"><col></colgroup><tbody></tbody></table>
</div>
"""
_CELL_COLUMNS: Final = {
    "verdict": "Verdict",
    "case": "Case",
    "name": "Variant",
    "ratio": st.column_config.NumberColumn("B over A", format="%.3f"),
    "ratio_low": st.column_config.NumberColumn("from", format="%.3f"),
    "ratio_high": st.column_config.NumberColumn("to", format="%.3f"),
    "noise": st.column_config.NumberColumn("Noise, %", format="%.1f"),
    "a": "A",
    "b": "B",
    "shift": st.column_config.NumberColumn("Unchanged, B over A", format="%.3f"),
    "workload": "Workload",
    "timing": "Timing",
    "source": "Source",
}


def sources(other: store.Run, run: store.Run, cell: Change, comparison: Comparison) -> None:
    """The sources of a cell's variants as they were measured, side by side."""
    of_a, of_b = cell.of_a[0], cell.variant
    before = runs.load(runs.as_recorded(other)).source_text(cell.workload, of_a)
    after = runs.load(run).source_text(cell.workload, of_b)
    differ = ", ".join(f"{workload} {variant}" for workload, variant in comparison.changed_sources)
    st.caption(plain(f"Sources that differ: {differ}." if differ else "The sources of all compared variants are equal."))
    if not before and not after:
        st.caption(plain(f"No source was recorded of {of_b}."))
        return
    if before == after:
        st.caption(plain(f"The source of {of_b} is equal in both runs."))
        source.show("both", after, "cuda" if after.lstrip().startswith(("//", "/*", "#include")) else "python", 380)
        return
    headings = f"A: {of_a}, {label_of(other)}", f"B: {of_b}, {label_of(run)}"
    rows = query.rows(before, after)
    tone = tones(widgets.theme())
    colors = {"gone": tone.bad, "come": tone.good, "muted": tone.muted, "grid": tone.grid}
    data = {"rows": [asdict(row) for row in rows], "headings": list(headings), "colors": colors}
    _side_by_side()(key="compared sources", data=data)


@st.cache_resource(show_spinner=False)
def _side_by_side() -> Any:
    """Two sources that scroll together. The browser writes each text as text, so that nothing in a source is markup."""
    script, style = (Path(__file__).with_name(name).read_text(encoding="utf-8") for name in ("sources.js", "sources.css"))
    return st.components.v2.component("warpladder_sources", html=_SOURCES, js=script, css=style)


def counters(other: store.Run, run: store.Run, cell: Change) -> None:
    """The hardware counters of a cell in both runs."""
    a, b = runs.load(runs.as_recorded(other)), runs.load(run)
    explanation = between(a, b, cell.workload, cell.case, cell.of_a, (cell.variant, cell.config), (1.0, cell.ratio.value))
    if explanation is None:
        lacking = " and ".join(label_of(each) for each, data in ((other, a), (run, b)) if data.counters.empty)
        why = f"{lacking} has no hardware counters" if lacking else "The runs have no counters of this cell"
        st.info(plain(f"{why}. Record both with --counters, or import reports of ncu."))
        return
    st.markdown(plain(explanation.sentence(f"A ({name_of(*cell.of_a)})", f"B ({cell.name})")))
    rows = [
        (each.group, each.name, _figure(each.a, each.unit), _figure(each.b, each.unit), _change(each))
        for each in explanation.work
    ]
    frame = pd.DataFrame(rows, columns=["Group", "Counter", "A", "B", "Change"])
    widgets.table(frame, height="content" if len(explanation.work) < 12 else _TABLE_HEIGHT)
    st.caption("Counters of one execution each: they have no interval.")


def every_cell(comparison: Comparison, on_click: Callable[[object], None]) -> None:
    """Every compared cell, the slowest first. A click on a row chooses its cell."""
    rows = [
        {
            "verdict": each.verdict,
            "workload": each.workload,
            "case": each.case,
            "timing": f"{each.timing.scope} {each.timing.cache}",
            "name": each.name if each.of_a == (each.variant, each.config) else f"{name_of(*each.of_a)} → {each.name}",
            "a": format_duration(each.a_ns.value),
            "b": format_duration(each.b_ns.value),
            **each.ratio.columns("ratio"),
            "shift": each.shift,
            "noise": 100 * (each.noise - 1),
            "source": "equal" if each.same_source else "differs",
        }
        for each in comparison.changes
    ]
    st.session_state[f"{_CELLS} from"] = [query.written(each) for each in comparison.changes]
    widgets.table(
        pd.DataFrame(rows),
        height=_TABLE_HEIGHT,
        key=_CELLS,
        on_select=partial(_clicked, on_click),
        selection_mode="single-row",
        column_config=_CELL_COLUMNS,
        column_order=list(_CELL_COLUMNS),
    )
    new = f" {len(comparison.new)} more cells are in B alone." if comparison.new else ""
    st.caption(f"{len(rows)} cells. Choose a row to see its samples, sources and counters.{new}")


def recordings(other: store.Run, run: store.Run, comparison: Comparison) -> None:
    """The differences between the recordings, and the commands that made them."""
    widgets.table(chart.facts_of(comparison))
    for side, each in (("A", other), ("B", run)):
        st.caption(plain(f"{side}: {label_of(each)}"))
        st.code(str(each.info["command"]), language="bash", wrap_lines=True)


def _clicked(on_click: Callable[[object], None]) -> None:
    texts = st.session_state.get(f"{_CELLS} from", [])
    rows = [row for row in st.session_state[_CELLS]["selection"]["rows"] if row < len(texts)]
    if rows:
        on_click(texts[rows[0]])


def _figure(value: float, unit: str) -> str:
    if pd.isna(value):
        return NOTHING
    if unit == "ns":
        return format_duration(value)
    if unit == "B":
        return format_bytes(value)
    return format_percent(value) if unit == "%" else f"{value:,.0f}" if value >= 1000 else significant(value)


def _change(counter: Counter) -> str:
    """The difference of a percentage in points, else the ratio."""
    if pd.isna(counter.a) or pd.isna(counter.b):
        return NOTHING
    if counter.a == counter.b:
        return "="
    if counter.unit == "%":
        return f"{counter.b - counter.a:+.1f} points"
    return format_ratio(counter.ratio)
