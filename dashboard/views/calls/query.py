"""The summaries of `nsys stats`, with its names and columns, from a run's trace tables.

The definitions are those of the report scripts of Nsight Systems 2023.4. Version 2025.3 differs only in a colon before ranges
of the default domain. Times are nanoseconds with one decimal, and sizes are MB (10^6 bytes). A test compares every cell with
the output of `nsys stats`.

The summaries differ from those of `nsys stats` in these points, for which a run has no data:

- a range that another thread ended belongs to the thread that started it; nsys leaves it out of the sums by device work;
- a range that was never closed ends with the last range, and not with the last mark;
- a call that the report repeats with its backtrace counts once;
- two versions of one function are one row.

Kernels, calls and memory operations can also be summed over only the variants' samples of a recording.
"""

from collections.abc import Callable
from typing import Final

import numpy as np
import pandas as pd

from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.core.traces import GRAPH, Int64s, Traces
from warpladder.dashboard.trace import samples as trace_samples
from warpladder.dashboard.trace.describe import describe, times
from warpladder.dashboard.trace.ranges import has_graphs, nvtx_gpu_proj_sum, nvtx_sum, without_graphs
from warpladder.dashboard.trace.samples import Extent
from warpladder.dashboard.views.calls.kernels import nvtx_kern_sum

#: Kind of memory operation -> its name in `nsys stats`.
OPERATIONS: Final = {
    "h2d": "[CUDA memcpy Host-to-Device]",
    "d2h": "[CUDA memcpy Device-to-Host]",
    "d2d": "[CUDA memcpy Device-to-Device]",
    "p2p": "[CUDA memcpy Peer-to-Peer]",
    "h2h": "[CUDA memcpy Host-to-Host]",
    "memset": "[CUDA memset]",
    "unified_h2d": "[CUDA memcpy Unified Host-to-Device]",
    "unified_d2h": "[CUDA memcpy Unified Device-to-Host]",
}
#: A summary that `nsys stats` does not have.
GRAPHS: Final = "graph_launches"
RowIndex = Int64s | slice
_BYTES_A_MB: Final = 1e6


def cuda_gpu_kern_sum(data: RunData, extent: Extent = "all") -> pd.DataFrame:
    """Kernel executions by demangled name. `Time (%)` is of the total of all kernels. Graphs traced as a whole are left out."""
    traces = data.traces
    traces.read("kernels", "full_name")
    return _kernels(traces, _kernel_rows(traces, extent))


def graph_launches(data: RunData, extent: Extent = "all") -> pd.DataFrame:
    """Launches of CUDA graphs traced as a whole, each from its first node to its last; `nsys stats` has no such sum."""
    return _kernels(data.traces, _graph_rows(data.traces, extent))


def _kernel_rows(traces: Traces, extent: Extent) -> RowIndex:
    """Places of the kernels, without CUDA graphs that were traced as a whole."""
    found = _rows(traces, "kernels", extent)
    if not has_graphs(traces):
        return found
    kernels = without_graphs(traces, "kernels")
    return kernels if isinstance(found, slice) else np.intersect1d(found, kernels, assume_unique=True)


def _graph_rows(traces: Traces, extent: Extent) -> Int64s:
    names, found = traces.texts("kernels", "full_name"), _rows(traces, "kernels", extent)
    graphs = np.flatnonzero(names.codes == names.categories.get_loc(GRAPH))
    return graphs if isinstance(found, slice) else np.intersect1d(found, graphs, assume_unique=True)


def _rows(traces: Traces, table: str, extent: Extent) -> RowIndex:
    return slice(None) if extent == "all" else trace_samples.rows(traces, table)


def _kernels(traces: Traces, rows: RowIndex) -> pd.DataFrame:
    names = traces.texts("kernels", "full_name")
    groups, durations = names.codes[rows], traces.durations("kernels")[rows]
    return times(groups, durations, "Instances", {"Name": np.asarray(names.categories)}, ["Instances", "Name"])


def cuda_api_sum(data: RunData, extent: Extent = "all") -> pd.DataFrame:
    """API calls by function. `Time (%)` is of the total of all calls."""
    names, rows = data.traces.texts("api_calls", "name"), _rows(data.traces, "api_calls", extent)
    codes, durations = names.codes[rows], data.traces.durations("api_calls")[rows]
    return times(codes, durations, "Num Calls", {"Name": np.asarray(names.categories)}, ["Name"])


