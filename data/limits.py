"""Limits beyond which a time is not believed, from ceilings of the same run: the recorder's checks and the pages share them."""

from collections.abc import Mapping
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from warpladder.data.arithmetic import arithmetic_ns
from warpladder.data.bandwidths import Memory, device_memory, host_memory, reads_and_writes
from warpladder.data.names import Ceiling

_Bools = npt.NDArray[np.bool_]
_Floats = npt.NDArray[np.float64]
#: (place, cache) -> the memory that was measured.
Memories = Mapping[tuple[str, str], Memory]

#: How many times faster than its floor of memory a case may plausibly be. It is slightly above 1 for a cold cache, since two
#: measurements of the same device differ, and larger if data can stay in a cache of the GPU or the processor.
CEILING_MARGIN: Final = {("gpu", "cold"): 1.1, ("gpu", "hot"): 4.0, ("host", "hot"): 20.0}
#: The same against times by size, which say what caches do. Hot times differ more between buffers of the same sizes, and those of a
#: processor between one moment and another.
BY_SIZE_MARGIN: Final = {("gpu", "cold"): 1.1, ("gpu", "hot"): 1.25, ("host", "hot"): 4.0}
#: How many times faster than its floor of arithmetic a case may be. In the shipped runs, cells on a GPU reach at most 86 % of it
#: (fp32 84 %, 3xTF32 86 %, TF32 less). Cells on the host reach at most 63 %, except in the run of the perceptron on four GPUs: a busy
#: host measured its ceiling at a twentieth of the usual rate, so that NumPy reached 532 %.
ARITHMETIC_MARGIN: Final = {"gpu": 1.1, "host": 8.0}
#: How many times faster than the copies of one GPU from and to page-locked memory `end_to_end` may be. Shipped cells reach 80 %.
COPIES_MARGIN: Final = 1.1

#: A hot L2 may make a kernel faster by this many times what it does for the best kernel of `device_memory`, which is 2.0 on an H200:
#: in all 4.1 times. Shipped cells reach 3.0 times below 5 us (4.5 us cold, 1.5 us hot), 2.1 times from 10 us, 1.9 times from 100 us
#: and 1.3 times from 1 ms.
HOT_MARGIN: Final = 2.0
#: Of more bytes than the L2 holds, a hot L2 saves no more than the time of the share that it holds; this is the margin. Shipped cells
#: reach 1.34 times at 1.3 times the bytes of the L2, where 4.1 are allowed, and 1.04 times from twice its bytes, where 1.31 to 2.5 are.
BEYOND_L2_MARGIN: Final = 1.25
#: A cold L2 comes with cold instructions and a cold queue. These cost up to 3 us in the shipped cells of few bytes.
COLD_START_NS: Final = 5_000


def memories(ceilings: Mapping[str, float]) -> Memories:
    """The memories that were measured, by place and cache: `("gpu", "cold")`, `("gpu", "hot")`, `("host", "hot")`."""
    found = {("gpu", cache): device_memory(ceilings, cache) for cache in ("cold", "hot")} | {
        ("host", "hot"): host_memory(ceilings)
    }
    return {key: memory for key, memory in found.items() if memory.names}


def margin(measured: Memories, key: tuple[str, str]) -> float:
    """How many times faster than its floor of memory a case may be in this place and cache."""
    return (BY_SIZE_MARGIN if measured[key].curves else CEILING_MARGIN)[key]


