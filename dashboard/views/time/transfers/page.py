"""Transfers: the cost of copies, and the speedups with the copies counted."""

from typing import Final

import streamlit as st

from warpladder.dashboard.ui import runs, widgets
from warpladder.dashboard.views.time.transfers import chart, query
from warpladder.data import store

_COLUMNS: Final = {
    "variant": "Variant or range",
    "config": "Config",
    "case": "Case",
    "speedup_kernel": st.column_config.NumberColumn("Speedup, kernel", format="%.3g"),
    "speedup_with_launch": st.column_config.NumberColumn("+ launch", format="%.3g"),
    "speedup_with_copies": st.column_config.NumberColumn("+ copies", format="%.3g"),
    "speedup_end_to_end": st.column_config.NumberColumn("End to end", format="%.3g"),
}


def draw(run: store.Run) -> None:
    tables = runs.load(run).traces.tables
    if "memory_ops" not in tables:
        why = ", though it has kernels: the program copied nothing while it was captured" if "kernels" in tables else ""
        widgets.no_trace(run, f"no trace of copies{why}", "--trace=cuda")
    look = runs.look_of(run, widgets.theme())
    widgets.show_chart(widgets.drawn(chart.transfers, runs.ask(run, query.transfers), look))
    frame = runs.ask(run, query.stages)
    if frame.empty:
        st.caption("No range of this trace has both a kernel and a copy, so the effect of copies on speedups is unknown.")
    else:
        workloads = [name for name in runs.load(run).workloads if (frame["workload"] == name).any()]
        if len(workloads) > 1:
            with widgets.controls():
                chosen = widgets.choose_workload(run, workloads)
            frame = frame[frame["workload"] == chosen].reset_index(drop=True)
        widgets.show_chart(widgets.drawn(chart.stages, frame, look))
        columns = [name for name in _COLUMNS if name in frame and frame[name].notna().any() and (frame[name] != "").any()]
        widgets.table(frame, column_order=columns, column_config=_COLUMNS, height=widgets.height(frame))