def cuda_gpu_mem_time_sum(data: RunData, extent: Extent = "all") -> pd.DataFrame:
    """Times of copies, sets and migrations by kind."""
    kinds, rows = data.traces.texts("memory_ops", "kind"), _rows(data.traces, "memory_ops", extent)
    operations = {"Operation": np.array([OPERATIONS[kind] for kind in kinds.categories])}
    return times(kinds.codes[rows], data.traces.durations("memory_ops")[rows], "Count", operations, ["Operation"])


def cuda_gpu_mem_size_sum(data: RunData, extent: Extent = "all") -> pd.DataFrame:
    """Sizes of copies, sets and migrations by kind, in MB with three decimals."""
    kinds, rows = data.traces.texts("memory_ops", "kind"), _rows(data.traces, "memory_ops", extent)
    found = describe(kinds.codes[rows], data.traces.numbers("memory_ops", "bytes")[rows], len(kinds.categories))
    columns = {"total": "Total", "mean": "Avg", "median": "Med", "min": "Min", "max": "Max", "stddev": "StdDev"}
    # Rounded from the exact value of the binary fraction, as by C's printf.
    frame = pd.DataFrame(
        {f"{label} (MB)": [float(f"{size:.3f}") for size in found[name] / _BYTES_A_MB] for name, label in columns.items()}
    )
    frame.insert(1, "Count", found["n"].to_numpy())
    frame["Operation"] = [OPERATIONS[kinds.categories[code]] for code in found.index]
    return (
        frame.assign(total=found["total"].to_numpy())
        .sort_values(["total", "Operation"], ascending=[False, True], ignore_index=True)
        .drop(columns="total")
    )


#: Summary of `nsys stats` -> the tables that it needs.
SUMMARIES: Final[dict[str, tuple[Callable[..., pd.DataFrame], tuple[str, ...]]]] = {
    "cuda_gpu_kern_sum": (cuda_gpu_kern_sum, ("kernels",)),
    "cuda_api_sum": (cuda_api_sum, ("api_calls",)),
    "cuda_gpu_mem_time_sum": (cuda_gpu_mem_time_sum, ("memory_ops",)),
    "cuda_gpu_mem_size_sum": (cuda_gpu_mem_size_sum, ("memory_ops",)),
    "nvtx_sum": (nvtx_sum, ("ranges",)),
    "nvtx_gpu_proj_sum": (nvtx_gpu_proj_sum, ("ranges",)),
    "nvtx_kern_sum": (nvtx_kern_sum, ("ranges", "kernels")),
}


#: Summaries that can be restricted to the variants' samples.
OF_EXTENTS: Final = ("cuda_gpu_kern_sum", "cuda_api_sum", "cuda_gpu_mem_time_sum", "cuda_gpu_mem_size_sum", GRAPHS)


def available(data: RunData, extent: Extent = "all") -> tuple[str, ...]:
    """The summaries that have rows for the part of the trace, including `GRAPHS` where graphs were traced as a whole."""
    graphs = has_graphs(data.traces)
    tables = set(data.traces.tables)
    if graphs and not len(without_graphs(data.traces, "kernels")):
        tables.remove("kernels")
    found = tuple(name for name, (_, needs) in SUMMARIES.items() if set(needs) <= tables)
    found = (*found, GRAPHS) if graphs else found
    return tuple(name for name in found if extent == "all" or name not in OF_EXTENTS or _any(data.traces, name, extent))


def _any(traces: Traces, name: str, extent: Extent) -> bool:
    """Whether a summary of that part of the trace has rows."""
    if name == GRAPHS:
        return len(_graph_rows(traces, extent)) > 0
    table = SUMMARIES[name][1][0]
    found = _kernel_rows(traces, extent) if table == "kernels" else _rows(traces, table, extent)
    return isinstance(found, slice) or len(found) > 0


def summary(data: RunData, name: str, extent: Extent = "all") -> pd.DataFrame:
    """A summary of `available`, of the part of the trace. Summaries of ranges are of the whole trace."""
    make = graph_launches if name == GRAPHS else SUMMARIES[name][0]
    return make(data, extent) if name in OF_EXTENTS else make(data)


def leading(summary: pd.DataFrame, percent: float = 90) -> pd.DataFrame:
    """The longest rows of a summary that together reach a percentage of `Total Time (ns)`, with `cumulative_percent`."""
    share = 100 * summary["Total Time (ns)"].cumsum() / max(summary["Total Time (ns)"].sum(), 1)
    enough = int((share < percent).sum()) + 1
    return summary.assign(cumulative_percent=share).head(enough)
