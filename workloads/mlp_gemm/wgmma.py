"""The rungs on Hopper's warpgroups, with their tensor maps and what prepares them."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

import numpy as np

from warpladder.workloads.api import Buffer, Case, CudaVariant, Launch, Params, TensorMap, ceil_div
from warpladder.workloads.hopper import ALIGNMENT_BYTES, BOX, DEPTH, MULTIPROCESSORS, THREADS
from warpladder.workloads.mlp_gemm.problem import ALPHA, BETA, Size, buffers, size_of
from warpladder.workloads.mlp_gemm.rungs import KERNELS

_ROWS: Final = 128  # of a tile, as in wgmma_tile.cuh
_FLOAT: Final = 4


def _pitch(extent: int) -> int:
    """Floats from row to row that the TMA takes: 16 bytes are four."""
    return ceil_div(extent, 4) * 4


def _padded(case: Case) -> Mapping[str, Buffer]:
    """Copies of A and B with such a pitch, of those whose own is none, by the name of the original."""
    inputs, _ = buffers(case)
    shapes = {name: inputs[name].shape for name in ("a", "b")}
    return {name: Buffer((rows, _pitch(columns))) for name, (rows, columns) in shapes.items() if columns % 4}


def _scratch(case: Case, config: Params) -> Mapping[str, Buffer]:
    return {f"{name}_padded": buffer for name, buffer in _padded(case).items()}


def _pad(name: str, copy: Buffer, case: Case) -> Launch:
    rows, pitch = copy.shape
    _, columns = buffers(case)[0][name].shape
    scalars = (np.int32(rows), np.int32(columns), np.int32(pitch))
    return Launch("pad", (ceil_div(rows * pitch, 256), 1, 1), (256, 1, 1), (name, f"{name}_padded", *scalars))


def _launches(case: Case, config: Params, floats_a_step: int) -> Sequence[Launch]:
    """One block a multiprocessor, which walks over the tiles.

    Args:
        case: the product.
        config: `columns` of a tile, and `stages`.
        floats_a_step: what a stage holds of one step along k besides the rows of A, in columns.
    """
    size, padded = size_of(case), _padded(case)
    columns, stages = config["columns"], config["stages"]
    a, b = (f"{name}_padded" if name in padded else name for name in ("a", "b"))
    maps = (TensorMap(a, (DEPTH, BOX), 128), TensorMap(b, (columns, DEPTH), 128))
    tiles = ceil_div(size.m, _ROWS) * ceil_div(size.n, columns)
    shared = stages * _FLOAT * DEPTH * (_ROWS + floats_a_step * columns) + ALIGNMENT_BYTES
    product = Launch(
        kernel=f"gemm<{columns}, {stages}>",
        grid=(min(tiles, MULTIPROCESSORS), 1, 1),
        block=(THREADS, 1, 1),
        args=(*maps, "c", "d", *_scalars(size)),
        dynamic_shared_bytes=shared,
    )
    return (*(_pad(name, copy, case) for name, copy in padded.items()), product)


def _scalars(size: Size) -> tuple[np.generic, ...]:
    return np.int32(size.m), np.int32(size.n), np.int32(size.k), np.float32(ALPHA), np.float32(BETA)


WGMMA_VARIANTS: Final = (
    CudaVariant(
        name="v12_wgmma_tf32",
        title="Warpgroups, TF32",
        role="rung",
        precision="tf32",
        configs=({"columns": 256, "stages": 4}, {"columns": 64, "stages": 8}),
        source=KERNELS / "v12_wgmma_tf32.cu",
        launches=partial(_launches, floats_a_step=1),
        scratch=_scratch,
        min_compute_capability=(9, 0),
        only_architecture="sm_90a",
    ),
    CudaVariant(
        name="v13_wgmma_3xtf32",
        title="Warpgroups, 3xTF32",
        role="rung",
        precision="3xtf32",
        configs=({"columns": 128, "stages": 4}, {"columns": 64, "stages": 6}),
        source=KERNELS / "v13_wgmma_3xtf32.cu",
        launches=partial(_launches, floats_a_step=2),
        scratch=_scratch,
        min_compute_capability=(9, 0),
        only_architecture="sm_90a",
    ),
)
