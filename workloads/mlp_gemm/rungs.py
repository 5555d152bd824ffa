"""The rungs of the ladder, each with its launches."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from workloads.api import Case, CudaVariant, Launch, Params, Precision, ceil_div
from workloads.mlp_gemm.problem import ALPHA, BETA, Size, size_of

KERNELS: Final = Path(__file__).resolve().parent / "kernels"


def _arguments(size: Size) -> tuple[Any, ...]:
    """Of every kernel that computes all of D: the matrices, m, n, k, alpha and beta."""
    scalars = (np.int32(size.m), np.int32(size.n), np.int32(size.k), np.float32(ALPHA), np.float32(BETA))
    return ("a", "b", "c", "d", *scalars)


def _one_dimensional(case: Case, config: Params) -> Sequence[Launch]:
    size, threads = size_of(case), config["threads"]
    return [Launch("gemm", (ceil_div(size.m * size.n, threads), 1, 1), (threads, 1, 1), _arguments(size))]


def _two_dimensional(case: Case, config: Params) -> Sequence[Launch]:
    size, block = size_of(case), config["block"]
    grid = (ceil_div(size.m, block), ceil_div(size.n, block), 1)
    return [Launch("gemm", grid, (block, block, 1), _arguments(size))]


def _shared_tile(case: Case, config: Params) -> Sequence[Launch]:
    size = size_of(case)
    return [Launch("gemm", (ceil_div(size.m, 32), ceil_div(size.n, 32), 1), (32, 32, 1), _arguments(size))]


def _column_strip(case: Case, config: Params) -> Sequence[Launch]:
    size = size_of(case)
    return [Launch("gemm", (ceil_div(size.m, 64), ceil_div(size.n, 16), 1), (16, 4, 1), _arguments(size))]


def _rung(
    name: str,
    title: str,
    launches: Callable[[Case, Params], Sequence[Launch]],
    configs: tuple[Params, ...] = ({},),
    precision: Precision = "fp32",
    **more: Any,
) -> CudaVariant:
    return CudaVariant(name, title, "rung", precision, configs, source=KERNELS / f"{name}.cu", launches=launches, **more)


CUDA_VARIANTS: Final = (
    _rung("v01_one_dimensional", "1-D blocks (algorithm 0)", _one_dimensional, ({"threads": 256},)),
    _rung("v02_two_dimensional", "2-D blocks (algorithm 1)", _two_dimensional, ({"block": 16}, {"block": 32})),
    _rung("v03_shared_tile", "Shared 32x32 tiles (algorithm 2)", _shared_tile),
    _rung("v04_column_strip", "Sums in registers (algorithm 3)", _column_strip),
)
