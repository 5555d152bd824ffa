"""The least time in which a device computes the operations of a case, from measured ceilings: floors, roofs and checks share this rule."""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from warpladder.data.names import Ceiling

_Floats = npt.NDArray[np.float64]
_TENSOR_CORES: Final = (Ceiling.TF32_MMA, Ceiling.TF32_WGMMA)
#: Precision -> ceilings of arithmetic on a GPU, and the share of the highest one that the precision can use. 3xTF32 takes three
#: tensor products for each product, so its share is a third.
COMPUTE: Final[Mapping[str, tuple[tuple[str, ...], float]]] = {
    "fp32": ((Ceiling.FP32_FMA,), 1.0),
    "tf32": (_TENSOR_CORES, 1.0),
    "3xtf32": (_TENSOR_CORES, 1 / 3),
    "fp64": ((Ceiling.FP64_FMA,), 1.0),
}
#: Precisions whose arithmetic no ceiling tells, on a GPU or on the host, which may have units for them.
NOT_MEASURED: Final = ("fp16", "bf16", "fp8", "int", "mixed")


def compute_ceiling(ceilings: Mapping[str, float], precision: str) -> str:
    """The name of the highest ceiling of a precision's arithmetic on the GPU; the first name where none was measured."""
    names, _ = COMPUTE[precision]
    return max(names, key=lambda name: np.nan_to_num(ceilings.get(name, np.nan)))


def arithmetic_ns(cells: pd.DataFrame, ceilings: Mapping[str, float]) -> tuple[_Floats, npt.NDArray[np.object_]]:
    """The least time in ns for the operations of each cell, and the ceiling that it comes from, such as `tf32_wgmma / 3`.

    It is `flops` over `fp32_fma`, the higher of `tf32_mma` and `tf32_wgmma`, or a third of that for 3xTF32; on the host over
    `host_fma`. GPUs that worked together share the operations evenly.

    Args:
        cells: `kind`, `precision`, `gpus` and `flops`, one row a cell.
        ceilings: their values in TFLOP/s, by name.

    Returns:
        Two arrays of one value a row. A time is NaN where the ceiling was not measured.
    """
    on_gpu = (cells["kind"] != "host").to_numpy(dtype=bool)
    gpus = np.maximum(cells["gpus"].fillna(0).to_numpy(dtype=float), 1)
    names = np.where(on_gpu, Ceiling.FP32_FMA, Ceiling.HOST_FMA).astype(object)
    rates = np.where(on_gpu, ceilings.get(Ceiling.FP32_FMA, np.nan), ceilings.get(Ceiling.HOST_FMA, np.nan)).astype(float)
    for precision, (_, share) in COMPUTE.items():
        rows, name = on_gpu & (cells["precision"] == precision).to_numpy(dtype=bool), compute_ceiling(ceilings, precision)
        rates = np.where(rows, ceilings.get(name, np.nan) * share, rates)
        names = np.where(rows, name if share == 1 else f"{name} / {round(1 / share)}", names)
    rates = np.where(cells["precision"].isin(NOT_MEASURED).to_numpy(dtype=bool), np.nan, rates)
    # FLOP / (1000 TFLOP/s) is nanoseconds.
    flops: Any = cells["flops"]
    return flops.to_numpy(dtype=float) / (1000 * np.where(rates > 0, rates, np.nan)) / gpus, names
