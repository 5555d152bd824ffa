"""The ladder: every CUDA variant and how it is launched. What each tries stands at the head of its `.cu` file."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np

from warpladder.workloads.api import Case, CudaVariant, Launch, Params, ceil_div
from warpladder.workloads.cnn_conv.problem import SIZE, Shape, shape_of
from warpladder.workloads.hopper import ALIGNMENT_BYTES, MULTIPROCESSORS

KERNELS: Final = Path(__file__).resolve().parent / "kernels"

_TILE: Final = 16
_THREADS: Final = 128
_LANES: Final = 32
_STRIP: Final = 4  # columns of a thread that slides down the image
_MAP_A_LANE_COLUMNS: Final = 34  # of a thread of v07_map_a_lane
_TILE_COLUMNS: Final = 2  # of v09_channel_at_a_time
_TOEPLITZ_TILE: Final = 16, 4  # pairs of outputs and maps of a warp
_SUM_ROWS: Final = 17  # rows of sums that a thread keeps in registers where they wait for several channels
_WARPGROUPS: Final = 2
_WARPGROUP_PAIRS: Final = 64  # pairs of outputs that a warpgroup computes side by side
_STAGED_ROWS: Final = 6  # of outputs in shared memory
_FLOAT_BYTES: Final = 4
_FILTER_SEGMENTS: Final = 13, 4096  # filter rows in shared memory, as many as two rounds of seven but one, and the bytes of one
_WEIGHTS: Final = {"weights": "k"}


def _sizes(shape: Shape) -> tuple[np.int32, ...]:
    return tuple(np.int32(size) for size in (shape.channels, shape.maps, shape.height, shape.width))


def _block_an_image(case: Case, kernel: str, buffers: Sequence[str]) -> Sequence[Launch]:
    shape = shape_of(case)
    return [Launch(kernel, (shape.batch, 1, 1), (_TILE, _TILE, 1), (*buffers, *_sizes(shape)))]


def _thread_an_output(case: Case, kernel: str, buffers: Sequence[str]) -> Sequence[Launch]:
    """Images, maps and tiles of the output are the grid's dimensions, in the report's order."""
    shape = shape_of(case)
    tiles = ceil_div(shape.out_height, _TILE) * ceil_div(shape.out_width, _TILE)
    return [Launch(kernel, (shape.batch, shape.maps, tiles), (_TILE, _TILE, 1), (*buffers, *_sizes(shape)))]


def _constant_weights(case: Case, config: Params) -> Sequence[Launch]:
    launches = _block_an_image if config["over"] == "loops" else _thread_an_output
    return launches(case, config["over"], ("x", "y"))


def _bool(value: bool) -> str:
    return str(value).lower()


def _register_tile(case: Case, config: Params) -> Sequence[Launch]:
    """A thread for each tile of 4x4 outputs of a map; maps are the grid's second dimension."""
    shape = shape_of(case)
    tiles = shape.batch * ceil_div(shape.out_height, 4) * ceil_div(shape.out_width, 4)
    kernel = f"conv_layer<{_bool(shape.width % 2 == 0)}>"
    args = ("x", "y", np.int32(shape.batch), *_sizes(shape))
    return [Launch(kernel, (ceil_div(tiles, _THREADS), shape.maps, 1), (_THREADS, 1, 1), args)]


def _sliding_rows(case: Case, config: Params) -> Sequence[Launch]:
    """Four lanes, one a map, for each strip of four columns of an image."""
    shape = shape_of(case)
    threads = shape.batch * ceil_div(shape.out_width, _STRIP) * shape.maps
    kernel = f"conv_layer<{config['prefetch']}, {_bool(shape.out_width % 4 == 0)}>"
    args = ("x", "y", np.int32(shape.batch), np.int32(shape.height), np.int32(shape.width))
    return [Launch(kernel, (ceil_div(threads, _THREADS), 1, 1), (_THREADS, 1, 1), args)]


