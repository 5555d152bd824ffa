"""The rungs of the ladder, each with its launches, for operands of any of the types."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
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
    up_to,
)
from warpladder.workloads.gemm_bf16.problem import BF16, Size, Types, size_of
from warpladder.workloads.shares import Line, parts_of_tiles, shortest_shares

KERNELS: Final = Path(__file__).resolve().parent / "kernels"
_TILES: Final = Constants(KERNELS / "tiles.cuh")
_PAD: Final = Constants(KERNELS / "pad.cuh")
_TENSOR_CORES: Final = Constants(KERNELS / "v02_tensor_cores.cu")
_SHARES: Final = Constants(KERNELS / "v07_equal_shares.cu")
_EARLY: Final = Constants(KERNELS / "v08_early_loads.cu")
_SMALL: Final = Constants(KERNELS / "small_tiles.cuh")
_ONE: Final = Constants(KERNELS / "v11_one_warpgroup.cu")
_APART: Final = Constants(KERNELS / "v12_rows_apart.cu")
_TURNS: Final = Constants(KERNELS / "v13_taking_turns.cu")
_PIECE: Final = 16  # bytes: rows begin at a multiple of it for the TMA
_RESULT_BYTES: Final = 2
_SUM_BYTES: Final = 4
#: Rows so many apart begin at the same place of a line of 128 bytes: rows begin at multiples of a piece.
_ROWS_OF_LINES: Final = 8
_OPERANDS: Final[tuple[str, str]] = ("a", "b")
#: Equal parts of tiles may be so much longer than the shortest shares: blocks side by side then read the same rows and columns at a time.
_LONGER_PARTS: Final = 1.2
#: Steps along k that a share has at least, and that take about as long as a second launch.
_LEAST_STEPS: Final = 4
#: Parts of tiles that are written and added in the time of a step.
_PARTS_A_STEP: Final = 8


@dataclass(frozen=True)
class Tiles:
    """Tiles of 128 rows, by a config such as `{"columns": 256, "stages": 4, "boxes": 2, "cluster": "2x1", "band": 16}`: `cluster` is blocks one
    below the other, times blocks side by side; `band` the tiles one below the other that are walked together."""

    columns: int
    stages: int
    boxes: int
    down: int
    across: int
    band: int

    @classmethod
    def of(cls, config: Params) -> "Tiles":
        down, across = map(int, config.get("cluster", "1x1").split("x"))
        return cls(config["columns"], config["stages"], config.get("boxes", 0), down, across, config.get("band", 1))

    @property
    def blocks(self) -> int:
        """Of a cluster."""
        return self.down * self.across

    @property
    def shared_bytes(self) -> int:
        stage = _TILES["kRowBytes"] * (_TILES["kRows"] + self.columns)
        box = _RESULT_BYTES * _TILES["kBoxRows"] * _TILES["kBoxColumns"]
        return self.stages * stage + self.boxes * _TILES["kConsumers"] // 32 * box + ALIGNMENT_BYTES

    def count(self, size: Size) -> int:
        """Tiles of clusters that cover D."""
        return ceil_div(size.m, self.down * _TILES["kRows"]) * ceil_div(size.n, self.across * self.columns)

    @property
    def clusters(self) -> int:
        """That run at once."""
        return MULTIPROCESSORS // self.blocks


def _pitch(k: int, types: Types) -> int:
    """Elements from one row to the next that the TMA takes."""
    elements = _PIECE // types.operand_bytes
    return ceil_div(k, elements) * elements


def scratch(case: Case, config: Params, types: Types = BF16) -> Mapping[str, Buffer]:
    """Padded copies of the operands whose rows the TMA does not take as they lie."""
    size = size_of(case)
    pitch = _pitch(size.k, types)
    if pitch == size.k:
        return {}
    return {"a_padded": Buffer((size.m, pitch), types.operand), "b_padded": Buffer((size.n, pitch), types.operand)}


def operands(case: Case, types: Types) -> tuple[tuple[str, str], Sequence[Launch]]:
    """Names of the operands that the TMA takes, and the launch that makes them if they are copies."""
    size, copies = size_of(case), tuple(scratch(case, {}, types))
    if not copies:
        return _OPERANDS, ()
    pitch, rows = _pitch(size.k, types), _PAD["kPadRows"]
    args = ("a", "a_padded", np.int32(size.m), "b", "b_padded", np.int32(size.n), np.int32(size.k), np.int32(pitch))
    grid = (ceil_div(size.m + size.n, rows), ceil_div(pitch, _PAD["kPadSegment"]), 1)
    return copies, [Launch(f"pad_operands<{types.element}::Bits>", grid, (32, rows, 1), args)]  # type: ignore[return-value]


def scalars(size: Size) -> tuple[np.int32, ...]:
    return np.int32(size.m), np.int32(size.n), np.int32(size.k)


def _naive(case: Case, config: Params) -> Sequence[Launch]:
    size, (across, down) = size_of(case), map(int, config["block"].split("x"))
    grid = (ceil_div(size.n, across), ceil_div(size.m, down), 1)
    return [Launch("gemm", grid, (across, down, 1), ("a", "b", "d", *scalars(size)))]


def _tensor_cores(case: Case, config: Params) -> Sequence[Launch]:
    size, tile = size_of(case), _TENSOR_CORES["kTile"]
    names, pads = operands(case, BF16)
    shared = _TENSOR_CORES["kStages"] * 2 * tile * _TENSOR_CORES["kPieces"] * _PIECE
    grid = (ceil_div(size.n, tile), ceil_div(size.m, tile), 1)
    args = (*names, "d", *scalars(size), np.int32(_pitch(size.k, BF16)))
    return (*pads, Launch("gemm", grid, (_TENSOR_CORES["kThreads"], 1, 1), args, shared))


def maps_of(names: tuple[str, str], tiles: Tiles, types: Types) -> tuple[TensorMap, TensorMap]:
    """Tensor maps of the operands, whose boxes are a block's share of what its cluster needs of them."""
    (a, b), depth = names, _TILES["kRowBytes"] // types.operand_bytes
    return TensorMap(a, (_TILES["kRows"] // tiles.across, depth), 128), TensorMap(b, (tiles.columns // tiles.down, depth), 128)


def result_map(size: Size, maps: tuple[TensorMap, TensorMap]) -> tuple[str, TensorMap]:
    """Whether the TMA takes the pitch of D, as kernels are told it, and the tensor map of D if so, else one that nobody uses."""
    if size.n * _RESULT_BYTES % _PIECE:
        return "false", maps[0]
    return "true", TensorMap("d", (_TILES["kBoxRows"], _TILES["kBoxColumns"]), 128)


def warpgroups(case: Case, config: Params, types: Types = BF16) -> Sequence[Launch]:
    """A block a tile."""
    size, tiles = size_of(case), Tiles.of(config)
    names, pads = operands(case, types)
    product = Launch(
        kernel=f"gemm<{types.element}, {tiles.columns}, {tiles.stages}>",
        grid=(ceil_div(size.m, _TILES["kRows"]), ceil_div(size.n, tiles.columns), 1),
        block=(_TILES["kConsumers"], 1, 1),
        args=(*maps_of(names, tiles, types), "d", *scalars(size)),
        dynamic_shared_bytes=tiles.shared_bytes,
    )
    return (*pads, product)


def specialised(case: Case, config: Params, types: Types = BF16) -> Sequence[Launch]:
    """One block for each multiprocessor, which computes one tile after another."""
    size, tiles = size_of(case), Tiles.of(config)
    names, pads = operands(case, types)
    product = Launch(
        kernel=f"gemm<{types.element}, {tiles.columns}, {tiles.stages}>",
        grid=(min(tiles.count(size), tiles.clusters), 1, 1),
        block=(WARPGROUP_THREADS + _TILES["kConsumers"], 1, 1),
        args=(*maps_of(names, tiles, types), "d", *scalars(size), np.int32(tiles.band)),
        dynamic_shared_bytes=tiles.shared_bytes,
    )
    return (*pads, product)


def staged(case: Case, config: Params, types: Types = BF16, line: Line | None = None) -> Sequence[Launch]:
    """One block for each multiprocessor, in clusters; with a line of tiles, the tiles on it are cut into shares, and added up."""
    size, tiles = size_of(case), Tiles.of(config)
    names, pads = operands(case, types)
    maps = maps_of(names, tiles, types)
    boxed, of_d = result_map(size, maps)
    shape = (tiles.columns, tiles.stages, tiles.boxes, tiles.down, tiles.across)
    band = np.int32(max(1, tiles.band // tiles.down))
    whole = tiles.count(size) - (line.tiles if line else 0)
    clusters = max(line.blocks if line else 0, min(whole, tiles.clusters))
    cut = (np.int32(whole), *line.scalars) if line else ()
    product = Launch(
        kernel=f"gemm<{types.element}, {', '.join(map(str, shape))}, {boxed}>",
        grid=(tiles.blocks * clusters, 1, 1),
        block=(WARPGROUP_THREADS + _TILES["kConsumers"], 1, 1),
        args=(*maps, of_d, "d", *(("parts",) if line else ()), *scalars(size), band, *cut),
        dynamic_shared_bytes=tiles.shared_bytes,
    )
    if line is None or not line.tiles:
        return (*pads, product)
    added = Launch(
        kernel=f"add_parts<{types.element}, {tiles.columns}, {tiles.down}, {tiles.across}>",
        grid=(tiles.blocks * line.tiles, _TILES["kRows"] * tiles.columns // (_TILES["kConsumers"] * _SHARES["kFour"]), 1),
        block=(_TILES["kConsumers"], 1, 1),
        args=("parts", "d", np.int32(size.m), np.int32(size.n), band, *cut),
    )
    return (*pads, product, added)


def cut_tiles(size: Size, tiles: Tiles, types: Types) -> Line:
    """The tiles beyond the last full wave as a line of steps; no tiles where cutting them would gain nothing."""
    depth = ceil_div(size.k, _TILES["kRowBytes"] // types.operand_bytes)
    left = tiles.count(size) % tiles.clusters
    clusters = min(tiles.clusters, left * (depth // _LEAST_STEPS))
    if not clusters:
        return Line(0, depth, depth)
    shortest, parts = shortest_shares(left, depth, clusters), parts_of_tiles(left, depth, max(1, clusters // left))
    line = parts if parts.slices > 1 and parts.share <= _LONGER_PARTS * shortest.share else shortest
    gains = depth - line.share >= _LEAST_STEPS + tiles.blocks * line.tiles * line.slices // _PARTS_A_STEP
    return line if gains else Line(0, depth, depth)


def shares_scratch(case: Case, config: Params, types: Types = BF16) -> Mapping[str, Buffer]:
    """The sums of a cluster's part of a tile are number `cluster + tile`."""
    tiles = Tiles.of(config)
    line = cut_tiles(size_of(case), tiles, types)
    parts = tiles.blocks * max(1, line.blocks + line.tiles - 1)
    return {"parts": Buffer((parts, _TILES["kRows"] * tiles.columns)), **scratch(case, config, types)}


def equal_shares(case: Case, config: Params, types: Types = BF16) -> Sequence[Launch]:
    return staged(case, config, types, cut_tiles(size_of(case), Tiles.of(config), types))


def _narrow(left: int, tiles: Tiles) -> int:
    """Columns of narrow tiles, of which the clusters have at most one each; those of a wide tile where cutting gains nothing."""
    return next((columns for columns in (64, 128) if 0 < left * tiles.columns // columns <= tiles.clusters), tiles.columns)


def narrow_last(case: Case, config: Params, types: Types = BF16) -> Sequence[Launch]:
    """As `staged`, with narrow tiles in the last wave."""
    size, tiles = size_of(case), Tiles.of(config)
    *pads, product = staged(case, config, types)
    count = tiles.count(size)
    left = count % tiles.clusters
    narrow = _narrow(left, tiles)
    whole = count if narrow == tiles.columns else count - left
    clusters = min(tiles.clusters, max(whole, left * tiles.columns // narrow))
    a, b, *others = product.args
    of_b_narrow = replace(b, box=(narrow // tiles.down, b.box[1]))
    kernel = product.kernel.replace(f", {tiles.down}, 1, ", f", {tiles.down}, {narrow}, ")
    args = (a, b, of_b_narrow, *others, np.int32(whole))
    return (*pads, replace(product, kernel=kernel, grid=(tiles.blocks * clusters, 1, 1), args=args))


def early_loads(case: Case, config: Params, types: Types = BF16) -> Sequence[Launch]:
    """As `staged`, a block a tile."""
    grid = (Tiles.of(config).count(size_of(case)), 1, 1)
    *pads, product = staged(case, config, types)
    kernel = product.kernel.replace(", 1, 1, ", ", ")
    return (*pads, replace(product, kernel=kernel, grid=grid, block=(_TILES["kConsumers"] + _EARLY["kLoaders"], 1, 1)))


def plain_copies(case: Case, config: Params, types: Types = BF16) -> Sequence[Launch]:
    """A cluster of `parts` blocks a tile, each of which has a part of k."""
    size, columns, stages, parts = size_of(case), config["columns"], config["stages"], config["parts"]
    (a, b), pads = operands(case, types)
    rows, threads = _SMALL["kSmallRows"], _SMALL["kThreads"]
    name, shape = ("gemm", (columns, stages)) if parts == 1 else ("gemm_parts", (columns, stages, parts))
    product = Launch(
        kernel=f"{name}<{types.element}, {', '.join(map(str, shape))}>",
        grid=(ceil_div(size.n, columns) * parts, ceil_div(size.m, rows), 1),
        block=(threads, 1, 1),
        args=(a, b, "d", *scalars(size), np.int32(_pitch(size.k, types))),
        dynamic_shared_bytes=stages * _TILES["kRowBytes"] * (rows + columns)
        + _exchanged(rows * columns, parts)
        + ALIGNMENT_BYTES,
    )
    return (*pads, product)


def one_warpgroup(case: Case, config: Params, types: Types = BF16) -> Sequence[Launch]:
    """A block a tile of 64 rows."""
    size, columns, stages = size_of(case), config["columns"], config["stages"]
    (a, b), pads = operands(case, types)
    rows, depth = _SMALL["kSmallRows"], _TILES["kRowBytes"] // types.operand_bytes
    maps = TensorMap(a, (rows, depth), 128), TensorMap(b, (columns, depth), 128)
    boxed, of_d = result_map(size, maps)
    box = _RESULT_BYTES * _TILES["kBoxRows"] * _TILES["kBoxColumns"]
    product = Launch(
        kernel=f"gemm<{types.element}, {columns}, {stages}, {boxed}>",
        grid=(ceil_div(size.m, rows), ceil_div(size.n, columns), 1),
        block=(_SMALL["kThreads"] + _ONE["kLoaders"], 1, 1),
        args=(*maps, of_d, "d", *scalars(size)),
        dynamic_shared_bytes=stages * _TILES["kRowBytes"] * (rows + columns)
        + _TILES["kConsumers"] // 32 * box
        + ALIGNMENT_BYTES,
    )
    return (*pads, product)


def rows_apart(case: Case, config: Params, types: Types = BF16) -> Sequence[Launch]:
    """One block for each multiprocessor, in clusters. Rows of a tile are so many apart that they begin at the same place of a line of L2."""
    size, columns, stages, boxes = size_of(case), config["columns"], config["stages"], config["boxes"]
    (a, b), pads = operands(case, types)
    pitch, depth = _pitch(size.k, types), _TILES["kRowBytes"] // types.operand_bytes
    apart = _ROWS_OF_LINES if pitch % depth and size.m % _ROWS_OF_LINES == 0 else 1
    rows, blocks, threads = _APART["kTallRows"], _APART["kBlocks"], _APART["kMultipliers"]
    of_a = TensorMap(a, (rows, 1, depth), 128, (size.m // apart, apart, pitch))
    of_b = TensorMap(b, (columns // blocks, depth), 128)
    boxed = size.n * _RESULT_BYTES % _PIECE == 0
    of_d = (
        TensorMap("d", (_TILES["kBoxRows"], 1, _TILES["kBoxColumns"]), 128, (size.m // apart, apart, size.n)) if boxed else of_a
    )
    clusters = min(ceil_div(size.m // apart, blocks * rows) * apart * ceil_div(size.n, columns), MULTIPROCESSORS // blocks)
    band = ceil_div(config["band"], blocks)
    box = _RESULT_BYTES * _TILES["kBoxRows"] * _TILES["kBoxColumns"]
    product = Launch(
        kernel=f"gemm<{types.element}, {columns}, {stages}, {boxes}, {str(boxed).lower()}>",
        grid=(blocks * clusters, 1, 1),
        block=(threads + _APART["kLoaders"], 1, 1),
        args=(of_a, of_b, of_d, "d", *scalars(size), np.int32(pitch), np.int32(band), np.int32(apart)),
        dynamic_shared_bytes=stages * _TILES["kRowBytes"] * (rows + columns) + boxes * threads // 32 * box + ALIGNMENT_BYTES,
    )
    return (*pads, product)


def taking_turns(case: Case, config: Params, types: Types = BF16) -> Sequence[Launch]:
    """As `staged`, with a tile for each warpgroup, and narrower boxes of D."""
    size, tiles = size_of(case), Tiles.of(config)
    *pads, product = staged(case, config, types)
    of_a, of_b, _, *others = product.args
    box = (_TILES["kBoxRows"], _TURNS["kTurnBoxColumns"])
    boxed = size.n * _RESULT_BYTES % _PIECE == 0
    of_d = TensorMap("d", box, 64) if boxed else of_a
    boxes = tiles.boxes * _TILES["kConsumers"] // 32 * _RESULT_BYTES * math.prod(box)
    shared_bytes = replace(tiles, boxes=0).shared_bytes + boxes
    return (*pads, replace(product, args=(of_a, of_b, of_d, *others), dynamic_shared_bytes=shared_bytes))


def _exchanged(elements: int, parts: int) -> int:
    """Bytes of the sums that come to a block of a cluster from the others, for a tile of so many elements."""
    return _SUM_BYTES * elements * (parts - 1) // parts


def rung(
    name: str,
    title: str,
    launches: Callable[[Case, Params], Sequence[Launch]],
    configs: tuple[Params, ...] = ({},),
    folder: Path = KERNELS,
    types: Types = BF16,
    **more: Any,
) -> CudaVariant:
    return CudaVariant(name, title, "rung", types.precision, configs, source=folder / f"{name}.cu", launches=launches, **more)


ON_HOPPER: Final = {"min_compute_capability": (9, 0), "only_architecture": "sm_90a"}

WARPGROUPS: Final[tuple[Params, ...]] = ({"columns": 128, "stages": 4},)
SPECIALISED: Final[tuple[Params, ...]] = ({"columns": 256, "stages": 4, "band": 16}, {"columns": 64, "stages": 8, "band": 16})
STAGED: Final[tuple[Params, ...]] = (
    {"columns": 256, "stages": 4, "boxes": 2, "band": 16},
    {"columns": 128, "stages": 6, "boxes": 2, "band": 16},
    {"columns": 64, "stages": 8, "boxes": 1, "band": 16},
)
CLUSTERS: Final[tuple[Params, ...]] = (
    {"columns": 256, "stages": 4, "boxes": 2, "cluster": "2x1", "band": 16},
    {"columns": 128, "stages": 6, "boxes": 2, "cluster": "2x1", "band": 16},
    {"columns": 64, "stages": 8, "boxes": 1, "cluster": "2x1", "band": 16},
)
SHARES: Final[tuple[Params, ...]] = (
    {"columns": 256, "stages": 4, "boxes": 2, "cluster": "2x1", "band": 16},
    {"columns": 256, "stages": 4, "boxes": 2, "cluster": "1x1", "band": 16},
    {"columns": 128, "stages": 6, "boxes": 2, "cluster": "1x1", "band": 16},
)
EARLY: Final[tuple[Params, ...]] = (
    {"columns": 64, "stages": 8, "boxes": 1, "band": 16},
    {"columns": 256, "stages": 4, "boxes": 2, "band": 16},
)
NARROW: Final[tuple[Params, ...]] = (
    {"columns": 256, "stages": 4, "boxes": 2, "cluster": "2x1", "band": 16},
    {"columns": 256, "stages": 4, "boxes": 2, "cluster": "1x1", "band": 16},
)
PLAIN: Final[tuple[Params, ...]] = (
    {"columns": 32, "stages": 4, "parts": 1},
    {"columns": 64, "stages": 4, "parts": 2},
    {"columns": 64, "stages": 4, "parts": 4},
)
ONE_WARPGROUP: Final[tuple[Params, ...]] = ({"columns": 128, "stages": 8},)
APART: Final[tuple[Params, ...]] = ({"columns": 192, "stages": 4, "boxes": 1, "band": 16},)
TURNS: Final[tuple[Params, ...]] = (
    {"columns": 160, "stages": 5, "boxes": 5, "cluster": "1x2", "band": 16},
    {"columns": 160, "stages": 5, "boxes": 5, "cluster": "2x1", "band": 16},
)


def on_warpgroups(types: Types, folder: Path, *names: str) -> tuple[CudaVariant, ...]:
    """The rungs on warpgroups, in their order, for operands of some types.

    Args:
        folder: with their sources.
        names: of the rungs.
    """
    of = {"types": types}
    every: Sequence[tuple[str, Any, tuple[Params, ...], Any]] = (
        ("Warpgroups", warpgroups, WARPGROUPS, scratch),
        ("Producer and consumers", specialised, SPECIALISED, scratch),
        ("Results through the TMA", staged, STAGED, scratch),
        ("Clusters that share operands", staged, CLUSTERS, scratch),
        ("Equal shares of a line of tiles", equal_shares, SHARES, shares_scratch),
        ("Loads before anything else", early_loads, EARLY, scratch),
        ("Narrow tiles in the last wave", narrow_last, NARROW, scratch),
        ("Copies without tensor maps", plain_copies, PLAIN, scratch),
        ("One warpgroup a tile", one_warpgroup, ONE_WARPGROUP, scratch),
        ("Rows that begin with a line", rows_apart, APART, scratch),
        ("Warpgroups that take turns", taking_turns, TURNS, scratch),
    )
    return tuple(
        rung(
            name,
            title,
            partial(launches, **of),
            configs,
            folder,
            types,
            scratch=partial(needs, **of),
            **ON_HOPPER,
        )
        for name, (title, launches, configs, needs) in zip(names, every, strict=True)
    )


CUDA_VARIANTS: Final = (
    rung(
        "v01_naive",
        "A thread an element",
        _naive,
        ({"block": "32x8"},),
        skip=up_to(138, "GFLOP", lambda case: case.flops / 1e9),
    ),
    rung("v02_tensor_cores", "Tensor cores", _tensor_cores, scratch=scratch, min_compute_capability=(8, 0)),
    *on_warpgroups(
        BF16,
        KERNELS,
        "v03_warpgroups",
        "v04_specialised",
        "v05_staged_results",
        "v06_clusters",
        "v07_equal_shares",
        "v08_early_loads",
        "v09_narrow_last",
        "v10_plain_copies",
        "v11_one_warpgroup",
        "v12_rows_apart",
        "v13_taking_turns",
    ),
)
