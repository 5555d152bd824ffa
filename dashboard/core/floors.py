"""The least time that a cell could take on the device that measured it, from ceilings of the same run."""

from typing import Final

import numpy as np
import pandas as pd

from warpladder.dashboard.core.run_data import RunData
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


def ceiling(data: RunData, name: str, *, on_gpu: bool) -> float:
    """The value of a ceiling in its unit, on the first GPU that was measured; NaN where it was not measured."""
    table = data.ceilings
    found = table[(table["name"] == name) & ((table["device"] != HOST) == on_gpu)].sort_values("device")
    return float(found["value"].iloc[0]) if len(found) else float("nan")


def compute_ceiling(data: RunData, precision: str) -> str:
    """The name of the highest ceiling of a precision's arithmetic on the GPU; the first name where none was measured."""
    names, _ = COMPUTE[precision]
    return max(names, key=lambda name: np.nan_to_num(ceiling(data, name, on_gpu=True)))


def add_floors(frame: pd.DataFrame, data: RunData) -> pd.DataFrame:
    """Add `floor_ns` and `floor_bound` to rows of cells.

    The floor is the largest of these times, divided by the GPUs that worked together:

    - memory: min_bytes over `device_copy` (on the host: `host_copy`);
    - compute: flops over `fp32_fma`, the higher of `tf32_mma` and `tf32_wgmma`, or a third of that for 3xTF32 (on the host:
      `host_fma`); none on a GPU for fp16, bf16, fp8 and whole numbers, which no ceiling measures;
    - copies, for the scope `end_to_end` of a GPU: the longer of h2d_bytes over `h2d_pinned` and d2h_bytes over `d2h_pinned`,
      since the two directions can overlap.

    Args:
        frame: with `kind`, `precision`, `gpus`, `scope`, `flops`, `min_bytes`, `h2d_bytes`, `d2h_bytes`.

    Returns:
        The frame with `floor_ns` (null without a ceiling, for a phase, and for a cell without samples) and `floor_bound`
        (`memory`, `compute`, `copies`, or null).
    """
    on_gpu = (frame["kind"] != "host").to_numpy()
    gpus = np.maximum(frame["gpus"].fillna(0).to_numpy(dtype=float), 1)
    # bytes / (GB/s) and FLOP / (1000 TFLOP/s) are both nanoseconds.
    copy = _by_place(data, Ceiling.DEVICE_COPY, Ceiling.HOST_COPY, on_gpu)
    fma = _by_place(data, Ceiling.FP32_FMA, Ceiling.HOST_FMA, on_gpu)
    for precision, (_, share) in COMPUTE.items():
        if precision != "fp32":
            rate = ceiling(data, compute_ceiling(data, precision), on_gpu=True) * share
            fma = np.where(on_gpu & (frame["precision"] == precision).to_numpy(), rate, fma)
    fma = np.where(on_gpu & frame["precision"].isin(_NOT_MEASURED).to_numpy(), np.nan, fma)
    end_to_end = on_gpu & (frame["scope"] == "end_to_end").to_numpy(dtype=bool)
    times = pd.DataFrame(
        {
            "memory": frame["min_bytes"].to_numpy(dtype=float) / copy / gpus,
            "compute": frame["flops"].to_numpy(dtype=float) / (1000 * fma) / gpus,
            "copies": np.where(
                end_to_end,
                np.fmax(
                    frame["h2d_bytes"].to_numpy(dtype=float) / ceiling(data, Ceiling.H2D_PINNED, on_gpu=True),
                    frame["d2h_bytes"].to_numpy(dtype=float) / ceiling(data, Ceiling.D2H_PINNED, on_gpu=True),
                ),
                np.nan,
            ),
        },
        index=frame.index,
    )
    timed = frame["scope"].isin(["device", "operation", "end_to_end"])
    floor = times.max(axis=1).where(timed & (times.max(axis=1) > 0))
    bound = pd.Series(None, index=frame.index, dtype=object)
    known = floor.notna()
    if known.any():
        bound[known] = times[known].idxmax(axis=1)
    return frame.assign(floor_ns=floor, floor_bound=bound)


def _by_place(data: RunData, on_device: str, on_host: str, on_gpu: np.ndarray) -> np.ndarray:
    return np.where(on_gpu, ceiling(data, on_device, on_gpu=True), ceiling(data, on_host, on_gpu=False))
