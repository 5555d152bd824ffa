"""The ladder: every CUDA variant and how it is launched. What each tries stands at the head of its `.cu` file."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np

from warpladder.workloads.api import Case, Constants, Launch, Params, ceil_div
from warpladder.workloads.ladder import launch, rungs_in, template
from warpladder.workloads.mlp_elementwise.problem import BINARY, operation_of, rows_and_columns

KERNELS: Final = Path(__file__).resolve().parent / "kernels"

#: Threads of the first rung's blocks, which may have any number; along both sides where a block is square.
_THREADS: Final = 256
_SQUARE: Final = 16
_FLOAT4: Final = 4
_MOST_WARPS: Final = 32  # of a block
_COALESCED: Final = Constants(KERNELS / "v02_coalesced.cu")
_VECTORIZED: Final = Constants(KERNELS / "v03_vectorized.cu")


def _matrices(op: str) -> tuple[str, ...]:
    return ("x", "w", "y") if op in BINARY else ("x", "y")


def _launch(case: Case, kernel: str, grid: tuple[int, int], block: tuple[int, int]) -> Sequence[Launch]:
    """One launch of a kernel that takes the matrices, and their rows and columns."""
    return [launch(kernel, grid, block, *_matrices(operation_of(case)), *rows_and_columns(case))]


def _naive(case: Case, config: Params) -> Sequence[Launch]:
    op, (rows, columns) = operation_of(case), rows_and_columns(case)
    if op in ("column_sum", "softmax"):
        return _launch(case, op, (ceil_div(columns, _THREADS), 1), (_THREADS, 1))
    return _launch(case, op, (ceil_div(columns, _SQUARE), ceil_div(rows, _SQUARE)), (_SQUARE, _SQUARE))


def _coalesced(case: Case, config: Params) -> Sequence[Launch]:
    op, (rows, columns) = operation_of(case), rows_and_columns(case)
    if op in ("column_sum", "softmax"):
        return _launch(case, op, (columns, 1), (_COALESCED["kThreads"], 1))
    tile, block = _COALESCED["kTile"], (_COALESCED["kTile"], _COALESCED["kTileRows"])
    covered = (tile, tile) if op == "transpose" else block
    return _launch(case, op, (ceil_div(rows, covered[0]), ceil_div(columns, covered[1])), block)


def _vectorized(case: Case, config: Params) -> Sequence[Launch]:
    op, (rows, columns) = operation_of(case), rows_and_columns(case)
    vector = rows % _FLOAT4 == 0
    threads, lanes = _VECTORIZED["kThreads"], _VECTORIZED["kLanes"]
    if op == "column_sum":
        warps = 4
        return _launch(case, template("column_sum", vector), (ceil_div(columns, warps), 1), (lanes, warps))
    if op == "softmax":
        warps = _warps_a_column(rows)
        return _launch(case, template("softmax", warps, vector), (columns, 1), (lanes * warps, 1))
    if op == "transpose" and rows % _FLOAT4 == columns % _FLOAT4 == 0:
        tile = _VECTORIZED.within("transpose_vectors")["kTile"]
        return _launch(case, "transpose_vectors", (ceil_div(rows, tile), ceil_div(columns, tile)), (threads, 1))
    if op == "transpose":
        return _transpose_elements(case)
    count = rows * columns  # a matrix as it lies; the last elements that fill no vector are the first threads'
    blocks = max(1, ceil_div(count // _FLOAT4, threads))
    return [launch(op, blocks, threads, *_matrices(op), np.int64(count))]


def _transpose_elements(case: Case) -> Sequence[Launch]:
    of, (rows, columns) = _VECTORIZED.within("transpose_elements"), rows_and_columns(case)
    height, sector, shifted = of["kHeight"], of["kSector"], columns % of["kSector"] != 0
    down = ceil_div(columns + sector - 1, height - sector) if shifted else ceil_div(columns, height)
    grid = (ceil_div(rows, of["kWidth"]), down)
    return _launch(case, template("transpose_elements", shifted), grid, (_VECTORIZED["kThreads"], 1))


def _block_a_column(case: Case, config: Params) -> Sequence[Launch]:
    rows, columns = rows_and_columns(case)
    kernel = template("column_sum", rows % _FLOAT4 == 0, config["threads"], config["loads"], config["bring"])
    return [launch(kernel, columns, config["threads"], "x", "y", rows)]


def _sums_only(case: Case, config: Params) -> str | None:
    return None if operation_of(case) == "column_sum" else "sums columns; the other operations are those of v03_vectorized"


def _rows_a_warp() -> int:
    """Rows of a column that a warp of the last rung keeps in registers."""
    of = _VECTORIZED.within("softmax")
    return of["kElements"] * of["kLanes"]


def _warps_a_column(rows: int) -> int:
    """A power of two of warps that hold a column."""
    return 1 << (ceil_div(rows, _rows_a_warp()) - 1).bit_length()


def _fits_registers(case: Case, config: Params) -> str | None:
    rows, _ = rows_and_columns(case)
    most_rows = _rows_a_warp() * _MOST_WARPS
    if operation_of(case) != "softmax" or rows <= most_rows:
        return None
    return f"keeps a column in the registers of a block, which hold {most_rows} rows"


_rung: Final = rungs_in(KERNELS)

CUDA_VARIANTS: Final = (
    _rung("v01_naive", "Thread an element", _naive),
    _rung("v02_coalesced", "Coalesced", _coalesced),
    _rung("v03_vectorized", "Vectors, columns in registers", _vectorized, skip=_fits_registers),
    _rung(
        *("v04_block_a_column", "Sum of a column by a block of its size", _block_a_column),
        configs=(
            {"threads": 1024, "loads": 2, "bring": 256},
            {"threads": 384, "loads": 6, "bring": 32},
            {"threads": 256, "loads": 5, "bring": 32},
            {"threads": 32, "loads": 8, "bring": 32},
            {"threads": 32, "loads": 8, "bring": 256},
        ),
        skip=_sums_only,
        graph=True,
    ),
)
