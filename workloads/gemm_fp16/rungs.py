"""The rungs of FP16: those of `gemm_bf16` on warpgroups."""

from pathlib import Path
from typing import Final

from warpladder.workloads.gemm_bf16.problem import FP16
from warpladder.workloads.gemm_bf16.rungs import on_warpgroups

KERNELS: Final = Path(__file__).resolve().parent / "kernels"

CUDA_VARIANTS: Final = on_warpgroups(
    FP16,
    KERNELS,
    "v01_warpgroups",
    "v02_specialised",
    "v03_staged_results",
    "v04_clusters",
    "v05_equal_shares",
    "v06_early_loads",
    "v07_narrow_last",
    "v08_plain_copies",
    "v09_one_warpgroup",
    "v10_rows_apart",
    "v11_taking_turns",
)
