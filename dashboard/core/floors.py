"""The least time that a cell could take on the device that measured it, from ceilings of the same run."""

from typing import Final

import numpy as np
import pandas as pd

from warpladder.dashboard.core.run_data import RunData
from warpladder.data.arithmetic import arithmetic_ns
from warpladder.data.bandwidths import HOST_COPY_BYTES, Memory, device_memory, empty_kernel_ns, host_memory, reads_and_writes
from warpladder.data.limits import copies_ns
from warpladder.data.names import Ceiling

HOST: Final = "cpu"
#: Times in ns of rows, and the names of the ceilings that they come from.
_Times = tuple[np.ndarray, np.ndarray]


def ceiling(data: RunData, name: str, *, on_gpu: bool) -> float:
    """The value of a ceiling in its unit, on the first GPU that was measured; NaN where it was not measured."""
    table = data.ceilings
    found = table[(table["name"] == name) & ((table["device"] != HOST) == on_gpu)].sort_values("device")
    return float(found["value"].iloc[0]) if len(found) else float("nan")


def measured(data: RunData) -> dict[str, float]:
    """The values of all ceilings by name in their units, each of the first device that has it."""
    found = data.ceilings.sort_values("device").drop_duplicates("name")
    return dict(zip(found["name"], found["value"], strict=True))


def memory_of(data: RunData, *, on_gpu: bool, cache: str = "") -> Memory:
    """The GPU's memory or the processor's, as it was measured; `cache` is that of `bandwidths.device_memory`."""
    table = data.ceilings
    found = table[(table["device"] != HOST) == on_gpu].sort_values("device").drop_duplicates("name")
    values = dict(zip(found["name"], found["value"], strict=True))
    return device_memory(values, cache) if on_gpu else host_memory(values)


def add_floors(frame: pd.DataFrame, data: RunData) -> pd.DataFrame:
    """Add `floor_ns`, `floor_bound` and `floor_ceiling` to rows of cells.

    The floor is the largest of these times. GPUs that worked together share bytes and operations evenly.

    - memory: the least time for the bytes of the case in their mix of reads and writes, at their size and with the L2 of the row; see
      `bandwidths.Memory`. In `end_to_end` the copies leave the L2 as they like, so that the shorter of both times counts. A run
      without times by size, and a row without a cache, has a rate for each mix; a run that measured only `device_copy` has one rate.
      Without times by size the host's rate bounds only cases of at least `HOST_COPY_BYTES`, which its caches do not hold;
    - launch: on a GPU, the time of an empty kernel, the ceiling `graph_node`;
    - compute: see `arithmetic.arithmetic_ns`; none for fp16, bf16, fp8 and whole numbers, which no ceiling measures;
    - copies, for the scope `end_to_end` of a GPU: the longer of h2d_bytes over `h2d_pinned` and d2h_bytes over `d2h_pinned`,
      since the two directions can overlap.

    Args:
        frame: with `kind`, `precision`, `gpus`, `scope`, `cache`, `flops`, `min_bytes`, `h2d_bytes`, `d2h_bytes`.

    Returns:
        The frame with `floor_ns` (null without a ceiling, for a phase, and for a cell without samples), `floor_bound`
        (`memory`, `compute`, `copies`, `launch`, or null), and `floor_ceiling`, the names of the ceilings that the floor comes from.
    """
    on_gpu = (frame["kind"] != "host").to_numpy()
    end_to_end = on_gpu & (frame["scope"] == "end_to_end").to_numpy(dtype=bool)
    bounds = {"memory": _by_memory(frame, data, on_gpu), "compute": arithmetic_ns(frame, measured(data))}
    copies, directions = copies_ns(frame, measured(data))
    bounds["copies"] = np.where(end_to_end, copies, np.nan), directions
    empty = np.where(on_gpu, empty_kernel_ns(measured(data)) or np.nan, np.nan)
    bounds["launch"] = empty, np.full(len(frame), Ceiling.GRAPH_NODE, dtype=object)
    times, names = (np.array(each) for each in zip(*bounds.values(), strict=True))
    timed = frame["scope"].isin(["device", "operation", "end_to_end"]).to_numpy()
    longest = np.where(np.isnan(times), -1.0, times).argmax(axis=0)
    rows = np.arange(len(frame))
    known = timed & (times[longest, rows] > 0)
    columns = {
        "floor_ns": np.where(known, times[longest, rows], np.nan),
        "floor_bound": np.where(known, np.array(list(bounds), dtype=object)[longest], None),
        "floor_ceiling": np.where(known, names[longest, rows], None),
    }
    return frame.assign(**{name: pd.Series(values, index=frame.index) for name, values in columns.items()})


def _by_memory(frame: pd.DataFrame, data: RunData, on_gpu: np.ndarray) -> _Times:
    gpus = np.maximum(frame["gpus"].fillna(0).to_numpy(dtype=float), 1)
    moved = [part / gpus for part in reads_and_writes(frame)]

    def by(memory: Memory) -> _Times:
        return memory.time_ns(*moved), memory.named(*moved)

    memory = memory_of(data, on_gpu=False)
    host = by(memory)
    if not memory.curves:
        host = np.where(sum(moved) >= HOST_COPY_BYTES, host[0], np.nan), host[1]
    rate, cold, hot = (by(memory_of(data, on_gpu=True, cache=cache)) for cache in ("", "cold", "hot"))
    end_to_end = (frame["scope"] == "end_to_end").to_numpy(dtype=bool)
    caches = [(frame["cache"] == cache).to_numpy(dtype=bool) & ~end_to_end for cache in ("cold", "hot")]
    chosen = [~on_gpu, caches[0] | (end_to_end & (cold[0] < hot[0])), caches[1] | end_to_end]
    times, names = (np.select(chosen, of, last) for *of, last in zip(host, cold, hot, rate, strict=True))
    return times, names
