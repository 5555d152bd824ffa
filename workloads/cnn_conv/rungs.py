"""The ladder: every CUDA variant and how it is launched. What each tries stands at the head of its `.cu` file."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from warpladder.workloads.api import (
    ALIGNMENT_BYTES,
    MULTIPROCESSORS,
    WARPGROUP_THREADS,
    Case,
    Constants,
    CudaVariant,
    Launch,
    Params,
    Precision,
    TensorMap,
    ceil_div,
)
from warpladder.workloads.cnn_conv.problem import SIZE, Shape, shape_of
from warpladder.workloads.ladder import HOPPER, launch, rungs_in, template

KERNELS: Final = Path(__file__).resolve().parent / "kernels"

_BLOCK_AN_IMAGE: Final = 16  # threads along both sides, of v01_milestone3, which takes any number
_SUM_ROWS: Final = 17  # rows of sums that a thread keeps in registers where they wait for several channels
_WORD_BYTES: Final = 4
_WEIGHTS: Final = {"weights": "k"}

_PARALLEL: Final = Constants(KERNELS / "v02_parallel.cu")
_CONSTANT_WEIGHTS: Final = Constants(KERNELS / "v03_constant_weights.cu")
_SHARED_TILE: Final = Constants(KERNELS / "v04_shared_tile.cu")
_REGISTER_TILE: Final = Constants(KERNELS / "v05_register_tile.cu")
_SLIDING_ROWS: Final = Constants(KERNELS / "v06_sliding_rows.cu")
_MAP_A_LANE: Final = Constants(KERNELS / "v07_map_a_lane.cu")
_UNIFORM_WEIGHTS: Final = Constants(KERNELS / "v08_uniform_weights.cu")
_CHANNEL_AT_A_TIME: Final = Constants(KERNELS / "v09_channel_at_a_time.cu")
_TOEPLITZ: Final = Constants(KERNELS / "toeplitz.cuh")
_OF_WHOLE_IMAGES: Final = Constants(KERNELS / "v16_whole_images_tf32.cu")

_MOST_SHARED_BYTES: Final = 227 * 1024  # of a block on Hopper
_MOST_OF_BOX: Final = 256  # elements along an axis
_PIECE_BYTES: Final = 16  # that the TMA copies at a time


def _sizes(shape: Shape) -> tuple[int, ...]:
    return shape.channels, shape.maps, shape.height, shape.width


def _block_an_image(case: Case, buffers: Sequence[str], side: int, kernel: str = "conv_layer") -> Sequence[Launch]:
    shape = shape_of(case)
    return [launch(kernel, shape.batch, (side, side), *buffers, *_sizes(shape))]


def thread_an_output(case: Case, buffers: Sequence[str], tile: int, kernel: str = "conv_layer") -> Sequence[Launch]:
    """Images, maps and tiles of the output are the grid's dimensions, in the student report's order."""
    shape = shape_of(case)
    tiles = ceil_div(shape.out_height, tile) * ceil_div(shape.out_width, tile)
    return [launch(kernel, (shape.batch, shape.maps, tiles), (tile, tile), *buffers, *_sizes(shape))]


def _constant_weights(case: Case, config: Params) -> Sequence[Launch]:
    launches = _block_an_image if config["over"] == "loops" else thread_an_output
    return launches(case, ("x", "y"), _CONSTANT_WEIGHTS["kTile"], config["over"])


def _register_tile(case: Case, config: Params) -> Sequence[Launch]:
    """A thread for each tile of 4x4 outputs of a map; maps are the grid's second dimension."""
    shape, side, threads = shape_of(case), _REGISTER_TILE["kSide"], _REGISTER_TILE["kThreads"]
    tiles = shape.batch * ceil_div(shape.out_height, side) * ceil_div(shape.out_width, side)
    kernel = template("conv_layer", shape.width % 2 == 0)
    return [launch(kernel, (ceil_div(tiles, threads), shape.maps), threads, "x", "y", shape.batch, *_sizes(shape))]


