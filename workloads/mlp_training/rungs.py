"""The ladder: every CUDA variant and how it is launched. What each tries stands at the head of its `.cu` file."""

from pathlib import Path
from types import ModuleType
from typing import Any, Final

from warpladder.workloads.api import Constants, CudaVariant, Precision, ceil_div
from warpladder.workloads.ladder import HOPPER, rungs_in
from warpladder.workloads.mlp_training import full_waves, fused, wgmma, whole_matrices, wide_tiles

KERNELS: Final = Path(__file__).resolve().parent / "kernels"
_ON_THE_GPU: Final = Constants(KERNELS / "v02_on_the_gpu.cu")
_FINAL: Final = Constants(KERNELS / "v03_final.cu")

#: Blocks that a product is cut into: four for each multiprocessor of a GPU of 132. Two were slower at every batch.
_BLOCKS: Final = ({"blocks": 528},)


_rung: Final = rungs_in(KERNELS)


def _whole_matrices(name: str, title: str, shape: whole_matrices.Shape) -> CudaVariant:
    return _rung(name, title, lambda case, config: whole_matrices.launches(case, shape), scratch=whole_matrices.scratch)


def _shared_tile(m: int, n: int) -> tuple[tuple[int, int], tuple[int, int]]:
    tile = _ON_THE_GPU["kTile"]
    return (ceil_div(m, tile), ceil_div(n, tile)), (tile, tile)


def _column_strip(m: int, n: int) -> tuple[tuple[int, int], tuple[int, int]]:
    rows, tile = _FINAL["kRows"], _FINAL["kTile"]
    return (ceil_div(m, rows), ceil_div(n, tile)), (tile, rows // tile)


def _step(of: ModuleType, name: str, title: str, precision: Precision = "fp32", **more: Any) -> CudaVariant:
    """A rung whose module has its launches and its scratch; with `cp.async` where nothing newer is named."""
    more = {"min_compute_capability": (8, 0), **more}
    return _rung(name, title, of.launches, precision=precision, scratch=of.scratch, graph=True, **more)


CUDA_VARIANTS: Final = (
    _whole_matrices("v02_on_the_gpu", "All on the GPU (version 2)", _shared_tile),
    _whole_matrices("v03_final", "Sums in registers (final version)", _column_strip),
    _step(fused, "v04_fused", "Fused, tiles in registers", configs=_BLOCKS),
    _step(fused, "v05_three_products", "Fused, tensor cores, 3xTF32", "3xtf32", configs=_BLOCKS),
    _step(fused, "v06_one_product", "Fused, tensor cores, TF32", "tf32", configs=_BLOCKS),
    _step(wgmma, "v07_warpgroups_3xtf32", "Warpgroups, 3xTF32", "3xtf32", skip=fused.skip, **HOPPER),
    _step(
        *(wide_tiles, "v08_warpgroups_tf32", "Warpgroups, TF32", "tf32"),
        configs=({"columns": 256}, {"columns": 64}),
        skip=fused.skip,
        **HOPPER,
    ),
    _step(full_waves, "v09_full_waves", "Large tiles, full waves", skip=fused.skip),
)
