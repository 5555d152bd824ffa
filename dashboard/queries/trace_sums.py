"""The summaries of `nsys stats`, under its names and with its columns, made of a run's trace tables.

Definitions: the report scripts of Nsight Systems 2023.4. Times are nanoseconds, printed with one decimal; sizes are MB (10^6 bytes).
It differs in three things. `Style` is left out, since the contract does not keep how a range was opened. API functions are summed
without their version suffix. And CUDA graphs that were traced as a whole, whose time `nsys stats` leaves out, stand among the kernels.
"""

from collections.abc import Callable
from typing import Final

import numpy as np
import pandas as pd

from dashboard.queries.describe import describe, times
from dashboard.queries.run_data import RunData
from dashboard.queries.trace_ranges import nvtx_gpu_proj_sum, nvtx_kern_sum, nvtx_sum

#: What `nsys stats` calls each kind of memory operation.
OPERATIONS: Final = {
    "h2d": "[CUDA memcpy Host-to-Device]", "d2h": "[CUDA memcpy Device-to-Host]", "d2d": "[CUDA memcpy Device-to-Device]",
    "p2p": "[CUDA memcpy Peer-to-Peer]", "h2h": "[CUDA memcpy Host-to-Host]", "memset": "[CUDA memset]",
    "unified_h2d": "[CUDA memcpy Unified Host-to-Device]", "unified_d2h": "[CUDA memcpy Unified Device-to-Host]",
}  # fmt: skip
_BYTES_A_MB: Final = 1e6


def cuda_gpu_kern_sum(data: RunData) -> pd.DataFrame:
    """Kernel executions by demangled name. `Time (%)` is of all kernels' total."""
    names = data.traces.texts("kernels", "full_name")
    return times(names, data.traces.durations("kernels"), "Instances", "Name")


def cuda_api_sum(data: RunData) -> pd.DataFrame:
    """API calls by function. `Time (%)` is of all calls' total."""
    names = data.traces.texts("api_calls", "name")
    return times(names, data.traces.durations("api_calls"), "Num Calls", "Name")


def cuda_gpu_mem_time_sum(data: RunData) -> pd.DataFrame:
    """Copies, sets and migrations by kind, by time."""
    names = data.traces.texts("memory_ops", "kind").rename_categories(lambda kind: OPERATIONS[kind])
    return times(names, data.traces.durations("memory_ops"), "Count", "Operation")


def cuda_gpu_mem_size_sum(data: RunData) -> pd.DataFrame:
    """Copies, sets and migrations by kind, by size in MB with three decimals."""
    kinds = data.traces.texts("memory_ops", "kind")
    found = describe(kinds.codes.astype(np.int64), data.traces.numbers("memory_ops", "bytes"), len(kinds.categories))
    columns = {"total": "Total", "mean": "Avg", "median": "Med", "min": "Min", "max": "Max", "stddev": "StdDev"}
    frame = pd.DataFrame({f"{label} (MB)": (found[name] / _BYTES_A_MB).round(3) for name, label in columns.items()})
    frame.insert(1, "Count", found["n"])
    frame["Operation"] = [OPERATIONS[kinds.categories[code]] for code in found.index]
    return frame.assign(total=found["total"]).sort_values(["total", "Operation"], ascending=[False, True], ignore_index=True).drop(
        columns="total"
    )  # fmt: skip


#: Each summary and the tables that it needs.
SUMMARIES: Final[dict[str, tuple[Callable[[RunData], pd.DataFrame], tuple[str, ...]]]] = {
    "cuda_gpu_kern_sum": (cuda_gpu_kern_sum, ("kernels",)),
    "cuda_api_sum": (cuda_api_sum, ("api_calls",)),
    "cuda_gpu_mem_time_sum": (cuda_gpu_mem_time_sum, ("memory_ops",)),
    "cuda_gpu_mem_size_sum": (cuda_gpu_mem_size_sum, ("memory_ops",)),
    "nvtx_sum": (nvtx_sum, ("ranges",)),
    "nvtx_gpu_proj_sum": (nvtx_gpu_proj_sum, ("ranges",)),
    "nvtx_kern_sum": (nvtx_kern_sum, ("ranges", "kernels")),
}


def available(data: RunData) -> tuple[str, ...]:
    """Summaries that the run has the tables for."""
    return tuple(name for name, (_, needs) in SUMMARIES.items() if set(needs) <= set(data.traces.tables))


def summary(data: RunData, name: str) -> pd.DataFrame:
    """One of `available`."""
    return SUMMARIES[name][0](data)
