"""The rungs of the ladder, each with its launches."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from warpladder.workloads.api import (
    MULTIPROCESSORS,
    Buffer,
    Case,
    Constants,
    Launch,
    Params,
    ceil_div,
    up_to,
)
from warpladder.workloads.ladder import launch, rungs_in, template
from warpladder.workloads.mlp_gemm.problem import ALPHA, BETA, Size, size_of

KERNELS: Final = Path(__file__).resolve().parent / "kernels"
_FLOAT_BYTES: Final = 4
_REGISTERS: Final = 128  # of a thread with a tile of 8x8, at most
_SHARED_TILE: Final = Constants(KERNELS / "v03_shared_tile.cu")
_COLUMN_STRIP: Final = Constants(KERNELS / "v04_column_strip.cu")
_REGISTER_TILE: Final = Constants(KERNELS / "v05_register_tile.cu")
_DOUBLE_BUFFER: Final = Constants(KERNELS / "v06_double_buffer.cu")
_WARP_TILE: Final = Constants(KERNELS / "v07_warp_tile.cu")
_TENSOR_CORES: Final = Constants(KERNELS / "v09_tensor_cores_tf32.cu").within("RoundedProduct")
_THREE_PRODUCTS: Final = Constants(KERNELS / "v10_tensor_cores_3xtf32.cu").within("ThreefoldProduct")


def arguments(size: Size) -> tuple[Any, ...]:
    """Arguments of every kernel that computes all of D: the matrices, m, n, k, alpha and beta."""
    return ("a", "b", "c", "d", *scalars(size))


def scalars(size: Size) -> tuple[np.generic, ...]:
    return np.int32(size.m), np.int32(size.n), np.int32(size.k), np.float32(ALPHA), np.float32(BETA)


def _one_dimensional(case: Case, config: Params) -> Sequence[Launch]:
    size, threads = size_of(case), config["threads"]
    return [launch("gemm", ceil_div(size.m * size.n, threads), threads, *arguments(size))]


def _squares(case: Case, block: int) -> Sequence[Launch]:
    size = size_of(case)
    return [launch("gemm", (ceil_div(size.m, block), ceil_div(size.n, block)), (block, block), *arguments(size))]


def _column_strip(case: Case, config: Params) -> Sequence[Launch]:
    """A thread for each row of the strip; as many of them side by side as the steps along k that they copy of B."""
    size, rows, steps = size_of(case), _COLUMN_STRIP["kRows"], _COLUMN_STRIP["kDepth"]
    grid = (ceil_div(size.m, rows), ceil_div(size.n, _COLUMN_STRIP["kColumns"]))
    return [launch("gemm", grid, (steps, rows // steps), *arguments(size))]


@dataclass(frozen=True)
class BlockTile:
    """The tile of a block, in tiles of its threads: `{"tile": "128x128x16", "thread": "8x8", "stages": 3}`, rows first."""

    rows: int
    columns: int
    depth: int
    thread_rows: int
    thread_columns: int
    stages: int

    @classmethod
    def of(cls, config: Params) -> "BlockTile":
        rows, columns, depth = map(int, config["tile"].split("x"))
        thread_rows, thread_columns = map(int, config["thread"].split("x"))
        return cls(rows, columns, depth, thread_rows, thread_columns, config["stages"])

    @property
    def threads(self) -> int:
        return self.rows // self.thread_rows * (self.columns // self.thread_columns)

    @property
    def shared_bytes(self) -> int:
        """Columns of B are padded by four."""
        return _FLOAT_BYTES * self.stages * self.depth * (self.rows + self.columns + 4)

    def count(self, size: Size) -> int:
        """Tiles that cover D."""
        return ceil_div(size.m, self.rows) * ceil_div(size.n, self.columns)

    def kernel(self, name: str, size: Size, *more: int) -> str:
        """The kernel of that name with this tile and further arguments of its template.

        Registers determine how many blocks fit on a multiprocessor.
        """
        warps_down = self.rows // (_WARP_TILE["kLaneRows"] * self.thread_rows)
        blocks = 65_536 // (_REGISTERS * self.threads)
        shape = (self.rows, self.columns, self.depth, self.thread_rows, self.thread_columns, warps_down, self.stages, blocks)
        has_whole_tiles = size.m % self.rows == 0 and size.n % self.columns == 0 and size.k % self.depth == 0
        return template(name, *shape, has_whole_tiles, *more)


@dataclass(frozen=True)
class Split:
    """`whole_tiles` tiles are computed whole. Each of `others` is split along k into `parts` parts of `part_depth` steps."""

    whole_tiles: int
    others: int
    parts: int
    part_depth: int

    @classmethod
    def of(cls, size: Size, tile: BlockTile, parts: int) -> "Split":
        """Only the tiles of the last, incomplete wave are split, and only if their parts take less time than the wave does.

        All parts but the last have the same depth.
        """
        tiles = tile.count(size)
        part_depth = ceil_div(ceil_div(size.k, tile.depth), parts) * tile.depth
        parts = ceil_div(size.k, part_depth)
        others = tiles % MULTIPROCESSORS
        if ceil_div(others * parts, MULTIPROCESSORS) >= parts:
            others = 0
        return cls(tiles - others, others, parts, part_depth)


def _split_scratch(case: Case, config: Params) -> Mapping[str, Buffer]:
    tile, split = BlockTile.of(config), Split.of(size_of(case), BlockTile.of(config), config["parts"])
    return {"partial_sums": Buffer((max(1, split.others * split.parts), tile.rows * tile.columns))}


def _split_sums(case: Case, config: Params) -> Sequence[Launch]:
    size, tile = size_of(case), BlockTile.of(config)
    split = Split.of(size, tile, config["parts"])
    *matrices, m, n, k, alpha, beta = arguments(size)
    products = launch(
        *(tile.kernel("gemm_parts", size), split.whole_tiles + split.others * split.parts, tile.threads),
        *(*matrices, "partial_sums", m, n, k, alpha, beta, split.whole_tiles, split.parts, split.part_depth),
        shared_bytes=tile.shared_bytes,
    )
    if not split.others:
        return [products]
    grid = (split.others, tile.thread_rows * tile.thread_columns // _WARP_TILE["kFour"])
    sums = ("partial_sums", "c", "d", m, n, beta, split.whole_tiles, split.parts)
    return [products, launch(tile.kernel("add_parts", size), grid, tile.threads, *sums)]


def cluster_sums(case: Case, config: Params) -> Sequence[Launch]:
    """A cluster for each tile, whose blocks have a part each along k. Their sums take the place of the stages."""
    size, tile, parts = size_of(case), BlockTile.of(config), config["parts"]
    part_depth = ceil_div(ceil_div(size.k, tile.depth), parts) * tile.depth
    kernel, shared_bytes = (
        tile.kernel("gemm_cluster", size, parts),
        max(tile.shared_bytes, _FLOAT_BYTES * tile.rows * tile.columns),
    )
    return [launch(kernel, tile.count(size) * parts, tile.threads, *arguments(size), part_depth, shared_bytes=shared_bytes)]


def _register_tile(case: Case, config: Params, of: Constants) -> Sequence[Launch]:
    size = size_of(case)
    aligned = size.m % 4 == 0 and size.k % 4 == 0  # columns of every matrix are whole vectors of 16 bytes
    grid = (ceil_div(size.m, of["kTile"]), ceil_div(size.n, of["kTile"]))
    return [launch(template("gemm", aligned), grid, of["kThreads"], *arguments(size))]


def _warp_tile(case: Case, config: Params) -> Sequence[Launch]:
    size, tile = size_of(case), BlockTile.of(config)
    kernel = tile.kernel("gemm", size)
    return [launch(kernel, tile.count(size), tile.threads, *arguments(size), shared_bytes=tile.shared_bytes)]


def _tensor_cores(case: Case, config: Params, kernel: str, of: Constants) -> Sequence[Launch]:
    """A warp computes `kWarpRows` x `kWarpColumns` elements of D. Columns of B are padded by eight floats, rows of A by
    four."""
    size, stages = size_of(case), config["stages"]
    rows, columns, depth = map(int, config["tile"].split("x"))
    has_whole_tiles = size.m % rows == 0 and size.n % columns == 0 and size.k % depth == 0
    return [
        launch(
            *(
                template(kernel, rows, columns, depth, stages, has_whole_tiles),
                ceil_div(size.m, rows) * ceil_div(size.n, columns),
            ),
            *(rows // of["kWarpRows"] * (columns // of["kWarpColumns"]) * of["kWarp"], *arguments(size)),
            shared_bytes=_FLOAT_BYTES * stages * (depth * (rows + 4) + columns * (depth + 8)),
        )
    ]


_rung: Final = rungs_in(KERNELS)
_ONE_DIMENSIONAL: Final = up_to(138, "GFLOP", lambda case: case.flops / 1e9)
_WARP_TILES: Final[tuple[Params, ...]] = (
    {"tile": "128x128x16", "thread": "8x8", "stages": 3},
    {"tile": "64x64x16", "thread": "8x8", "stages": 3},
)
_SPLITS: Final = [{**_WARP_TILES[tile], "parts": parts} for tile, parts in ((0, 4), (0, 5), (1, 4))]
_TENSOR_TILES: Final[tuple[Params, ...]] = ({"tile": "128x128x32", "stages": 3},)
#: Copies beside the products: `cp.async`.
_ASYNCHRONOUS: Final[dict[str, Any]] = {"min_compute_capability": (8, 0)}

CUDA_VARIANTS: Final = (
    _rung("v01_one_dimensional", "1-D blocks (algorithm 0)", _one_dimensional, [{"threads": 256}], skip=_ONE_DIMENSIONAL),
    _rung(
        *("v02_two_dimensional", "2-D blocks (algorithm 1)", lambda case, config: _squares(case, config["block"])),
        configs=[{"block": 16}, {"block": 32}],
    ),
    _rung("v03_shared_tile", "Shared 32x32 tiles (algorithm 2)", lambda case, config: _squares(case, _SHARED_TILE["kTile"])),
    _rung("v04_column_strip", "Sums in registers (algorithm 3)", _column_strip),
    _rung("v05_register_tile", "8x8 tile a thread", partial(_register_tile, of=_REGISTER_TILE)),
    _rung("v06_double_buffer", "Two buffers", partial(_register_tile, of=_DOUBLE_BUFFER)),
    _rung("v07_warp_tile", "Warp tiles, asynchronous copies", _warp_tile, _WARP_TILES, **_ASYNCHRONOUS),
    _rung(*("v08_split_sums", "Leftover tiles split along k", _split_sums, _SPLITS), scratch=_split_scratch, **_ASYNCHRONOUS),
    _rung(
        *("v09_tensor_cores_tf32", "Tensor cores, TF32", partial(_tensor_cores, kernel="gemm", of=_TENSOR_CORES)),
        *(_TENSOR_TILES, "tf32"),
        **_ASYNCHRONOUS,
    ),
    _rung(
        *("v10_tensor_cores_3xtf32", "Tensor cores, 3xTF32"),
        *(partial(_tensor_cores, kernel="gemm_threefold", of=_THREE_PRODUCTS), _TENSOR_TILES, "3xtf32"),
        **_ASYNCHRONOUS,
    ),
)
