"""The least time that a cell could take on the device that measured it, from ceilings of the same run."""

from typing import Final

import numpy as np
import pandas as pd

from warpladder.dashboard.core.run_data import RunData
from warpladder.data.bandwidths import HOST_COPY_BYTES, Memory, device_memory, host_memory, reads_and_writes
from warpladder.data.names import Ceiling

#: Precision -> ceilings of arithmetic, and the share of the highest one that the precision can use. 3xTF32 takes three tensor
#: products for each product, so its share is a third.
_TENSOR_CORES: Final = (Ceiling.TF32_MMA, Ceiling.TF32_WGMMA)
COMPUTE: Final[dict[str, tuple[tuple[str, ...], float]]] = {
    "fp32": ((Ceiling.FP32_FMA,), 1.0),
    "tf32": (_TENSOR_CORES, 1.0),
    "3xtf32": (_TENSOR_CORES, 1 / 3),
    "fp64": ((Ceiling.FP64_FMA,), 1.0),
}
#: Precisions whose arithmetic no ceiling tells: their floors on a GPU are those of memory and copies.
_NOT_MEASURED: Final = ("fp16", "bf16", "fp8", "int", "mixed")
HOST: Final = "cpu"
#: Times in ns of rows, and the names of the ceilings that they come from.
_Times = tuple[np.ndarray, np.ndarray]


def ceiling(data: RunData, name: str, *, on_gpu: bool) -> float:
    """The value of a ceiling in its unit, on the first GPU that was measured; NaN where it was not measured."""
    table = data.ceilings
    found = table[(table["name"] == name) & ((table["device"] != HOST) == on_gpu)].sort_values("device")
    return float(found["value"].iloc[0]) if len(found) else float("nan")


def compute_ceiling(data: RunData, precision: str) -> str:
    """The name of the highest ceiling of a precision's arithmetic on the GPU; the first name where none was measured."""
    names, _ = COMPUTE[precision]
    return max(names, key=lambda name: np.nan_to_num(ceiling(data, name, on_gpu=True)))


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
    - compute: flops over `fp32_fma`, the higher of `tf32_mma` and `tf32_wgmma`, or a third of that for 3xTF32 (on the host:
      `host_fma`); none on a GPU for fp16, bf16, fp8 and whole numbers, which no ceiling measures;
    - copies, for the scope `end_to_end` of a GPU: the longer of h2d_bytes over `h2d_pinned` and d2h_bytes over `d2h_pinned`,
      since the two directions can overlap.

    Args:
        frame: with `kind`, `precision`, `gpus`, `scope`, `cache`, `flops`, `min_bytes`, `h2d_bytes`, `d2h_bytes`.

    Returns:
        The frame with `floor_ns` (null without a ceiling, for a phase, and for a cell without samples), `floor_bound`
        (`memory`, `compute`, `copies`, or null), and `floor_ceiling`, the names of the ceilings that the floor comes from.
    """
    on_gpu = (frame["kind"] != "host").to_numpy()
    end_to_end = on_gpu & (frame["scope"] == "end_to_end").to_numpy(dtype=bool)
    bounds = {"memory": _by_memory(frame, data, on_gpu), "compute": _by_arithmetic(frame, data, on_gpu)}
    bounds["copies"] = _by_copies(frame, data, end_to_end)
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


def _by_arithmetic(frame: pd.DataFrame, data: RunData, on_gpu: np.ndarray) -> _Times:
    gpus = np.maximum(frame["gpus"].fillna(0).to_numpy(dtype=float), 1)
    names = np.where(on_gpu, Ceiling.FP32_FMA, Ceiling.HOST_FMA).astype(object)
    rates = np.where(on_gpu, ceiling(data, Ceiling.FP32_FMA, on_gpu=True), ceiling(data, Ceiling.HOST_FMA, on_gpu=False))
    for precision, (_, share) in COMPUTE.items():
        rows, name = on_gpu & (frame["precision"] == precision).to_numpy(), compute_ceiling(data, precision)
        rates = np.where(rows, ceiling(data, name, on_gpu=True) * share, rates)
        names = np.where(rows, name if share == 1 else f"{name} / {round(1 / share)}", names)
    rates = np.where(on_gpu & frame["precision"].isin(_NOT_MEASURED).to_numpy(), np.nan, rates)
    # FLOP / (1000 TFLOP/s) is nanoseconds.
    return frame["flops"].to_numpy(dtype=float) / (1000 * rates) / gpus, names


def _by_copies(frame: pd.DataFrame, data: RunData, end_to_end: np.ndarray) -> _Times:
    in_ns, out_ns = (
        frame[column].to_numpy(dtype=float) / ceiling(data, name, on_gpu=True)
        for column, name in (("h2d_bytes", Ceiling.H2D_PINNED), ("d2h_bytes", Ceiling.D2H_PINNED))
    )
    names = np.where(out_ns > in_ns, Ceiling.D2H_PINNED, Ceiling.H2D_PINNED).astype(object)
    return np.where(end_to_end, np.fmax(in_ns, out_ns), np.nan), names
