"""The summaries of `nsys stats`, under its names and with its columns, made of a run's trace tables.

Definitions: the report scripts of Nsight Systems 2023.4, which 2025.3 follows but for a colon before ranges of the default domain. Times
are nanoseconds, printed with one decimal; sizes are MB (10^6 bytes). A test compares them with what `nsys stats` prints, cell by cell.

What a run does not keep makes them differ where a report has it: a range that was ended by another thread is taken as one of the thread
that started it, where nsys leaves it out of the sums by device work; a range that was never closed ends with the last range, not with
the last mark; calls that stand in a report once more with their backtrace count once; and two versions of one function are one row.

Kernels, calls and memory operations can be summed over the variants' samples of a recording alone, which `nsys stats` cannot.
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
from warpladder.dashboard.trace.samples import Part
from warpladder.dashboard.views.calls.kernels import nvtx_kern_sum

#: What `nsys stats` calls each kind of memory operation.
OPERATIONS: Final = {
    "h2d": "[CUDA memcpy Host-to-Device]", "d2h": "[CUDA memcpy Device-to-Host]", "d2d": "[CUDA memcpy Device-to-Device]",
    "p2p": "[CUDA memcpy Peer-to-Peer]", "h2h": "[CUDA memcpy Host-to-Host]", "memset": "[CUDA memset]",
    "unified_h2d": "[CUDA memcpy Unified Host-to-Device]", "unified_d2h": "[CUDA memcpy Unified Device-to-Host]",
}  # fmt: skip
#: The summary of what `nsys stats` has none for.
GRAPHS: Final = "graph_launches"
Rows = Int64s | slice
_BYTES_A_MB: Final = 1e6


def cuda_gpu_kern_sum(data: RunData, part: Part = "all") -> pd.DataFrame:
    """Kernel executions by demangled name. `Time (%)` is of all kernels' total. Graphs traced as a whole are left out."""
    traces = data.traces
    traces.read("kernels", "full_name")
    return _kernels(traces, _kernel_rows(traces, part))


def graph_launches(data: RunData, part: Part = "all") -> pd.DataFrame:
    """Launches of CUDA graphs that were traced as a whole, each from its first node to its last; `nsys stats` sums them nowhere."""
    return _kernels(data.traces, _graph_rows(data.traces, part))


def _kernel_rows(traces: Traces, part: Part) -> Rows:
    """Places of the kernels; all of them without asking for their names where no graph is among them."""
    found = _rows(traces, "kernels", part)
    if not has_graphs(traces):
        return found
    kernels = without_graphs(traces, "kernels")
    return kernels if isinstance(found, slice) else np.intersect1d(found, kernels, assume_unique=True)


def _graph_rows(traces: Traces, part: Part) -> Int64s:
    names, found = traces.texts("kernels", "full_name"), _rows(traces, "kernels", part)
    graphs = np.flatnonzero(names.codes == names.categories.get_loc(GRAPH))
    return graphs if isinstance(found, slice) else np.intersect1d(found, graphs, assume_unique=True)


def _rows(traces: Traces, table: str, part: Part) -> Rows:
    return slice(None) if part == "all" else trace_samples.rows(traces, table)


def _kernels(traces: Traces, rows: Rows) -> pd.DataFrame:
    names = traces.texts("kernels", "full_name")
    groups, durations = names.codes[rows], traces.durations("kernels")[rows]
    return times(groups, durations, "Instances", {"Name": np.asarray(names.categories)}, ["Instances", "Name"])


def cuda_api_sum(data: RunData, part: Part = "all") -> pd.DataFrame:
    """API calls by function. `Time (%)` is of all calls' total."""
    names, rows = data.traces.texts("api_calls", "name"), _rows(data.traces, "api_calls", part)
    codes, durations = names.codes[rows], data.traces.durations("api_calls")[rows]
    return times(codes, durations, "Num Calls", {"Name": np.asarray(names.categories)}, ["Name"])


def cuda_gpu_mem_time_sum(data: RunData, part: Part = "all") -> pd.DataFrame:
    """Copies, sets and migrations by kind, by time."""
    kinds, rows = data.traces.texts("memory_ops", "kind"), _rows(data.traces, "memory_ops", part)
    operations = {"Operation": np.array([OPERATIONS[kind] for kind in kinds.categories])}
    return times(kinds.codes[rows], data.traces.durations("memory_ops")[rows], "Count", operations, ["Operation"])