def beyond(cells: pd.DataFrame, ceilings: Mapping[str, float], l2_bytes: float) -> dict[str, _Bools]:
    """The cells whose time is below a floor by more than its margin, by the floor: `memory`, `arithmetic`, `copies`.

    Outputs may still be in the L2 when the clock stops, even with a cold cache. Times by size tell what that saves. By rates, writes
    of the size of the L2 are not counted, but no more than half of `min_bytes`. Several GPUs are not judged, because each of them has
    only a share of the case.

    Args:
        cells: `kind`, `precision`, `gpus`, `scope`, `cache`, `flops`, `min_bytes`, `h2d_bytes`, `d2h_bytes` and `median_ns`, one row a
            cell and timing.
        ceilings: their values by name.
        l2_bytes: size of the GPU's L2 cache, or 0. It counts where no time by size was measured.
    """
    measured = memories(ceilings)
    on_gpu = (cells["kind"] != "host").to_numpy(dtype=bool)
    scope = cells["scope"]
    alone = (cells["gpus"].fillna(0) <= 1).to_numpy(dtype=bool) & cells["median_ns"].notna().to_numpy(dtype=bool)
    whole = alone & scope.isin(["device", "operation", "end_to_end"]).to_numpy(dtype=bool)
    times = np.maximum(cells["median_ns"].to_numpy(dtype=float), 1)
    read, written = reads_and_writes(cells)
    least = np.full(len(cells), np.nan)
    for (place, cache), memory in measured.items():
        rows = (on_gpu == (place == "gpu")) & (cells["cache"] == cache).to_numpy(dtype=bool)
        total = read[rows] + written[rows]
        in_l2 = np.minimum(l2_bytes, total / 2) if place == "gpu" and not memory.curves else 0.0
        counted = 1 - in_l2 / np.maximum(total, 1)
        least[rows] = memory.time_ns(read[rows], written[rows]) * counted / margin(measured, (place, cache))
    arithmetic, _ = arithmetic_ns(cells, ceilings)
    arithmetic = arithmetic / np.where(on_gpu, ARITHMETIC_MARGIN["gpu"], ARITHMETIC_MARGIN["host"])
    return {
        "memory": whole & (scope != "end_to_end").to_numpy(dtype=bool) & (least > times),
        "arithmetic": whole & (arithmetic > times),
        "copies": whole
        & on_gpu
        & (scope == "end_to_end").to_numpy(dtype=bool)
        & (copies_ns(cells, ceilings)[0] / COPIES_MARGIN > times),
    }


def copies_ns(cells: pd.DataFrame, ceilings: Mapping[str, float]) -> tuple[_Floats, npt.NDArray[np.object_]]:
    """The longer of the copies in and out in ns, since the two directions can overlap, and the ceiling that it comes from."""
    in_ns, out_ns = (
        cells[column].to_numpy(dtype=float) / ceilings.get(name, np.nan)
        for column, name in (("h2d_bytes", Ceiling.H2D_PINNED), ("d2h_bytes", Ceiling.D2H_PINNED))
    )
    return np.fmax(in_ns, out_ns), np.where(out_ns > in_ns, Ceiling.D2H_PINNED, Ceiling.H2D_PINNED).astype(object)


def hot_gain(ceilings: Mapping[str, float]) -> float:
    """How many times faster the best kernel of `device_memory` is with a hot L2; NaN where no times by size were measured."""
    cold, hot = (device_memory(ceilings, cache) for cache in ("cold", "hot"))
    if not cold.curves or not hot.curves:
        return float("nan")
    gains = [
        float(np.max(of_cold.time_ns(of_cold.sizes) / of_hot.time_ns(of_cold.sizes)))
        for of_cold, of_hot in zip(cold.curves, hot.curves, strict=True)
    ]
    return max(1.0, *gains)


def most_from_l2(min_bytes: npt.ArrayLike, l2_bytes: float, gain: float) -> _Floats:
    """How many times faster a hot L2 may make a kernel.

    Args:
        min_bytes: the least bytes of the case.
        l2_bytes: size of the L2, or 0 where it is not known.
        gain: `hot_gain`.
    """
    least = np.asarray(min_bytes, dtype=float)
    held = np.divide(l2_bytes, least, out=np.ones_like(least), where=(least > l2_bytes) & (l2_bytes > 0))
    with np.errstate(divide="ignore"):
        most: _Floats = np.minimum(HOT_MARGIN * gain, BEYOND_L2_MARGIN / (1 - held))
    return most
