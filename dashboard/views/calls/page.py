"""API & kernels: which kernels and which calls take the time of a trace, and the tables of `nsys stats`."""

from typing import Final

import streamlit as st

from warpladder.dashboard.trace import samples as trace_samples
from warpladder.dashboard.trace.samples import Part
from warpladder.dashboard.ui import runs, state, widgets
from warpladder.dashboard.ui.text import plain
from warpladder.dashboard.views.calls import VIEW
from warpladder.dashboard.views.calls import chart as charts
from warpladder.dashboard.views.calls import query as trace_sums
from warpladder.data import store

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
_PARTS: Final = {"samples": "variants' samples", "all": "all in the trace"}
_LEADING: Final = {"cuda_gpu_kern_sum": "kernels", "cuda_api_sum": "API calls"}


def page() -> None:
    """Draw the page."""
    run = widgets.run_of_page()
    widgets.heading(VIEW)
    part = _part(run)
    available = runs.ask(run, trace_sums.available, part)
    if not available:
        widgets.no_trace(run, "no trace of kernels or API calls", "--trace=cuda")
    look = runs.look_of(run, widgets.theme())
    drawn = [name for name in _LEADING if name in available]
    for column, name in zip(st.columns(max(len(drawn), 1), gap="medium"), drawn, strict=False):
        frame = runs.ask(run, trace_sums.summary, name, part)
        with column:
            widgets.show_chart(charts.leading(trace_sums.leading(frame), len(frame), look, _LEADING[name], part))
    name = state.choose("summary", "Summary", list(available), text=_LABELS.__getitem__, style="segmented", labelled=False)
    widgets.table(runs.ask(run, trace_sums.summary, name, part))
    st.caption(plain(_origin(name, trace_sums.GRAPHS in available, part)))
    widgets.end_page()


def _part(run: store.Run) -> Part:
    """What of the trace is summed: of our own recordings the variants' samples, unless all is asked for."""
    parts = runs.ask(run, trace_samples.parts)
    if len(parts) == 1:
        return parts[0]
    picked = state.choose(
        "summed", "Summed", parts, text=_PARTS.__getitem__, style="segmented", labelled=False,
        help="A recording also verifies, warms up, flushes L2 and holds the stream: that is in the trace, and of no variant's time.",
    )  # fmt: skip
    return "samples" if picked == "samples" else "all"


def _origin(name: str, graphs: bool, part: Part) -> str:
    """Where the table comes from, and what it leaves out."""
    units = "Times in nanoseconds, MB of 10⁶ bytes."
    if part == "samples" and name in trace_sums.OF_PARTS:
        return f"Of what is {charts.PARTS[part]}; for all in the trace, as nsys stats has it, choose that above. {units}"
    if name == trace_sums.GRAPHS:
        return f"CUDA graphs that were traced as a whole, each launch from its first node to its last; nsys stats sums them nowhere. {units}"
    left_out = graphs and name in _OF_KERNELS
    without = (
        " Graphs that were traced as a whole are left out there and here: they stand under Graph launches." if left_out else ""
    )
    whole = " Ranges are of all in the trace." if part == "samples" else ""
    return f"As nsys stats --report {name} prints it. {units}{whole}{without}"


page()
