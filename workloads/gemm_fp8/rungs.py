"""The rungs of FP8: those of `gemm_bf16` on warpgroups, and one whose sums keep more bits."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from warpladder.workloads.api import Case, Launch, Params
from warpladder.workloads.gemm_bf16.problem import FP8
from warpladder.workloads.gemm_bf16.rungs import ON_HOPPER, on_warpgroups, rung, scratch, staged

KERNELS: Final = Path(__file__).resolve().parent / "kernels"


def _promoted(case: Case, config: Params) -> Sequence[Launch]:
    """As `staged`, with stages between promotions where the blocks of a cluster stand."""
    *pads, product = staged(case, {name: value for name, value in config.items() if name != "every"}, FP8)
    return (*pads, replace(product, kernel=product.kernel.replace(", 1, 1, ", f", {config['every']}, ")))


_ON_WARPGROUPS: Final = on_warpgroups(
    FP8,
    KERNELS,
    "v01_warpgroups",
    "v02_specialised",
    "v03_staged_results",
    "v04_clusters",
    "v05_equal_shares",
    "v06_early_loads",
    "v07_narrow_last",
    "v09_plain_copies",
    "v10_one_warpgroup",
    "v11_rows_apart",
    "v12_taking_turns",
)
_PROMOTED_SUMS: Final = rung(
    "v08_promoted_sums",
    "Sums of float32 every few stages",
    _promoted,
    (
        {"columns": 128, "stages": 6, "boxes": 2, "every": 4, "band": 16},
        {"columns": 128, "stages": 6, "boxes": 2, "every": 1, "band": 16},
    ),
    KERNELS,
    FP8,
    scratch=partial(scratch, types=FP8),
    **ON_HOPPER,
)

CUDA_VARIANTS: Final = (*_ON_WARPGROUPS[:7], _PROMOTED_SUMS, *_ON_WARPGROUPS[7:])
