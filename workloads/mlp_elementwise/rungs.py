"""The ladder: every CUDA variant and how it is launched. What each tries stands at the head of its `.cu` file."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from warpladder.workloads.api import Case, CudaVariant, Launch, Params, ceil_div
from warpladder.workloads.mlp_elementwise.problem import BINARY, operation_of, rows_and_columns

KERNELS: Final = Path(__file__).resolve().parent / "kernels"

_THREADS: Final = 256
_SQUARE: Final = 16  # side of the first rung's blocks
_TILE: Final = 32
_VECTOR_TILE: Final = 64
_FLOAT4: Final = 4
#: Rows that a warp of the last rung keeps in registers, and most warps of a block.
_ROWS_A_WARP: Final = 1024
_MOST_WARPS: Final = 32


def _matrices(op: str) -> tuple[str, ...]:
    return ("x", "w", "y") if op in BINARY else ("x", "y")


def _launch(case: Case, kernel: str, grid: tuple[int, int], block: tuple[int, int]) -> Sequence[Launch]:
    """One launch of a kernel that takes the matrices, and their rows and columns."""
    sizes = (np.int32(extent) for extent in rows_and_columns(case))
    return [Launch(kernel, (*grid, 1), (*block, 1), (*_matrices(operation_of(case)), *sizes))]


def _naive(case: Case, config: Params) -> Sequence[Launch]:
    op, (rows, columns) = operation_of(case), rows_and_columns(case)
    if op in ("column_sum", "softmax"):
        return _launch(case, op, (ceil_div(columns, _THREADS), 1), (_THREADS, 1))
    return _launch(case, op, (ceil_div(columns, _SQUARE), ceil_div(rows, _SQUARE)), (_SQUARE, _SQUARE))


def _coalesced(case: Case, config: Params) -> Sequence[Launch]:
    op, (rows, columns) = operation_of(case), rows_and_columns(case)
    if op in ("column_sum", "softmax"):
        return _launch(case, op, (columns, 1), (_THREADS, 1))
    if op == "transpose":
        return _launch(case, op, (ceil_div(rows, _TILE), ceil_div(columns, _TILE)), (_TILE, 8))
    return _launch(case, op, (ceil_div(rows, _TILE), ceil_div(columns, 8)), (_TILE, 8))


def _vectorized(case: Case, config: Params) -> Sequence[Launch]:
    op, (rows, columns) = operation_of(case), rows_and_columns(case)
    vector = str(rows % _FLOAT4 == 0).lower()
    if op == "column_sum":
        warps = 4
        return _launch(case, f"column_sum<{vector}>", (ceil_div(columns, warps), 1), (32, warps))
    if op == "softmax":
        warps = _warps_a_column(rows)
        return _launch(case, f"softmax<{warps}, {vector}>", (columns, 1), (32 * warps, 1))
    if op == "transpose" and rows % _FLOAT4 == columns % _FLOAT4 == 0:
        grid = (ceil_div(rows, _VECTOR_TILE), ceil_div(columns, _VECTOR_TILE))
        return _launch(case, "transpose_vectors", grid, (_THREADS, 1))
    if op == "transpose":
        return _launch(case, "transpose_elements", (ceil_div(rows, _TILE), ceil_div(columns, _TILE)), (_TILE, 8))
    count = rows * columns  # a matrix as it lies; the last elements that fill no vector are the first threads'
    blocks = max(1, ceil_div(count // _FLOAT4, _THREADS))
    return [Launch(op, (blocks, 1, 1), (_THREADS, 1, 1), (*_matrices(op), np.int64(count)))]


def _warps_a_column(rows: int) -> int:
    """A power of two of warps that hold a column."""
    return 1 << (ceil_div(rows, _ROWS_A_WARP) - 1).bit_length()


def _fits_registers(case: Case, config: Params) -> str | None:
    rows, _ = rows_and_columns(case)
    if operation_of(case) != "softmax" or rows <= _ROWS_A_WARP * _MOST_WARPS:
        return None
    return f"keeps a column in the registers of a block, which hold {_ROWS_A_WARP * _MOST_WARPS} rows"


def _rung(name: str, title: str, launches: Callable[[Case, Params], Sequence[Launch]], **more: Any) -> CudaVariant:
    return CudaVariant(name, title, "rung", source=KERNELS / f"{name}.cu", launches=launches, **more)


CUDA_VARIANTS: Final = (
    _rung("v01_naive", "Thread an element", _naive),
    _rung("v02_coalesced", "Coalesced", _coalesced),
    _rung("v03_vectorized", "Vectors, columns in registers", _vectorized, skip=_fits_registers),
)
