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
    Launch,
    Params,
    TensorMap,
    ceil_div,
)
from warpladder.workloads.ladder import HOPPER, launch, rungs_in, template
from warpladder.workloads.mlp_gemm.problem import Size, buffers, size_of
from warpladder.workloads.mlp_gemm.rungs import KERNELS, BlockTile, cluster_sums, scalars
from warpladder.workloads.shares import Line, parts_of_tiles, shortest_shares

_TILE: Final = Constants(KERNELS / "wgmma_tile.cuh")
_TURNED: Final = Constants(KERNELS / "turned_product.cuh")["kTurned"]
_SHARES_TF32: Final = Constants(KERNELS / "v19_equal_shares_tf32.cu")
_PAD: Final = Constants(KERNELS / "pad_operands.cuh")
_LINES: Final = Constants(KERNELS / "pad_lines.cuh")
_SHARES_FP32: Final = Constants(KERNELS / "v20_equal_shares.cu")
_CLUSTER_SUMS: Final = Constants(KERNELS / "v18_cluster_sums_tf32.cu")
_EARLY: Final = Constants(KERNELS / "v21_early_loads_tf32.cu")
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
#: Slices of k that clusters of the same tile have at most.
_MOST_SLICES: Final = 8
#: Clusters of so many blocks that run at once: multiprocessors lie in groups that no cluster crosses.
_CLUSTERS_AT_ONCE: Final = {1: MULTIPROCESSORS, 2: MULTIPROCESSORS // 2, 4: 30}
_BOX: Final = 32  # rows of A that one copy brings
_FLOAT: Final = 4
_OPERANDS: Final = ("a", "b")
_RESULTS: Final = ("c", "d")  # what is added, and the sum


def _pitch(extent: int) -> int:
    """Floats from one row to the next. The TMA needs a multiple of 16 bytes, four floats."""
    return ceil_div(extent, 4) * 4


def _line_pitch(extent: int) -> int:
    """The same in whole lines: the TMA then reads each line once."""
    return ceil_div(extent, _LINES["kPadLine"]) * _LINES["kPadLine"]


def _padded(case: Case, names: Sequence[str] = _OPERANDS, pitch: Callable[[int], int] = _pitch) -> Mapping[str, Buffer]:
    """Padded copies of those matrices whose columns do not have a pitch that the TMA takes, by the name of the original."""
    shapes = {name: _matrices(case)[name].shape for name in names}
    return {name: Buffer((rows, pitch(columns))) for name, (rows, columns) in shapes.items() if columns % 4}


def _matrices(case: Case) -> Mapping[str, Buffer]:
    inputs, outputs = buffers(case)
    return {**inputs, **outputs}


def _scratch(case: Case, config: Params, names: Sequence[str] = _OPERANDS) -> Mapping[str, Buffer]:
    return {_copy_of(name): buffer for name, buffer in _padded(case, names).items()}


def _lines_scratch(case: Case) -> Mapping[str, Buffer]:
    return {_copy_of(name): buffer for name, buffer in _padded(case, pitch=_line_pitch).items()}


def _copy_of(name: str) -> str:
    return f"{name}_padded"


def _pads(case: Case, names: Sequence[str] = _OPERANDS) -> Sequence[Launch]:
    """One launch for each of those matrices that has a padded copy, which it fills."""
    return [_between("pad", name, _copy_of(name), name, case) for name in _padded(case, names)]


def _pad_operands(case: Case, pitch: Callable[[int], int] = _pitch) -> Sequence[Launch]:
    """One launch that fills the padded copies of those operands that have one; none where neither has."""
    padded, blocks, args = _padded(case, pitch=pitch), 0, list[Any]()
    for name, copy in padded.items():
        rows, columns = _matrices(case)[name].shape
        blocks += ceil_div(rows, _PAD["kPadRows"]) * ceil_div(copy.shape[1], _PAD["kPadSegment"])
        args += (name, _copy_of(name), rows, columns)
    kernels = {1: "pad_one", 2: "pad_two"}
    return [launch(kernels[len(padded)], blocks, (32, _PAD["kPadRows"]), *args)] if padded else []


def _between(kernel: str, source: str, to: str, name: str, case: Case) -> Launch:
    rows, pitch = _padded(case, (name,))[name].shape
    _, columns = _matrices(case)[name].shape
    return launch(kernel, ceil_div(rows * pitch, 256), 256, source, to, rows, columns, pitch)


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
    size, columns, rows, blocks = size_of(case), config["columns"], _TILE["kRows"], config.get("blocks", 1)
    clusters = min(ceil_div(size.m, blocks * rows) * ceil_div(size.n, columns), MULTIPROCESSORS // blocks)
    threads = WARPGROUP_THREADS + Constants(KERNELS / f"{kernel}.cu")["kConsumers"]
    product = launch(
        *(template("gemm", *config.values()), blocks * clusters, threads),
        *(*_operand_maps(case, columns // blocks, tf32), "c", "d", *scalars(size)),
        shared_bytes=config["stages"] * _FLOAT * _TILE["kDepth"] * (rows + floats_a_step * columns) + ALIGNMENT_BYTES,
    )
    return (*_pads(case), product)


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
    tiles, threads = ceil_div(size.m, rows) * ceil_div(size.n, columns), _CLUSTER_SUMS["kConsumers"] + _CLUSTER_SUMS["kLanes"]
    product = launch(
        *(template("gemm", columns, config["stages"], parts), parts * tiles, threads),
        *(*_operand_maps(case, columns, tf32=True), "c", "d", *scalars(size)),
        shared_bytes=_FLOAT * (stages + sums) + ALIGNMENT_BYTES,
    )
    return (*_pads(case), product)


def _slices(size: Size, config: Params) -> int:
    """Slices of k that clusters of the same tile have: as many as run at once. One where more would save less than their second launch takes."""
    (rows, columns), parts = _tile(config), config["parts"]
    turns = ceil_div(ceil_div(size.k, 2 * _TILE["kDepth"]), parts)
    most = min(_MOST_SLICES, turns // 2, _CLUSTERS_AT_ONCE[parts] // (ceil_div(size.m, rows) * ceil_div(size.n, columns)))
    return most if most > 1 and turns - ceil_div(turns, most) >= _LEAST_TURNS else 1


def _tile(config: Params) -> tuple[int, int]:
    rows, columns = map(int, config["tile"].split("x"))
    return rows, columns


def _early_scratch(case: Case, config: Params) -> Mapping[str, Buffer]:
    """Sums of the slices, one behind the other, with whole boxes of columns."""
    size, width = size_of(case), _EARLY["kBoxColumns"]
    if (slices := _slices(size, config)) == 1:
        return _lines_scratch(case)
    return {"slices": Buffer((slices * ceil_div(size.n, width) * width, _pitch(size.m))), **_lines_scratch(case)}


def _early_loads(case: Case, config: Params) -> Sequence[Launch]:
    """A cluster for each slice of each tile, whose blocks have a part of the slice each. Behind the stages are C, and the sums for the other blocks."""
    size, (rows, columns), pads = size_of(case), _tile(config), _pad_operands(case, _line_pitch)
    stages, parts, slices = config["stages"], config["parts"], _slices(size, config)
    a, b = _operand_maps(case, columns, tf32=True)
    of_c, of_d, way = a, a, "kValues"
    if slices > 1:
        of_d, way = TensorMap("slices", (_EARLY["kBoxColumns"], _BOX), 128), "kSlices"
    elif size.m % 4 == 0:
        of_c, of_d = (TensorMap(name, (_EARLY["kBoxColumns"], _BOX), 128) for name in _RESULTS)
        way = "kBoxes"
    product = launch(
        template("gemm", rows, columns, stages, parts, _EARLY[way]),
        *((parts * ceil_div(size.m, rows), ceil_div(size.n, columns), slices), 2 * rows + _EARLY["kLanes"]),
        *(a, b, of_c, of_d, *_RESULTS, *scalars(size)),
        shared_bytes=_FLOAT * (stages * _TILE["kDepth"] * (rows + columns) + rows * columns) + ALIGNMENT_BYTES,
        early=bool(pads),
    )
    if slices == 1:
        return (*pads, product)
    m, n, _, alpha, beta = scalars(size)
    sums = ("slices", *_RESULTS, m, n, slices, alpha, beta)
    return (
        *pads,
        product,
        launch("add_slices", (ceil_div(size.m, _EARLY["kAdders"]), size.n), _EARLY["kAdders"], *sums, early=True),
    )


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


def _parts(case: Case, config: Params) -> Mapping[str, Buffer]:
    """The sums of a cluster's part of a tile are number `cluster + tile`."""
    line = _cut_wgmma_tiles(size_of(case), config)
    parts = config["blocks"] * max(1, line.blocks + line.tiles - 1)
    return {"parts": Buffer((parts, _TILE["kRows"] * config["columns"]))}


def _shares_scratch(case: Case, config: Params) -> Mapping[str, Buffer]:
    return {**_parts(case, config), **_scratch(case, config)}


def _staged_shares_scratch(case: Case, config: Params) -> Mapping[str, Buffer]:
    return {**_parts(case, config), **_lines_scratch(case)}


def _equal_shares(case: Case, config: Params) -> Sequence[Launch]:
    """As `_launches`, but the tiles beyond the last full wave are cut into equal shares, and added up."""
    size, columns, blocks, of = size_of(case), config["columns"], config["blocks"], _SHARES_TF32
    *_, product = _launches(case, config, "v19_equal_shares_tf32", tf32=True)
    line = _cut_wgmma_tiles(size, config)
    whole = _clusters(size, config) - line.tiles
    shares = (np.int32(whole), *line.scalars)
    m, n, _, alpha, beta = scalars(size)
    product = replace(
        product,
        grid=(blocks * max(line.blocks, min(whole, MULTIPROCESSORS // blocks)), 1, 1),
        args=(*product.args[:4], "parts", *scalars(size), *shares),
    )
    grid = (blocks * line.tiles, of["kRows"] * columns // (of["kConsumers"] * of["kFour"]))
    sums = ("parts", "c", "d", m, n, alpha, beta, *shares)
    added = launch(template("add_parts", columns, blocks), grid, of["kConsumers"], *sums)
    return (*_pad_operands(case), product, *([added] if line.tiles else []))


def _staged_shares(case: Case, config: Params) -> Sequence[Launch]:
    """As `_equal_shares`, each launch after the first early, with tensor maps of C and D where their columns have a pitch that the TMA takes."""
    of_c, of_d = (TensorMap(name, (_BOX, _BOX), 128) for name in _RESULTS)
    boxed = size_of(case).m % 4 == 0
    pads = _pad_operands(case, _line_pitch)
    product, *added = _equal_shares(case, config)[len(pads) :]
    a, b, *others = product.args
    product = replace(
        product,
        kernel=template("gemm_shares", *config.values(), boxed),
        args=(a, b, *((of_c, of_d) if boxed else (a, a)), *others),
        early=bool(pads),
    )
    return (*pads, product, *(replace(each, early=True) for each in added))


def _staged(case: Case, config: Params) -> Sequence[Launch]:
    """As `_launches`, with tensor maps of C and D: their boxes are squares."""
    *pads, product = _launches(case, config, "v15_staged_results_tf32", tf32=True)
    padded = _padded(case, _RESULTS)
    c, d = (_copy_of(name) if name in padded else name for name in _RESULTS)
    a, b, _, _, *rest = product.args
    product = replace(product, args=(a, b, *(TensorMap(name, (_BOX, _BOX), 128) for name in (c, d)), c, *rest))
    crop = [_between("crop", _copy_of("d"), "d", "d", case)] if padded else []
    return (*pads, *_pads(case, ("c",)), product, *crop)


def _turned_scratch(case: Case, config: Params) -> Mapping[str, Buffer]:
    size = size_of(case)
    return {"b_turned": Buffer((size.k, _pitch(size.n))), **_scratch(case, config, ("a",))}


def _turned_columns(case: Case, config: Params) -> Sequence[Launch]:
    """Turns B; then a block for each tile."""
    size, tile, pads = size_of(case), BlockTile.of(config), _pads(case, ("a",))
    grid = (ceil_div(size.k, _TURNED), ceil_div(size.n, _TURNED))
    turn = launch("turn", grid, (_TURNED, 8), "b", "b_turned", size.n, size.k, _pitch(size.n))
    a = TensorMap(_copy_of("a") if pads else "a", (tile.depth, tile.rows))
    product = launch(
        *(tile.kernel("gemm_turned", size, config["apart"]), tile.count(size), tile.threads),
        *(a, TensorMap("b_turned", (tile.depth, tile.columns)), "c", "d", *scalars(size)),
        shared_bytes=_FLOAT * tile.stages * tile.depth * (tile.rows + tile.columns),
    )
    return (*pads, turn, product)


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
        args=(*product.args[:4], "parts", "counters", *scalars(size), np.int32(whole), *line.scalars),
    )
    return _prepare(size, product.args[0].buffer, 1 + line.tiles), product


def _prepare(size: Size, a: str, counters: int) -> Launch:
    """Turns B, sets counters to zero, and fills the copy of A with that name if it is one."""
    turns = ceil_div(size.k, _TURNED) * ceil_div(size.n, _SHARES_FP32["kStrip"])
    pads = 0 if a == "a" else ceil_div(size.k, _SHARES_FP32["kWarps"]) * ceil_div(_pitch(size.m), _SHARES_FP32["kRowPiece"])
    extents = (size.m, size.n, size.k, turns, counters)
    return launch("prepare", turns + pads, _SHARES_FP32["kThreads"], "a", a, "b", "b_turned", "counters", *extents)


def _wide(*columns_and_stages: tuple[int, int], **more: int) -> list[Params]:
    return [{"columns": columns, "stages": stages, **more} for columns, stages in columns_and_stages]


def _early(tile: str, stages: int, parts: int) -> Params:
    return {"tile": tile, "stages": stages, "parts": parts}


def _tiled(tile: str, stages: int, thread: str = "8x8", **more: int) -> Params:
    return {"tile": tile, "thread": thread, "stages": stages, **more}


_rung: Final = rungs_in(KERNELS)

WGMMA_VARIANTS: Final = (
    _rung(
        *("v12_wgmma_tf32", "Warpgroups, TF32", partial(_launches, kernel="v12_wgmma_tf32", tf32=True)),
        *(_wide((256, 4), (64, 8)), "tf32"),
        scratch=_scratch,
        **HOPPER,
    ),
    _rung(
        *("v13_wgmma_3xtf32", "Warpgroups, 3xTF32", partial(_launches, kernel="v13_wgmma_3xtf32", floats_a_step=2)),
        *(_wide((128, 4), (64, 6)), "3xtf32"),
        scratch=_scratch,
        **HOPPER,
    ),
    _rung(
        *("v14_shared_columns_tf32", "Clusters that share columns, TF32"),
        *(partial(_launches, kernel="v14_shared_columns_tf32", tf32=True), _wide((256, 4), (64, 8), blocks=2), "tf32"),
        scratch=_scratch,
        **HOPPER,
    ),
    _rung(
        *("v15_staged_results_tf32", "Results by way of the stages, TF32", _staged),
        *([*_wide((256, 4), blocks=1), *_wide((256, 4), blocks=2)], "tf32"),
        scratch=partial(_scratch, names=(*_OPERANDS, *_RESULTS)),
        **HOPPER,
    ),
    _rung(
        *("v16_cluster_sums", "Parts along k in a cluster", cluster_sums),
        configs=[
            _tiled("128x128x16", 3, parts=2),
            _tiled("128x64x16", 3, parts=2),
            _tiled("64x64x16", 3, "4x4", parts=2),
            _tiled("32x32x16", 4, "4x4", parts=4),
        ],
        **HOPPER,
    ),
    _rung(
        *("v17_turned_columns", "B turned beforehand, TMA", _turned_columns),
        configs=[
            _tiled("128x128x32", 3, apart=1),
            _tiled("128x128x16", 4, apart=2),
        ],
        scratch=_turned_scratch,
        **HOPPER,
    ),
    _rung(
        *("v18_cluster_sums_tf32", "Parts along k in a cluster, TF32", _cluster_sums),
        *([*_wide((128, 6), (64, 8), parts=2), *_wide((64, 8), parts=4)], "tf32"),
        scratch=_scratch,
        **HOPPER,
    ),
    _rung(
        *("v19_equal_shares_tf32", "Equal shares of a line of tiles, TF32", _equal_shares),
        *([*_wide((256, 4), blocks=1), *_wide((256, 4), (128, 6), blocks=2)], "tf32"),
        scratch=_shares_scratch,
        **HOPPER,
    ),
    _rung(
        *("v20_equal_shares", "Equal shares of a line of tiles", _turned_shares),
        configs=[
            _tiled("128x128x32", 3, apart=2, blocks=2),
            _tiled("128x128x32", 3, apart=2, blocks=1),
            _tiled("64x128x16", 4, apart=4, blocks=4),
            _tiled("128x64x16", 4, apart=2, blocks=4),
            _tiled("64x128x16", 4, apart=4, blocks=2),
            _tiled("128x64x16", 4, apart=2, blocks=2),
        ],
        scratch=_turned_shares_scratch,
        **HOPPER,
    ),
    _rung(
        *("v21_early_loads_tf32", "Loads before anything else, TF32", _early_loads),
        [
            _early("64x32", 8, 2),
            _early("64x64", 8, 2),
            _early("64x64", 8, 4),
            _early("64x128", 8, 1),
            _early("64x128", 8, 2),
            _early("64x128", 8, 4),
            _early("64x192", 5, 2),
            _early("128x128", 5, 2),
            _early("128x192", 3, 2),
        ],
        "tf32",
        scratch=_early_scratch,
        **HOPPER,
    ),
    _rung(
        *("v22_staged_shares_tf32", "Equal shares, results by way of the stages, TF32", _staged_shares),
        *([*_wide((256, 4), blocks=2), *_wide((256, 4), blocks=1)], "tf32"),
        scratch=_staged_shares_scratch,
        **HOPPER,
    ),
)