def _map_a_lane(case: Case, config: Params) -> Sequence[Launch]:
    """A warp for each strip of 34 columns of an image, which goes down it two rows at a time."""
    shape = shape_of(case)
    strips = shape.batch * ceil_div(shape.out_width, _MAP_A_LANE_COLUMNS)
    kernel = f"conv_layer<{shape.height}, {shape.width}>"
    blocks = ceil_div(strips, _THREADS // _LANES)
    return [Launch(kernel, (blocks, 1, 1), (_THREADS, 1, 1), ("x", "k", "y", np.int32(strips)))]


def _uniform_weights(case: Case, config: Params) -> Sequence[Launch]:
    """A warp a map; its lanes have a strip of columns each."""
    shape, columns = shape_of(case), config["columns"]
    strips = shape.batch * ceil_div(shape.out_width, columns)
    kernel = f"conv_layer<{shape.height}, {shape.width}, {columns}>"
    return [Launch(kernel, (ceil_div(strips, _LANES), 1, 1), (shape.maps * _LANES, 1, 1), ("x", "y", np.int32(strips)))]


def _channel_at_a_time(case: Case, config: Params) -> Sequence[Launch]:
    """A warp a map, four of them a block, the blocks of an image's four quarters of the maps one after another."""
    shape, rows, warps = shape_of(case), config["rows"], _THREADS // _LANES
    tiles = shape.batch * ceil_div(shape.out_height, rows) * ceil_div(shape.out_width, _TILE_COLUMNS)
    blocks = ceil_div(tiles, _LANES) * (shape.maps // warps)
    kernel = f"conv_layer<{shape.height}, {shape.width}, {rows}>"
    return [Launch(kernel, (blocks, 1, 1), (_THREADS, 1, 1), ("x", "y", np.int32(tiles)))]


def _toeplitz_rows(shape: Shape) -> int:
    """Rows of a band: half an image's where a thread slides down, else as many as it has registers for."""
    return ceil_div(shape.out_height, 2) if shape.channels == 1 else _SUM_ROWS


def _toeplitz(case: Case, config: Params) -> Sequence[Launch]:
    """A warp for each 16 pairs of neighbouring outputs and four maps, a band of the image high."""
    shape = shape_of(case)
    rows = _toeplitz_rows(shape)
    pairs = shape.batch * ceil_div(shape.out_height, rows) * ceil_div(shape.out_width, 2)
    warps = ceil_div(pairs, _TOEPLITZ_TILE[0]) * (shape.maps // _TOEPLITZ_TILE[1])
    kernel = f"conv_layer<{shape.channels}, {shape.maps}, {shape.height}, {shape.width}, {rows}>"
    blocks = ceil_div(warps, _THREADS // _LANES)
    return [Launch(kernel, (blocks, 1, 1), (_THREADS, 1, 1), ("x", "k", "y", np.int32(pairs)))]


def _warpgroup_rows(shape: Shape) -> int:
    """Rows of a band: 6, 13, 20, 27 or 34 and so on, the most that the output has."""
    return shape.out_height - (shape.out_height + 1) % SIZE


def _warpgroups(case: Case, config: Params, parts: int) -> Sequence[Launch]:
    """A block a multiprocessor, which keeps the filters in `parts` parts, and takes a band of as many whole images as fit at a time.

    It has two warpgroups, or one where that is enough to take all images at once.
    """
    shape = shape_of(case)
    rows = _warpgroup_rows(shape)
    across = ceil_div(shape.out_width, 2)
    warpgroups = 1 if shape.batch <= MULTIPROCESSORS * (_WARPGROUP_PAIRS // across) else _WARPGROUPS
    images = warpgroups * _WARPGROUP_PAIRS // across
    tiles = ceil_div(shape.batch, images) * ceil_div(shape.out_height, rows)
    segments, segment_bytes = _FILTER_SEGMENTS
    staged_bytes = images * shape.maps * _STAGED_ROWS * shape.out_width * _FLOAT_BYTES
    return [
        Launch(
            kernel=f"conv_layer<{shape.height}, {shape.width}, {rows}, {images}>",
            grid=(min(MULTIPROCESSORS, tiles), 1, 1),
            block=(warpgroups * 128, 1, 1),
            args=("x", "k", "y", np.int32(shape.batch)),
            dynamic_shared_bytes=parts * segments * segment_bytes + staged_bytes + ALIGNMENT_BYTES,
        )
    ]


def _not_for_warpgroups(case: Case, config: Params) -> str | None:
    if ceil_div(shape_of(case).out_width, 2) > _WARPGROUPS * _WARPGROUP_PAIRS:
        return f"a block computes rows of at most {2 * _WARPGROUPS * _WARPGROUP_PAIRS} outputs; these rows are longer"
    return _one_layer(2, lambda config: (SIZE - 1, 2))(case, config)


def _smaller_than(rows: int, columns: int, shape: Shape) -> str | None:
    if shape.out_height >= rows and shape.out_width >= columns:
        return None
    return f"a thread computes at least {rows}x{columns} outputs; these maps have fewer"


def _one_layer(layer: int, least_outputs: Callable[[Params], tuple[int, int]]) -> Callable[[Case, Params], str | None]:
    """Skips the other layer, and maps smaller than a thread's own share of one, rows by columns."""

    def skip(case: Case, config: Params) -> str | None:
        if case.params["layer"] != layer:
            return f"made for layer {layer}: it takes only that layer's channels, maps and weights"
        return _smaller_than(*least_outputs(config), shape_of(case))

    return skip


def _smaller_than_toeplitz(case: Case, config: Params) -> str | None:
    shape = shape_of(case)
    return _smaller_than(_toeplitz_rows(shape), 2, shape)


CUDA_VARIANTS: Final = (
    CudaVariant(
        name="v01_milestone3",
        title="Block an image (milestone 3)",
        role="rung",
        source=KERNELS / "v01_milestone3.cu",
        launches=lambda case, config: _block_an_image(case, "conv_layer", ("x", "k", "y")),
    ),
    CudaVariant(
        name="v02_parallel",
        title="Thread an output",
        role="rung",
        source=KERNELS / "v02_parallel.cu",
        launches=lambda case, config: _thread_an_output(case, "conv_layer", ("x", "k", "y")),
    ),
    CudaVariant(
        name="v03_constant_weights",
        title="Constant weights",
        role="rung",
        configs=({"over": "grid"}, {"over": "loops"}),
        source=KERNELS / "v03_constant_weights.cu",
        launches=_constant_weights,
        constants=_WEIGHTS,
    ),
    CudaVariant(
        name="v04_shared_tile",
        title="Shared tile, halo from global",
        role="rung",
        source=KERNELS / "v04_shared_tile.cu",
        launches=lambda case, config: _thread_an_output(case, "conv_layer", ("x", "y")),
        constants=_WEIGHTS,
    ),
    CudaVariant(
        name="v05_register_tile",
        title="Register tile 4x4",
        role="rung",
        source=KERNELS / "v05_register_tile.cu",
        launches=_register_tile,
        constants=_WEIGHTS,
    ),
    CudaVariant(
        name="v06_sliding_rows",
        title="Sliding rows, weights in registers",
        role="rung",
        configs=({"prefetch": 6},),
        source=KERNELS / "v06_sliding_rows.cu",
        launches=_sliding_rows,
        constants=_WEIGHTS,
        skip=_one_layer(1, lambda config: (6, _STRIP)),
    ),
    CudaVariant(
        name="v07_map_a_lane",
        title="Map a lane",
        role="rung",
        source=KERNELS / "v07_map_a_lane.cu",
        launches=_map_a_lane,
        skip=_one_layer(2, lambda config: (1, _MAP_A_LANE_COLUMNS)),
    ),
    CudaVariant(
        name="v08_uniform_weights",
        title="Sliding rows, uniform weights",
        role="rung",
        configs=({"columns": 4},),
        source=KERNELS / "v08_uniform_weights.cu",
        launches=_uniform_weights,
        constants=_WEIGHTS,
        skip=_one_layer(1, lambda config: (6, config["columns"])),
    ),
    CudaVariant(
        name="v09_channel_at_a_time",
        title="Uniform weights, a channel at a time",
        role="rung",
        configs=({"rows": 17},),
        source=KERNELS / "v09_channel_at_a_time.cu",
        launches=_channel_at_a_time,
        constants=_WEIGHTS,
        skip=_one_layer(2, lambda config: (config["rows"], _TILE_COLUMNS)),
    ),
    CudaVariant(
        name="v10_toeplitz_tf32",
        title="Toeplitz on tensor cores, TF32",
        role="rung",
        precision="tf32",
        source=KERNELS / "v10_toeplitz_tf32.cu",
        launches=_toeplitz,
        skip=_smaller_than_toeplitz,
        min_compute_capability=(8, 0),
    ),
    CudaVariant(
        name="v11_toeplitz_3xtf32",
        title="Toeplitz on tensor cores, 3xTF32",
        role="rung",
        precision="3xtf32",
        source=KERNELS / "v11_toeplitz_3xtf32.cu",
        launches=_toeplitz,
        skip=_smaller_than_toeplitz,
        min_compute_capability=(8, 0),
    ),
    CudaVariant(
        name="v12_bf16_corrections",
        title="Toeplitz, TF32 with BF16 corrections",
        role="rung",
        precision="3xtf32",  # of that class, and held to its tolerance
        source=KERNELS / "v12_bf16_corrections.cu",
        launches=_toeplitz,
        skip=_smaller_than_toeplitz,
        min_compute_capability=(8, 0),
    ),
    CudaVariant(
        name="v13_warpgroups_tf32",
        title="Warpgroups, TF32",
        role="rung",
        precision="tf32",
        source=KERNELS / "v13_warpgroups_tf32.cu",
        launches=partial(_warpgroups, parts=1),
        skip=_not_for_warpgroups,
        min_compute_capability=(9, 0),
        only_architecture="sm_90a",
    ),
    CudaVariant(
        name="v14_warpgroups_3xtf32",
        title="Warpgroups, 3xTF32",
        role="rung",
        precision="3xtf32",
        source=KERNELS / "v14_warpgroups_3xtf32.cu",
        launches=partial(_warpgroups, parts=2),
        skip=_not_for_warpgroups,
        min_compute_capability=(9, 0),
        only_architecture="sm_90a",
    ),
    CudaVariant(
        name="v15_warpgroups_bf16_corrections",
        title="Warpgroups, TF32 with BF16 corrections",
        role="rung",
        precision="3xtf32",  # of that class, and held to its tolerance
        source=KERNELS / "v15_warpgroups_bf16_corrections.cu",
        launches=partial(_warpgroups, parts=2),
        skip=_not_for_warpgroups,
        min_compute_capability=(9, 0),
        only_architecture="sm_90a",
    ),
)
