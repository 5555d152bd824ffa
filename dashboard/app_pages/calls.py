"""API & kernels: which kernels and which calls take the time of a trace, and the tables of `nsys stats`."""

from typing import Final

import pandas as pd
import streamlit as st

from dashboard import runs, state, widgets
from dashboard.charts import traces as charts
from dashboard.queries import trace_sums, transfers
from dashboard.text import plain

_LABELS: Final = {
    "cuda_gpu_kern_sum": "Kernels",
    "cuda_api_sum": "API calls",
    "cuda_gpu_mem_time_sum": "Memory, time",
    "cuda_gpu_mem_size_sum": "Memory, size",
    "nvtx_sum": "Ranges",
    "nvtx_gpu_proj_sum": "Ranges on the GPU",
    "nvtx_kern_sum": "Kernels by range",
    trace_sums.GRAPHS: "Graph launches",
}
#: Summaries that know kernels, and graphs traced by node, alone.
_OF_KERNELS: Final = ("cuda_gpu_kern_sum", "nvtx_gpu_proj_sum", "nvtx_kern_sum")
_LEADING: Final = {"cuda_gpu_kern_sum": "kernels", "cuda_api_sum": "API calls"}


def page() -> None:
    """Draw the page."""
    run = widgets.run_of_page()
    widgets.heading("API & kernels", "Which kernels and which calls take the time?")
    available: tuple[str, ...] = runs.ask(run, trace_sums.available)
    if not available:
        widgets.no_trace("no trace of kernels or API calls")
    look = runs.look_of(run, widgets.theme())
    drawn = [name for name in _LEADING if name in available]
    for column, name in zip(st.columns(max(len(drawn), 1), gap="medium"), drawn, strict=False):
        frame: pd.DataFrame = runs.ask(run, trace_sums.summary, name)
        with column:
            widgets.show_chart(charts.leading(transfers.leading(frame), len(frame), look, _LEADING[name]))
    name = state.choose("summary", "Summary", list(available), text=_LABELS.__getitem__, style="segmented", labelled=False)
    widgets.table(runs.ask(run, trace_sums.summary, name))
    st.caption(plain(_origin(name, trace_sums.GRAPHS in available)))
    widgets.end_page()


def _origin(name: str, graphs: bool) -> str:
    """Where the table comes from, and what it leaves out."""
    units = "Times in nanoseconds, MB of 10⁶ bytes."
    if name == trace_sums.GRAPHS:
        return f"CUDA graphs that were traced as a whole, each launch from its first node to its last; nsys stats sums them nowhere. {units}"
    left_out = graphs and name in _OF_KERNELS
    without = (
        " Graphs that were traced as a whole are left out there and here: they stand under Graph launches." if left_out else ""
    )
    return f"As nsys stats --report {name} prints it. {units}{without}"


page()
