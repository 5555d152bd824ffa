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
}
#: Where a table differs from that of `nsys stats`, by the beginning of its name.
_DIFFERS: Final = {
    "nvtx": ", but for its column Style",
    "cuda_api": ", versions of a function together",
    "cuda_gpu_kern": ", and graphs that were traced as a whole, which it leaves out",
}
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
    differs = next((how for summary, how in _DIFFERS.items() if name.startswith(summary)), "")
    st.caption(plain(f"As nsys stats --report {name} prints it{differs}. Times in nanoseconds, MB of 10⁶ bytes."))
    widgets.end_page()


page()
