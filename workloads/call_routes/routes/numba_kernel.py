"""The transposition in Numba's Python. Importing this module imports Numba's CUDA target."""

from typing import Any

from numba import cuda, float32

from warpladder.workloads.call_routes.rungs import block

TILE, ROWS_AT_ONCE, _ = block()
PADDED = TILE + 1


def transpose(x: Any, y: Any) -> None:
    """The kernel `v01_padded_tile.cu`, line by line."""
    tile = cuda.shared.array((TILE, PADDED), float32)
    top, left = cuda.blockIdx.y * TILE, cuda.blockIdx.x * TILE
    height, width = x.shape
    for r in range(cuda.threadIdx.y, TILE, ROWS_AT_ONCE):
        row, column = top + r, left + cuda.threadIdx.x
        if row < height and column < width:
            tile[r, cuda.threadIdx.x] = x[row, column]
    cuda.syncthreads()
    for r in range(cuda.threadIdx.y, TILE, ROWS_AT_ONCE):
        row, column = left + r, top + cuda.threadIdx.x
        if row < width and column < height:
            y[row, column] = tile[cuda.threadIdx.x, r]