def cuda_gpu_mem_size_sum(data: RunData, part: Part = "all") -> pd.DataFrame:
    """Copies, sets and migrations by kind, by size in MB with three decimals."""
    kinds, rows = data.traces.texts("memory_ops", "kind"), _rows(data.traces, "memory_ops", part)
    found = describe(kinds.codes[rows], data.traces.numbers("memory_ops", "bytes")[rows], len(kinds.categories))
    columns = {"total": "Total", "mean": "Avg", "median": "Med", "min": "Min", "max": "Max", "stddev": "StdDev"}
    # Rounded as C's printf does it, on the exact value of the binary fraction.
    frame = pd.DataFrame(
        {f"{label} (MB)": [float(f"{size:.3f}") for size in found[name] / _BYTES_A_MB] for name, label in columns.items()}
    )
    frame.insert(1, "Count", found["n"].to_numpy())
    frame["Operation"] = [OPERATIONS[kinds.categories[code]] for code in found.index]
    return frame.assign(total=found["total"].to_numpy()).sort_values(["total", "Operation"], ascending=[False, True], ignore_index=True).drop(
        columns="total"
    )  # fmt: skip


#: Each summary of `nsys stats` and the tables that it needs.
SUMMARIES: Final[dict[str, tuple[Callable[..., pd.DataFrame], tuple[str, ...]]]] = {
    "cuda_gpu_kern_sum": (cuda_gpu_kern_sum, ("kernels",)),
    "cuda_api_sum": (cuda_api_sum, ("api_calls",)),
    "cuda_gpu_mem_time_sum": (cuda_gpu_mem_time_sum, ("memory_ops",)),
    "cuda_gpu_mem_size_sum": (cuda_gpu_mem_size_sum, ("memory_ops",)),
    "nvtx_sum": (nvtx_sum, ("ranges",)),
    "nvtx_gpu_proj_sum": (nvtx_gpu_proj_sum, ("ranges",)),
    "nvtx_kern_sum": (nvtx_kern_sum, ("ranges", "kernels")),
}


#: Those that can be made of the variants' samples alone.
OF_PARTS: Final = ("cuda_gpu_kern_sum", "cuda_api_sum", "cuda_gpu_mem_time_sum", "cuda_gpu_mem_size_sum", GRAPHS)


def available(data: RunData, part: Part = "all") -> tuple[str, ...]:
    """Summaries that the run, or that part of it, has rows for, and `GRAPHS` where graphs were traced as a whole."""
    graphs = has_graphs(data.traces)
    tables = set(data.traces.tables)
    if graphs and not len(without_graphs(data.traces, "kernels")):
        tables.remove("kernels")
    found = tuple(name for name, (_, needs) in SUMMARIES.items() if set(needs) <= tables)
    found = (*found, GRAPHS) if graphs else found
    return tuple(name for name in found if part == "all" or name not in OF_PARTS or _any(data.traces, name, part))


def _any(traces: Traces, name: str, part: Part) -> bool:
    """Whether a summary of a part of a trace has rows."""
    if name == GRAPHS:
        return len(_graph_rows(traces, part)) > 0
    table = SUMMARIES[name][1][0]
    found = _kernel_rows(traces, part) if table == "kernels" else _rows(traces, table, part)
    return isinstance(found, slice) or len(found) > 0


def summary(data: RunData, name: str, part: Part = "all") -> pd.DataFrame:
    """One of `available` of that part; those of ranges are of the whole trace."""
    make = graph_launches if name == GRAPHS else SUMMARIES[name][0]
    return make(data, part) if name in OF_PARTS else make(data)


def leading(summary: pd.DataFrame, percent: float = 90) -> pd.DataFrame:
    """The fewest rows of a summary, the longest first, whose `Total Time (ns)` is that percent of all, with `cumulative_percent`."""
    share = 100 * summary["Total Time (ns)"].cumsum() / max(summary["Total Time (ns)"].sum(), 1)
    enough = int((share < percent).sum()) + 1
    return summary.assign(cumulative_percent=share).head(enough)
