"""The rungs on Hopper's warpgroups and TMA, with their tensor maps and the launches that prepare operands for them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

import numpy as np

from warpladder.workloads.api import (
    ALIGNMENT_BYTES,
    MULTIPROCESSORS,
    WARPGROUP_THREADS,
    Buffer,
    Case,
    Constants,
    CudaVariant,
    Launch,
    Params,
    TensorMap,
    ceil_div,
)
from warpladder.workloads.mlp_gemm.problem import ALPHA, BETA, Size, buffers, size_of
from warpladder.workloads.mlp_gemm.rungs import KERNELS, BlockTile, cluster_sums
from warpladder.workloads.shares import Line, parts_of_tiles, shortest_shares

_TILE: Final = Constants(KERNELS / "wgmma_tile.cuh")
_TURNED: Final = Constants(KERNELS / "turned_product.cuh")["kTurned"]
_SHARES_TF32: Final = Constants(KERNELS / "v19_equal_shares_tf32.cu")
_PAD: Final = Constants(KERNELS / "pad_operands.cuh")
_SHARES_FP32: Final = Constants(KERNELS / "v20_equal_shares.cu")
_CLUSTER_SUMS: Final = Constants(KERNELS / "v18_cluster_sums_tf32.cu")
#: Equal parts of tiles may be so much longer than the shortest shares: blocks side by side then read the same rows and columns at a time.
#: On an H200, with parts 1.2 times as long, shape=700x5000x1300 takes 53 us in place of 56, and with parts 1.4 times as long
#: shape=1337x2209x901 takes 48 us in place of 49.
_LONGER_PARTS: Final = 1.4
#: Turns of the loop that a share has at least, and that take about as long as a second launch.
_LEAST_TURNS: Final = 4
#: Parts of tiles that are written and added in the time of a turn. On an H100 shape=6100x6007x1999 takes 604 us uncut, and 732 us cut.
_PARTS_A_TURN: Final = 16
#: The same for float32, without a second launch: turns that a share has at least, and that a block may wait for others.
_LEAST_TURNS_FP32: Final = 2
#: On an H100, 1031 parts of 32 KB, and a second launch, took 10 turns of 2.7 us; of parts of 64 KB half as many in turns twice as long.
_PARTS_A_TURN_FP32: Final = 128
_BOX: Final = 32  # rows of A that one copy brings
_FLOAT: Final = 4
_OPERANDS: Final = ("a", "b")
_RESULTS: Final = ("c", "d")  # what is added, and the sum


def _pitch(extent: int) -> int:
    """Floats from one row to the next. The TMA needs a multiple of 16 bytes, four floats."""
    return ceil_div(extent, 4) * 4


def _padded(case: Case, names: Sequence[str] = _OPERANDS) -> Mapping[str, Buffer]:
    """Padded copies of those matrices whose columns do not have such a pitch, by the name of the original."""
    shapes = {name: _matrices(case)[name].shape for name in names}
    return {name: Buffer((rows, _pitch(columns))) for name, (rows, columns) in shapes.items() if columns % 4}


def _matrices(case: Case) -> Mapping[str, Buffer]:
    inputs, outputs = buffers(case)
    return {**inputs, **outputs}


def _scratch(case: Case, config: Params, names: Sequence[str] = _OPERANDS) -> Mapping[str, Buffer]:
    return {_copy_of(name): buffer for name, buffer in _padded(case, names).items()}


def _copy_of(name: str) -> str:
    return f"{name}_padded"


def _pad(name: str, case: Case) -> Launch:
    """Fills the padded copy of a matrix."""
    return _between("pad", name, _copy_of(name), name, case)


def _pad_operands(case: Case) -> Sequence[Launch]:
    """One launch that fills the padded copies of those operands that have one; none where neither has."""
    padded, blocks, args = _padded(case), 0, list[Any]()
    for name, copy in padded.items():
        rows, columns = _matrices(case)[name].shape
        blocks += ceil_div(rows, _PAD["kPadRows"]) * ceil_div(copy.shape[1], _PAD["kPadSegment"])
        args += (name, _copy_of(name), np.int32(rows), np.int32(columns))
    kernels = {1: "pad_one", 2: "pad_two"}
    return [Launch(kernels[len(padded)], (blocks, 1, 1), (32, _PAD["kPadRows"], 1), tuple(args))] if padded else []


def _crop(name: str, case: Case) -> Launch:
    """Fills a matrix from its padded copy."""
    return _between("crop", _copy_of(name), name, name, case)


def _between(kernel: str, source: str, to: str, name: str, case: Case) -> Launch:
    rows, pitch = _padded(case, (name,))[name].shape
    _, columns = _matrices(case)[name].shape
    scalars = (np.int32(rows), np.int32(columns), np.int32(pitch))
    return Launch(kernel, (ceil_div(rows * pitch, 256), 1, 1), (256, 1, 1), (source, to, *scalars))


def _launches(case: Case, config: Params, kernel: str, floats_a_step: int = 1, tf32: bool = False) -> Sequence[Launch]:
    """One block for each multiprocessor, which computes one tile after another.

    Args:
        case: the product.
        config: `columns` of a tile, `stages`, and `blocks` of a cluster, which have tiles one below the other and fetch a share
            of the columns each.
        kernel: name of the variant, whose source says how many threads multiply.
        floats_a_step: values that a stage holds for each column and step along k: 1 for B alone, 2 for B and its rest.
        tf32: the TMA rounds the operands to TF32.
    """
    size, padded = size_of(case), _padded(case)
    columns, rows, depth, blocks = config["columns"], _TILE["kRows"], _TILE["kDepth"], config.get("blocks", 1)
    maps = _operand_maps(case, columns // blocks, tf32)
    clusters = min(ceil_div(size.m, blocks * rows) * ceil_div(size.n, columns), MULTIPROCESSORS // blocks)
    shared = config["stages"] * _FLOAT * depth * (rows + floats_a_step * columns) + ALIGNMENT_BYTES
    product = Launch(
        kernel=f"gemm<{', '.join(str(config[name]) for name in config)}>",
        grid=(blocks * clusters, 1, 1),
        block=(WARPGROUP_THREADS + Constants(KERNELS / f"{kernel}.cu")["kConsumers"], 1, 1),
        args=(*maps, "c", "d", *_scalars(size)),
        dynamic_shared_bytes=shared,
    )
    return (*(_pad(name, case) for name in padded), product)


def _operand_maps(case: Case, columns: int, tf32: bool) -> tuple[TensorMap, TensorMap]:
    """Tensor maps of A and B, or of their padded copies. A box of B has so many columns."""
    padded, depth = _padded(case), _TILE["kDepth"]
    a, b = (_copy_of(name) if name in padded else name for name in _OPERANDS)
    return TensorMap(a, (depth, _BOX), 128, tf32=tf32), TensorMap(b, (columns, depth), 128, tf32=tf32)


def _cluster_sums(case: Case, config: Params) -> Sequence[Launch]:
    """A cluster for each tile, whose blocks have a part each along k. Behind the stages are the sums for the other blocks."""
    size, rows, columns, parts = size_of(case), _TILE["kRows"], config["columns"], config["parts"]
    stages = config["stages"] * _TILE["kDepth"] * (rows + columns)
    sums = rows * columns // parts * (parts - 1)
    product = Launch(
        kernel=f"gemm<{columns}, {config['stages']}, {parts}>",
        grid=(parts * _tiles(size, columns), 1, 1),
        block=(_CLUSTER_SUMS["kConsumers"] + _CLUSTER_SUMS["kLanes"], 1, 1),
        args=(*_operand_maps(case, columns, tf32=True), "c", "d", *_scalars(size)),
        dynamic_shared_bytes=_FLOAT * (stages + sums) + ALIGNMENT_BYTES,
    )
    return (*(_pad(name, case) for name in _padded(case)), product)


def _tiles(size: Size, columns: int) -> int:
    """Tiles that cover D."""
    return ceil_div(size.m, _TILE["kRows"]) * ceil_div(size.n, columns)


def _leftover_shares(tiles: int, depth: int, most_blocks: int, least_turns: int, cut: Callable[[int, int, int], Line]) -> Line:
    """The tiles beyond the last full wave, as a line of `depth` turns of the loop each; no tiles if shares would be too short.

    `cut` makes shares of so many tiles, of so many turns each, for so many blocks at most.
    """
    left = tiles % most_blocks
    blocks = min(most_blocks, left * (depth // least_turns))
    return cut(left, depth, blocks) if blocks else Line(0, depth, depth)


def _cut_tiles(tiles: int, depth: int, most_blocks: int, parts: int) -> Line:
    """No tiles where cutting them would gain nothing. What takes a share is a block, or a cluster that leaves so many `parts`."""
    line = _leftover_shares(tiles, depth, most_blocks, _LEAST_TURNS, _equal_parts)
    gains = depth - line.share >= _LEAST_TURNS + parts * line.tiles * line.slices // _PARTS_A_TURN
    return line if gains else Line(0, depth, depth)


def _equal_parts(tiles: int, depth: int, blocks: int) -> Line:
    """As many equal parts of each tile as there are blocks for; the shortest shares where there are no two, or those are much shorter."""
    shortest = shortest_shares(tiles, depth, blocks)
    parts = parts_of_tiles(tiles, depth, max(1, blocks // tiles))
    return parts if parts.slices > 1 and parts.share <= _LONGER_PARTS * shortest.share else shortest


def _clusters(size: Size, config: Params) -> int:
    """Tiles of clusters that cover D: `blocks` tiles one below the other."""
    return ceil_div(size.m, config["blocks"] * _TILE["kRows"]) * ceil_div(size.n, config["columns"])


def _cut_wgmma_tiles(size: Size, config: Params) -> Line:
    """A turn has two steps, and a tile is that of a cluster."""
    blocks, depth = config["blocks"], ceil_div(size.k, 2 * _TILE["kDepth"])
    return _cut_tiles(_clusters(size, config), depth, MULTIPROCESSORS // blocks, parts=blocks)


def _shares_scratch(case: Case, config: Params) -> Mapping[str, Buffer]:
    """The sums of a cluster's part of a tile are number `cluster + tile`."""
    line = _cut_wgmma_tiles(size_of(case), config)
    parts = config["blocks"] * max(1, line.blocks + line.tiles - 1)
    return {"parts": Buffer((parts, _TILE["kRows"] * config["columns"])), **_scratch(case, config)}