def _sliding_rows(case: Case, config: Params) -> Sequence[Launch]:
    """Four lanes, one a map, for each strip of four columns of an image."""
    shape, block = shape_of(case), _SLIDING_ROWS["kThreads"]
    threads = shape.batch * ceil_div(shape.out_width, _SLIDING_ROWS["kColumns"]) * shape.maps
    kernel = template("conv_layer", config["prefetch"], shape.out_width % 4 == 0)
    return [launch(kernel, ceil_div(threads, block), block, "x", "y", shape.batch, shape.height, shape.width)]


def _map_a_lane(case: Case, config: Params) -> Sequence[Launch]:
    """A warp for each strip of columns of an image, which goes down it two rows at a time."""
    shape, warps = shape_of(case), _MAP_A_LANE["kWarps"]
    strips = shape.batch * ceil_div(shape.out_width, _MAP_A_LANE["kColumns"])
    kernel = template("conv_layer", shape.height, shape.width)
    return [launch(kernel, ceil_div(strips, warps), warps * _MAP_A_LANE["kLanes"], "x", "k", "y", strips)]


def _uniform_weights(case: Case, config: Params) -> Sequence[Launch]:
    """A warp for each map. Each of its lanes has a strip of columns."""
    shape, columns, lanes = shape_of(case), config["columns"], _UNIFORM_WEIGHTS["kLanes"]
    strips = shape.batch * ceil_div(shape.out_width, columns)
    kernel = template("conv_layer", shape.height, shape.width, columns)
    return [launch(kernel, ceil_div(strips, lanes), _UNIFORM_WEIGHTS["kMaps"] * lanes, "x", "y", strips)]


