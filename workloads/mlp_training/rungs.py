"""The ladder: every CUDA variant and how it is launched. What each tries stands at the head of its `.cu` file."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from warpladder.workloads.api import Case, Constants, CudaVariant, Launch, Params, Precision, ceil_div
from warpladder.workloads.mlp_training import full_waves, fused, wgmma, whole_matrices, wide_tiles

KERNELS: Final = Path(__file__).resolve().parent / "kernels"
_ON_THE_GPU: Final = Constants(KERNELS / "v02_on_the_gpu.cu")
_FINAL: Final = Constants(KERNELS / "v03_final.cu")

#: Blocks that a product is cut into: four for each multiprocessor of a GPU of 132. Two were slower at every batch.
_BLOCKS: Final = ({"blocks": 528},)


def _shared_tile(case: Case, config: Params) -> Sequence[Launch]:
    tile = _ON_THE_GPU["kTile"]
    return whole_matrices.launches(case, lambda m, n: ((ceil_div(m, tile), ceil_div(n, tile), 1), (tile, tile, 1)))


def _column_strip(case: Case, config: Params) -> Sequence[Launch]:
    rows, tile = _FINAL["kRows"], _FINAL["kTile"]
    return whole_matrices.launches(case, lambda m, n: ((ceil_div(m, rows), ceil_div(n, tile), 1), (tile, rows // tile, 1)))


def _fused(name: str, title: str, precision: Precision) -> CudaVariant:
    return CudaVariant(
        name=name,
        title=title,
        role="rung",
        precision=precision,
        configs=_BLOCKS,
        source=KERNELS / f"{name}.cu",
        launches=fused.launches,
        scratch=fused.scratch,
        min_compute_capability=(8, 0),  # cp.async
        graph=True,
    )


CUDA_VARIANTS: Final = (
    CudaVariant(
        name="v02_on_the_gpu",
        title="All on the GPU (version 2)",
        role="rung",
        source=KERNELS / "v02_on_the_gpu.cu",
        launches=_shared_tile,
        scratch=whole_matrices.scratch,
    ),
    CudaVariant(
        name="v03_final",
        title="Sums in registers (final version)",
        role="rung",
        source=KERNELS / "v03_final.cu",
        launches=_column_strip,
        scratch=whole_matrices.scratch,
    ),
    _fused("v04_fused", "Fused, tiles in registers", "fp32"),
    _fused("v05_three_products", "Fused, tensor cores, 3xTF32", "3xtf32"),
    _fused("v06_one_product", "Fused, tensor cores, TF32", "tf32"),
    CudaVariant(
        name="v07_warpgroups_3xtf32",
        title="Warpgroups, 3xTF32",
        role="rung",
        precision="3xtf32",
        source=KERNELS / "v07_warpgroups_3xtf32.cu",
        launches=wgmma.launches,
        scratch=wgmma.scratch,
        skip=wgmma.skip,
        min_compute_capability=(9, 0),
        only_architecture="sm_90a",
        graph=True,
    ),
    CudaVariant(
        name="v08_warpgroups_tf32",
        title="Warpgroups, TF32",
        role="rung",
        precision="tf32",
        configs=({"columns": 256}, {"columns": 64}),
        source=KERNELS / "v08_warpgroups_tf32.cu",
        launches=wide_tiles.launches,
        scratch=wide_tiles.scratch,
        skip=wgmma.skip,
        min_compute_capability=(9, 0),
        only_architecture="sm_90a",
        graph=True,
    ),
    CudaVariant(
        name="v09_full_waves",
        title="Large tiles, full waves",
        role="rung",
        source=KERNELS / "v09_full_waves.cu",
        launches=full_waves.launches,
        scratch=full_waves.scratch,
        skip=full_waves.skip,
        min_compute_capability=(8, 0),  # cp.async
        graph=True,
    ),
)