def _equal_shares(case: Case, config: Params) -> Sequence[Launch]:
    """As `_launches`, but the tiles beyond the last full wave are cut into equal shares, and added up."""
    size, columns, blocks, of = size_of(case), config["columns"], config["blocks"], _SHARES_TF32
    *_, product = _launches(case, config, "v19_equal_shares_tf32", tf32=True)
    line = _cut_wgmma_tiles(size, config)
    whole = _clusters(size, config) - line.tiles
    scalars = (np.int32(whole), *line.scalars)
    m, n, _, alpha, beta = _scalars(size)
    product = replace(
        product,
        grid=(blocks * max(line.blocks, min(whole, MULTIPROCESSORS // blocks)), 1, 1),
        args=(*product.args[:4], "parts", *_scalars(size), *scalars),
    )
    added = Launch(
        kernel=f"add_parts<{columns}, {blocks}>",
        grid=(blocks * line.tiles, of["kRows"] * columns // (of["kConsumers"] * of["kFour"]), 1),
        block=(of["kConsumers"], 1, 1),
        args=("parts", "c", "d", m, n, alpha, beta, *scalars),
    )
    return (*_pad_operands(case), product, added) if line.tiles else (*_pad_operands(case), product)


def _staged(case: Case, config: Params) -> Sequence[Launch]:
    """As `_launches`, with tensor maps of C and D: their boxes are squares."""
    *pads, product = _launches(case, config, "v15_staged_results_tf32", tf32=True)
    padded = _padded(case, _RESULTS)
    c, d = (_copy_of(name) if name in padded else name for name in _RESULTS)
    a, b, _, _, *scalars = product.args
    maps = (a, b, *(TensorMap(name, (_BOX, _BOX), 128) for name in (c, d)))
    product = replace(product, args=(*maps, c, *scalars))
    return (*pads, _pad("c", case), product, _crop("d", case)) if padded else (*pads, product)


def _turned_scratch(case: Case, config: Params) -> Mapping[str, Buffer]:
    size = size_of(case)
    return {"b_turned": Buffer((size.k, _pitch(size.n))), **_scratch(case, config, ("a",))}


def _turned_columns(case: Case, config: Params) -> Sequence[Launch]:
    """Turns B; then a block for each tile."""
    size, tile, pads = size_of(case), BlockTile.of(config), _padded(case, ("a",))
    turn = Launch(
        kernel="turn",
        grid=(ceil_div(size.k, _TURNED), ceil_div(size.n, _TURNED), 1),
        block=(_TURNED, 8, 1),
        args=("b", "b_turned", np.int32(size.n), np.int32(size.k), np.int32(_pitch(size.n))),
    )
    maps = (
        TensorMap(_copy_of("a") if pads else "a", (tile.depth, tile.rows)),
        TensorMap("b_turned", (tile.depth, tile.columns)),
    )
    product = Launch(
        kernel=tile.kernel("gemm_turned", size, config["apart"]),
        grid=(tile.count(size), 1, 1),
        block=(tile.threads, 1, 1),
        args=(*maps, "c", "d", *_scalars(size)),
        dynamic_shared_bytes=_FLOAT * tile.stages * tile.depth * (tile.rows + tile.columns),
    )
    return (*(_pad(name, case) for name in pads), turn, product)


def _cut_turned_tiles(size: Size, config: Params) -> Line:
    """A turn has the steps of a stage. Each block leaves one part at most. There are no tiles where cutting them would gain nothing."""
    tile = BlockTile.of(config)
    depth = ceil_div(size.k, tile.depth)
    line = _leftover_shares(tile.count(size), depth, config["blocks"] * MULTIPROCESSORS, _LEAST_TURNS_FP32, shortest_shares)
    gains = depth - line.share >= _LEAST_TURNS_FP32 + line.blocks // _PARTS_A_TURN_FP32
    return line if gains else Line(0, depth, depth)


def _turned_shares_scratch(case: Case, config: Params) -> Mapping[str, Buffer]:
    """Parts by the number of the block that leaves them; a counter of blocks, and one of the parts of each cut tile."""
    tile, line = BlockTile.of(config), _cut_turned_tiles(size_of(case), config)
    parts = Buffer((max(1, line.blocks), tile.rows * tile.columns))
    return {"parts": parts, "counters": Buffer((1 + line.tiles,), "int32"), **_turned_scratch(case, config)}


def _turned_shares(case: Case, config: Params) -> Sequence[Launch]:
    """As `_turned_columns`, but the tiles beyond the last full wave are cut into equal shares. One launch prepares A and B."""
    size, tile, most_blocks = size_of(case), BlockTile.of(config), config["blocks"] * MULTIPROCESSORS
    *_, product = _turned_columns(case, config)
    line = _cut_turned_tiles(size, config)
    whole = tile.count(size) - line.tiles
    product = replace(
        product,
        kernel=tile.kernel("gemm_shares", size, config["apart"]),
        grid=(max(line.blocks, min(whole, most_blocks)), 1, 1),
        args=(*product.args[:4], "parts", "counters", *_scalars(size), np.int32(whole), *line.scalars),
    )
    return _prepare(size, product.args[0].buffer, 1 + line.tiles), product


def _prepare(size: Size, a: str, counters: int) -> Launch:
    """Turns B, sets counters to zero, and fills the copy of A with that name if it is one."""
    turns = ceil_div(size.k, _TURNED) * ceil_div(size.n, _SHARES_FP32["kStrip"])
    pads = 0 if a == "a" else ceil_div(size.k, _SHARES_FP32["kWarps"]) * ceil_div(_pitch(size.m), _SHARES_FP32["kRowPiece"])
    extents = (np.int32(extent) for extent in (size.m, size.n, size.k, turns, counters))
    return Launch(
        "prepare", (turns + pads, 1, 1), (_SHARES_FP32["kThreads"], 1, 1), ("a", a, "b", "b_turned", "counters", *extents)
    )


def _scalars(size: Size) -> tuple[np.generic, ...]:
    return np.int32(size.m), np.int32(size.n), np.int32(size.k), np.float32(ALPHA), np.float32(BETA)


WGMMA_VARIANTS: Final = (
    CudaVariant(
        name="v12_wgmma_tf32",
        title="Warpgroups, TF32",
        role="rung",
        precision="tf32",
        configs=({"columns": 256, "stages": 4}, {"columns": 128, "stages": 6}, {"columns": 64, "stages": 8}),
        source=KERNELS / "v12_wgmma_tf32.cu",
        launches=partial(_launches, kernel="v12_wgmma_tf32", tf32=True),
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
        launches=partial(_launches, kernel="v13_wgmma_3xtf32", floats_a_step=2),
        scratch=_scratch,
        min_compute_capability=(9, 0),
        only_architecture="sm_90a",
    ),
    CudaVariant(
        name="v14_shared_columns_tf32",
        title="Clusters that share columns, TF32",
        role="rung",
        precision="tf32",
        configs=({"columns": 256, "stages": 4, "blocks": 2}, {"columns": 64, "stages": 8, "blocks": 2}),
        source=KERNELS / "v14_shared_columns_tf32.cu",
        launches=partial(_launches, kernel="v14_shared_columns_tf32", tf32=True),
        scratch=_scratch,
        min_compute_capability=(9, 0),
        only_architecture="sm_90a",
    ),
    CudaVariant(
        name="v15_staged_results_tf32",
        title="Results by way of the stages, TF32",
        role="rung",
        precision="tf32",
        configs=({"columns": 256, "stages": 4, "blocks": 1}, {"columns": 256, "stages": 4, "blocks": 2}),
        source=KERNELS / "v15_staged_results_tf32.cu",
        launches=_staged,
        scratch=partial(_scratch, names=(*_OPERANDS, *_RESULTS)),
        min_compute_capability=(9, 0),
        only_architecture="sm_90a",
    ),
    CudaVariant(
        name="v16_cluster_sums",
        title="Parts along k in a cluster",
        role="rung",
        configs=(
            {"tile": "128x128x16", "thread": "8x8", "stages": 3, "parts": 2},
            {"tile": "128x64x16", "thread": "8x8", "stages": 3, "parts": 2},
            {"tile": "64x64x16", "thread": "4x4", "stages": 3, "parts": 2},
            {"tile": "32x32x16", "thread": "4x4", "stages": 4, "parts": 4},
        ),
        source=KERNELS / "v16_cluster_sums.cu",
        launches=cluster_sums,
        min_compute_capability=(9, 0),
        only_architecture="sm_90a",
    ),
    CudaVariant(
        name="v17_turned_columns",
        title="B turned beforehand, TMA",
        role="rung",
        configs=(
            {"tile": "128x128x32", "thread": "8x8", "stages": 3, "apart": 1},
            {"tile": "128x128x16", "thread": "8x8", "stages": 4, "apart": 2},
            {"tile": "128x256x32", "thread": "8x16", "stages": 4, "apart": 1},
        ),
        source=KERNELS / "v17_turned_columns.cu",
        launches=_turned_columns,
        scratch=_turned_scratch,
        min_compute_capability=(9, 0),
        only_architecture="sm_90a",
    ),
    CudaVariant(
        name="v18_cluster_sums_tf32",
        title="Parts along k in a cluster, TF32",
        role="rung",
        precision="tf32",
        configs=(
            {"columns": 128, "stages": 6, "parts": 2},
            {"columns": 64, "stages": 8, "parts": 2},
            {"columns": 64, "stages": 8, "parts": 4},
        ),
        source=KERNELS / "v18_cluster_sums_tf32.cu",
        launches=_cluster_sums,
        scratch=_scratch,
        min_compute_capability=(9, 0),
        only_architecture="sm_90a",
    ),
    CudaVariant(
        name="v19_equal_shares_tf32",
        title="Equal shares of a line of tiles, TF32",
        role="rung",
        precision="tf32",
        configs=(
            {"columns": 256, "stages": 4, "blocks": 1},
            {"columns": 256, "stages": 4, "blocks": 2},
            {"columns": 128, "stages": 6, "blocks": 2},
        ),
        source=KERNELS / "v19_equal_shares_tf32.cu",
        launches=_equal_shares,
        scratch=_shares_scratch,
        min_compute_capability=(9, 0),
        only_architecture="sm_90a",
    ),
    CudaVariant(
        name="v20_equal_shares",
        title="Equal shares of a line of tiles",
        role="rung",
        configs=(
            {"tile": "128x128x32", "thread": "8x8", "stages": 3, "apart": 2, "blocks": 2},
            {"tile": "128x128x32", "thread": "8x8", "stages": 3, "apart": 2, "blocks": 1},
            {"tile": "64x128x16", "thread": "8x8", "stages": 4, "apart": 4, "blocks": 4},
            {"tile": "128x64x16", "thread": "8x8", "stages": 4, "apart": 2, "blocks": 4},
            {"tile": "64x128x16", "thread": "8x8", "stages": 4, "apart": 4, "blocks": 2},
            {"tile": "128x64x16", "thread": "8x8", "stages": 4, "apart": 2, "blocks": 2},
        ),
        source=KERNELS / "v20_equal_shares.cu",
        launches=_turned_shares,
        scratch=_turned_shares_scratch,
        min_compute_capability=(9, 0),
        only_architecture="sm_90a",
    ),
)
