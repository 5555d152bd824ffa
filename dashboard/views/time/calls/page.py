"""API & kernels: the kernels and API calls that take the most time in a trace, and the tables of `nsys stats`."""

from typing import Final

import streamlit as st

from warpladder.dashboard.trace import samples as trace_samples
from warpladder.dashboard.trace.samples import Extent
from warpladder.dashboard.ui import runs, state, widgets
from warpladder.dashboard.ui.text import plain
from warpladder.dashboard.views.time.calls import chart
from warpladder.dashboard.views.time.calls import query as trace_sums
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
#: Summaries that leave out graphs traced as a whole.
_OF_KERNELS: Final = ("cuda_gpu_kern_sum", "nvtx_gpu_proj_sum", "nvtx_kern_sum")
#: Summaries of work by range.
_OF_RANGES: Final = ("nvtx_gpu_proj_sum", "nvtx_kern_sum")
_BY_TIME: Final = (
    " What other threads launched while a step was open counts for the step too, and work of a thread without ranges for the one other "
    "thread that had a range open."
)
_EXTENTS: Final = {"samples": "variants' samples", "all": "all in the trace"}
_LEADING: Final = {"cuda_gpu_kern_sum": "kernels", "cuda_api_sum": "API calls"}


def draw(run: store.Run) -> None:
    extent = _extent(run)
    available = runs.ask(run, trace_sums.available, extent)
    if not available:
        widgets.no_trace(run, "no trace of kernels or API calls", "--trace=cuda")
    look = runs.look_of(run, widgets.theme())
    drawn = [name for name in _LEADING if name in available]
    columns = st.container(key="side-by-side").columns(max(len(drawn), 1), gap="medium")
    for column, name in zip(columns, drawn, strict=False):
        frame = runs.ask(run, trace_sums.summary, name, extent)
        with column:
            widgets.show_chart(
                widgets.drawn(chart.leading, trace_sums.leading(frame), len(frame), look, _LEADING[name], extent)
            )
    name = state.choose("summary", "Summary", list(available), text=_LABELS.__getitem__, style="segmented", labelled=False)
    widgets.table(runs.ask(run, trace_sums.summary, name, extent))
    by_time = name in _OF_RANGES and runs.load(run).traces.of_pytorch
    st.caption(plain(_origin(name, trace_sums.GRAPHS in available, extent) + (_BY_TIME if by_time else "")))


def _extent(run: store.Run) -> Extent:
    """The part of the trace to sum. For recordings of this project it is the variants' samples, unless all is chosen."""
    extents = runs.ask(run, trace_samples.extents)
    if len(extents) == 1:
        return extents[0]
    picked = state.choose(
        "summed",
        "Summed",
        extents,
        text=_EXTENTS.__getitem__,
        style="segmented",
        labelled=False,
        help=(
            "The trace of a recording also has verification, warm-up, L2 flushes and stream holds, which are in no variant's "
            "time."
        ),
    )
    return "samples" if picked == "samples" else "all"


def _origin(name: str, graphs: bool, extent: Extent) -> str:
    """The origin of the table, and the events that it leaves out."""
    units = "Times in nanoseconds, MB of 10⁶ bytes."
    if extent == "samples" and name in trace_sums.OF_EXTENTS:
        return f"Sums of the work {chart.EXTENTS[extent]}. To sum all work as nsys stats does, choose all in the trace. {units}"
    if name == trace_sums.GRAPHS:
        return (
            "CUDA graphs that were traced as a whole, each launch from its first node to its last; nsys stats has no such "
            f"sum. {units}"
        )
    left_out = graphs and name in _OF_KERNELS
    without = " Like nsys stats, this table leaves out graphs traced as a whole; see Graph launches." if left_out else ""
    of_whole_trace = " The ranges are those of the whole trace." if extent == "samples" else ""
    return f"As nsys stats --report {name} prints it. {units}{of_whole_trace}{without}"