def _channel_at_a_time(case: Case, config: Params) -> Sequence[Launch]:
    """A warp for each map, four in a block. Blocks of the four quarters of an image's maps follow one another."""
    shape, rows = shape_of(case), config["rows"]
    warps, lanes = _CHANNEL_AT_A_TIME["kWarps"], _CHANNEL_AT_A_TIME["kLanes"]
    across = ceil_div(shape.out_width, _CHANNEL_AT_A_TIME["kColumns"])
    tiles = shape.batch * ceil_div(shape.out_height, rows) * across
    blocks = ceil_div(tiles, lanes) * (_CHANNEL_AT_A_TIME["kMaps"] // warps)
    return [launch(template("conv_layer", shape.height, shape.width, rows), blocks, warps * lanes, "x", "y", tiles)]


def _toeplitz_rows(shape: Shape) -> int:
    """Rows of a band: half of an image with one channel, else as many as a thread has registers for."""
    return ceil_div(shape.out_height, 2) if shape.channels == 1 else _SUM_ROWS


def _toeplitz(case: Case, config: Params) -> Sequence[Launch]:
    """A warp for each 16 pairs of neighbouring outputs and four maps. It computes a band of the image."""
    shape, rows, of = shape_of(case), _toeplitz_rows(shape_of(case)), _TOEPLITZ
    pairs = shape.batch * ceil_div(shape.out_height, rows) * ceil_div(shape.out_width, 2)
    warps = ceil_div(pairs, of["kPairsPerWarp"]) * (shape.maps // of["kMapsPerWarp"])
    kernel = template("conv_layer", *_sizes(shape), rows)
    return [launch(kernel, ceil_div(warps, of["kWarps"]), of["kWarps"] * of["kLanes"], "x", "k", "y", pairs)]


def _warpgroups(case: Case, config: Params, of: Constants) -> Sequence[Launch]:
    """A block for each multiprocessor. It keeps the filters in shared memory, and takes a band of as many whole images as fit
    at a time: of 6, 13, 20, 27 or 34 rows and so on, the most that the output has.

    It has two warpgroups, or one where that is enough to take all images at once.

    Args:
        case: the layer.
        config: nothing.
        of: constants of the kernel and of its products.
    """
    shape = shape_of(case)
    rows = shape.out_height - (shape.out_height + 1) % SIZE
    across = ceil_div(shape.out_width, 2)
    warpgroups = 1 if shape.batch <= MULTIPROCESSORS * (of["kPairs"] // across) else of["kWarpgroups"]
    images = warpgroups * of["kPairs"] // across
    tiles = ceil_div(shape.batch, images) * ceil_div(shape.out_height, rows)
    filter_words = of["kParts"] * of["kSegments"] * of["kColumns"] * of["kWords"]
    staged_floats = images * of["kLayerMaps"] * of["kStaged"] * shape.out_width
    shared_bytes = (filter_words + staged_floats) * _WORD_BYTES + ALIGNMENT_BYTES
    kernel, threads = template("conv_layer", shape.height, shape.width, rows, images), warpgroups * WARPGROUP_THREADS
    return [launch(kernel, min(MULTIPROCESSORS, tiles), threads, "x", "k", "y", shape.batch, shared_bytes=shared_bytes)]


def _not_for_warpgroups(case: Case, config: Params, of: Constants) -> str | None:
    most_pairs = of["kWarpgroups"] * of["kPairs"]
    if ceil_div(shape_of(case).out_width, 2) > most_pairs:
        return f"a block computes rows of at most {2 * most_pairs} outputs; these rows are longer"
    return _one_layer(2, lambda config: (SIZE - 1, 2))(case, config)


@dataclass(frozen=True)
class WholeImages:
    """Launches with a block for each multiprocessor, which takes one image after another.

    Attributes:
        of: the constants of the kernel.
        element: bytes of a pixel and of an output.
        buffers: of a block, for the pixels and for the outputs of images.
    """

    of: Constants
    element: int
    buffers: tuple[int, int]

    def launches(self, case: Case, config: Params) -> Sequence[Launch]:
        shape = shape_of(case)
        rows = shape.channels * shape.height
        kernel = template("conv_layer", shape.height, shape.width, self._band_rows(shape))
        pixels = TensorMap("x", box=(rows, shape.width), shape=(shape.batch * rows, shape.width))
        blocks, shared_bytes = min(MULTIPROCESSORS, shape.batch), self._shared_bytes(shape)
        return [launch(kernel, blocks, self.of["kThreads"], pixels, "k", "y", shape.batch, shared_bytes=shared_bytes)]

    def skip(self, case: Case, config: Params) -> str | None:
        shape, whole = shape_of(case), _PIECE_BYTES // self.element
        if skipped := _one_layer(2, lambda config: (1, 2))(case, config):
            return skipped
        if shape.width % whole:
            return f"the TMA copies rows of pixels whose bytes are a multiple of 16: a width that is a multiple of {whole}"
        if shape.channels * shape.height > _MOST_OF_BOX or self._shared_bytes(shape) > _MOST_SHARED_BYTES:
            return "images and their outputs are larger than shared memory, or than the TMA copies at once"
        if self._band_rows(shape) > SIZE:
            return f"a block computes bands of at most {SIZE} rows side by side; these images have more rows"
        return None

    def _band_rows(self, shape: Shape) -> int:
        """Output rows of a band, where an image is as many bands side by side as a block has pairs for."""
        pairs = self.of["kWarpgroups"] * self.of["kPairs"]
        return ceil_div(shape.out_height, max(pairs // (shape.out_width // 2), 1))

    def _shared_bytes(self, shape: Shape) -> int:
        """Of a block: the filters, the buffers, and the barriers."""
        extents = (shape.channels * shape.height * shape.width, shape.maps * shape.out_height * shape.out_width)
        images = sum(count * ceil_div(self.element * n, 128) * 128 for count, n in zip(self.buffers, extents, strict=True))
        barriers = 8 * (2 * sum(self.buffers) + self.of["kWarpgroups"] + 1)
        return SIZE * self.of["kColumns"] * self.of["kWords"] * _WORD_BYTES + images + barriers + ALIGNMENT_BYTES


def _smaller_than(rows: int, columns: int, shape: Shape) -> str | None:
    if shape.out_height >= rows and shape.out_width >= columns:
        return None
    return f"a thread computes at least {rows}x{columns} outputs; these maps have fewer"


def _one_layer(layer: int, least_outputs: Callable[[Params], tuple[int, int]]) -> Callable[[Case, Params], str | None]:
    """Skips the other layer, and maps that are smaller than the rows and columns of one thread."""

    def skip(case: Case, config: Params) -> str | None:
        if case.params["layer"] != layer:
            return f"made for layer {layer}: it takes only that layer's channels, maps and weights"
        return _smaller_than(*least_outputs(config), shape_of(case))

    return skip


def _smaller_than_toeplitz(case: Case, config: Params) -> str | None:
    shape = shape_of(case)
    return _smaller_than(_toeplitz_rows(shape), 2, shape)


_rung: Final = rungs_in(KERNELS)
_WHOLE_IMAGES: Final = WholeImages(_OF_WHOLE_IMAGES, element=4, buffers=(_OF_WHOLE_IMAGES["kBuffers"],) * 2)


def _warpgroups_rung(name: str, title: str, precision: Precision, product: str) -> CudaVariant:
    """A rung on Hopper's warpgroups, whose struct of that name has the product."""
    constants = Constants(KERNELS / f"{name}.cu").within(product)
    skip = partial(_not_for_warpgroups, of=constants)
    return _rung(name, title, partial(_warpgroups, of=constants), precision=precision, skip=skip, **HOPPER)


def _toeplitz_rung(name: str, title: str, precision: Precision) -> CudaVariant:
    return _rung(name, title, _toeplitz, precision=precision, skip=_smaller_than_toeplitz, min_compute_capability=(8, 0))


CUDA_VARIANTS: Final = (
    _rung(
        "v01_milestone3",
        "Block an image (milestone 3)",
        lambda case, config: _block_an_image(case, ("x", "k", "y"), _BLOCK_AN_IMAGE),
    ),
    _rung("v02_parallel", "Thread an output", lambda case, config: thread_an_output(case, ("x", "k", "y"), _PARALLEL["kTile"])),
    _rung(
        *("v03_constant_weights", "Constant weights", _constant_weights, ({"over": "grid"}, {"over": "loops"})),
        constants=_WEIGHTS,
    ),
    _rung(
        "v04_shared_tile",
        "Shared tile, halo from global",
        lambda case, config: thread_an_output(case, ("x", "y"), _SHARED_TILE["kTile"]),
        constants=_WEIGHTS,
    ),
    _rung("v05_register_tile", "Register tile 4x4", _register_tile, constants=_WEIGHTS),
    _rung(
        *("v06_sliding_rows", "Sliding rows, weights in registers", _sliding_rows, ({"prefetch": 6},)),
        constants=_WEIGHTS,
        skip=_one_layer(1, lambda config: (6, _SLIDING_ROWS["kColumns"])),
    ),
    _rung(*("v07_map_a_lane", "Map a lane", _map_a_lane), skip=_one_layer(2, lambda config: (1, _MAP_A_LANE["kColumns"]))),
    _rung(
        *("v08_uniform_weights", "Sliding rows, uniform weights", _uniform_weights, ({"columns": 4},)),
        constants=_WEIGHTS,
        skip=_one_layer(1, lambda config: (6, config["columns"])),
    ),
    _rung(
        *("v09_channel_at_a_time", "Uniform weights, a channel at a time", _channel_at_a_time, ({"rows": 17},)),
        constants=_WEIGHTS,
        skip=_one_layer(2, lambda config: (config["rows"], _CHANNEL_AT_A_TIME["kColumns"])),
    ),
    _toeplitz_rung("v10_toeplitz_tf32", "Toeplitz on tensor cores, TF32", "tf32"),
    _toeplitz_rung("v11_toeplitz_3xtf32", "Toeplitz on tensor cores, 3xTF32", "3xtf32"),
    # The precision of what has BF16 corrections is that of the class whose tolerance it is held to.
    _toeplitz_rung("v12_bf16_corrections", "Toeplitz, TF32 with BF16 corrections", "3xtf32"),
    _warpgroups_rung("v13_warpgroups_tf32", "Warpgroups, TF32", "tf32", "Tf32"),
    _warpgroups_rung("v14_warpgroups_3xtf32", "Warpgroups, 3xTF32", "3xtf32", "Split"),
    _warpgroups_rung("v15_warpgroups_bf16_corrections", "Warpgroups, TF32 with BF16 corrections", "3xtf32", "Corrected"),
    _rung(
        *("v16_whole_images_tf32", "Whole images, TF32", _WHOLE_IMAGES.launches),
        precision="tf32",
        skip=_WHOLE_IMAGES.skip,
        **HOPPER,
    ),
)
