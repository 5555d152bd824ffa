"""Which route costs what: the chart, and a table with the steps of the first call."""

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from warpladder.dashboard.reports.routes import chart, query
from warpladder.dashboard.ui import runs, widgets
from warpladder.dashboard.ui.template import Look
from warpladder.dashboard.ui.text import plain
from warpladder.data import store

_MICROSECONDS = {"call": "One call, µs", "in_a_row": "In a row, µs", "hand_over": "Hand-over, µs"}
_MILLISECONDS = {
    "import": "Import, ms",
    "compile": "Compile, ms",
    "compile_cached": "Compile, cached, ms",
    "load": "Load, ms",
    "first_call": "First call, ms",
}
_TEXTS = {"title": "Route", "arrays": "Arrays", "why": "Why not"}
_ORDER = (
    "title",
    "call",
    "in_a_row",
    "import",
    "compile",
    "compile_cached",
    "load",
    "first_call",
    "hand_over",
    "arrays",
    "why",
)


def show(run: store.Run, controls: DeltaGenerator, look: Look) -> None:
    """Draw this part of the page, with its choices among the controls."""
    frame = runs.ask(run, query.routes)
    timed = query.timed(frame)
    if timed.empty:
        widgets.nothing(
            f"No route from Python to a kernel ({query.WORKLOAD}) was timed on a GPU in this run.",
            f"Choose another run, or record one: warpladder record {query.WORKLOAD} --set full.",
        )
    widgets.show_chart(chart.routes(timed, look))
    _table(frame)
    st.caption(
        plain(
            "Import to first call: fresh processes with empty caches, after the CUDA context was made. Cached: a process before left its "
            "compiled code on disk. A route without Load loads while it compiles or at the first call. Hand-over: both arrays, once more."
        )
    )


def _table(frame: pd.DataFrame) -> None:
    shown = frame.assign(
        **{name: frame[name] * 1e-3 for name in _MICROSECONDS},
        **{name: frame[name] * 1e-6 for name in _MILLISECONDS},
        arrays=[_arrays(*row) for row in frame[["zero_copy", "interface"]].itertuples(index=False, name=None)],
    )
    columns = {
        name: st.column_config.NumberColumn(words, format="%.3g") for name, words in {**_MICROSECONDS, **_MILLISECONDS}.items()
    }
    order = [name for name in _ORDER if name != "why" or (frame["why"] != "").any()]
    widgets.table(shown, column_order=order, column_config={**_TEXTS, **columns}, height="content")


def _arrays(zero_copy: bool | None, interface: str) -> str:
    """`zero-copy, DLPack`; empty where the run does not tell."""
    return f"{'zero-copy' if zero_copy else 'copied'}, {interface}" if interface else ""
