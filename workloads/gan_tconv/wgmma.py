"""Launches of the rungs on Hopper's warpgroups. Products take their operands by tensor maps; the channels of a pixel are
contiguous."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from warpladder.workloads.api import (
    ALIGNMENT_BYTES,
    MULTIPROCESSORS,
    Buffer,
    Case,
    Constants,
    Launch,
    Params,
    TensorMap,
    ceil_div,
)
from warpladder.workloads.gan_tconv import phases
from warpladder.workloads.gan_tconv.problem import KERNEL_SIZE, LATENT, Layer, channels_of, images_of, layers, side_of
from warpladder.workloads.ladder import launch, template

_OF: Final = Constants(Path(__file__).parent / "kernels" / "last_layer_wgmma.cuh")  # and of warpgroups.cuh, which it includes
_FEW_TILES: Final = 2  # of images: no more are few
_STAGES: Final = 4
_FLOAT: Final = 4
_VECTOR: Final = 4
_TAPS: Final = KERNEL_SIZE**2
_LAST_STAGES: Final = 5


def skip(case: Case, config: Params) -> str | None:
    """Channels of every layer must fill vectors, and the weights of the last one fit shared memory."""
    if channels_of(case) > _OF["kMostChannels"]:
        return (
            "keeps the weights of the last layer in shared memory; "
            f"they fit where the first layer has at most {_OF['kMostChannels']} channels"
        )
    return phases.skip(case, config)


def three_products(case: Case, config: Params) -> Sequence[Launch]:
    """3xTF32: the weights, and the bits of the weights that tensor cores cut off. Pixels are split inside the kernel."""
    *middle, last = layers(case)
    return [
        phases.fold(case),
        _prepare(case, 0, rest=True),
        _dense(case, "z", ("w0", "r0"), 128),
        *(
            launch
            for layer in middle
            for launch in (
                _prepare(case, layer.number, rest=True),
                _product(case, layer, (f"w{layer.number}", f"r{layer.number}"), *_split_tile(layer)),
            )
        ),
        _last(case, last, parts=2),
    ]


def one_product(case: Case, config: Params) -> Sequence[Launch]:
    """TF32: z and weights rounded."""
    *middle, last = layers(case)
    return [
        phases.fold(case),
        _prepared("z", "latent", images_of(case) * LATENT, last.number, rest=False),
        _prepare(case, 0, rest=False),
        _dense(case, "latent", ("r0",), 256),
        *(
            launch
            for layer in middle
            for launch in (
                _prepare(case, layer.number, rest=False),
                _product(case, layer, (f"r{layer.number}",), *_rounded_tile(layer, images_of(case))),
            )
        ),
        _last(case, last, parts=1),
    ]


def rounded_on_load(case: Case, config: Params) -> Sequence[Launch]:
    """TF32: the TMA rounds z and weights as it loads them. The last layer sets the counters of tiles to 0 for the next operation."""
    *middle, last = layers(case)
    return [
        phases.fold(case),
        _dense(case, "z", ("w0",), 256, tf32=True),
        *(_product(case, layer, (f"w{layer.number}",), *_rounded_tile(layer, images_of(case)), tf32=True) for layer in middle),
        _last(case, last, parts=1),
    ]


def scratch_of_pixels(case: Case, config: Params) -> Mapping[str, Buffer]:
    """`x0` to `x3`: pixels between layers by [y][x][image][channel]. `folded`: scale and shift of each layer. `next`: a counter
    of tiles for each layer."""
    channels, side, images = channels_of(case), side_of(case), images_of(case)
    *middle, last = layers(case)
    buffers = {
        "folded": Buffer((2 * last.number, channels)),
        "next": Buffer((last.number + 1,), "int32", zeroed=True),
        "x0": Buffer((side, side, images, channels)),
    }
    for layer in middle:
        buffers[f"x{layer.number}"] = Buffer((2 * layer.side, 2 * layer.side, images, layer.out_channels))
    return buffers


def scratch(case: Case, config: Params) -> Mapping[str, Buffer]:
    """The same with `r0` to `r3`, prepared weights."""
    buffers = {**scratch_of_pixels(case, config), "r0": Buffer((side_of(case) ** 2 * channels_of(case), LATENT))}
    for layer in layers(case)[:-1]:
        buffers[f"r{layer.number}"] = Buffer((_TAPS * layer.out_channels, layer.channels))
    return buffers


def scratch_of_one_product(case: Case, config: Params) -> Mapping[str, Buffer]:
    """The same with `latent`, z rounded."""
    return {**scratch(case, config), "latent": Buffer((images_of(case), LATENT))}


def _prepare(case: Case, number: int, rest: bool) -> Launch:
    """The weights of a layer; number 0 is the dense one."""
    if number == 0:
        count = side_of(case) ** 2 * channels_of(case) * LATENT
    else:
        layer = layers(case)[number - 1]
        count = _TAPS * layer.channels * layer.out_channels
    return _prepared(f"w{number}", f"r{number}", count, number, rest)


def _prepared(name: str, to: str, count: int, number: int, rest: bool) -> Launch:
    """Writes rounded values, or the bits that tensor cores cut off, and sets the counter of a layer's tiles to 0."""
    vectors = count // _VECTOR
    return launch(template("prepare", rest), ceil_div(vectors, 256), 256, name, to, vectors, "next", number, once=name != "z")


def _split_tile(layer: Layer) -> tuple[int, int]:
    """Output pixels of a tile of 3xTF32, and channels of each."""
    return (1, 128) if layer.out_channels >= 128 else (2, 64)


def _rounded_tile(layer: Layer, images: int) -> tuple[int, int]:
    """Output pixels of a tile of TF32, and channels of each. Narrow tiles fetch more data, but give all multiprocessors work
    where there are few images."""
    if layer.out_channels < 128:
        return 4, 64
    if layer.out_channels < 256:
        return 2, 128
    return 1, 128 if images <= _FEW_TILES * _OF["kImages"] else 256


def _dense(case: Case, pixels: str, weights: tuple[str, ...], columns: int, tf32: bool = False) -> Launch:
    """The dense layer as a convolution: one input pixel, one tap, and the channels of all pixels as output channels."""
    channels, images = channels_of(case), images_of(case)
    outputs = side_of(case) ** 2 * channels
    tiles = ceil_div(images, _OF["kImages"]) * ceil_div(outputs, columns)
    maps = (
        TensorMap(pixels, _box(_OF["kImages"]), 128, tf32=tf32),
        *(TensorMap(name, _box(columns), 128, tf32=tf32) for name in weights),
    )
    sizes = (1, images, LATENT, outputs, 0, channels)
    return _persistent(f"layer_product<1, {columns}, true, {_STAGES}>", tiles, columns, maps, "x0", sizes)


def _product(case: Case, layer: Layer, weights: tuple[str, ...], outputs: int, columns: int, tf32: bool = False) -> Launch:
    """The product of a layer in the middle. `tf32`: the TMA rounds the weights; pixels were rounded when they left the layer before."""
    n, images = layer.number, images_of(case)
    tiles = 4 * layer.side**2 // outputs * ceil_div(images, _OF["kImages"]) * ceil_div(layer.out_channels, columns)
    pixels = TensorMap(f"x{n - 1}", _box(_OF["kImages"]), 128, (layer.side**2 * images, layer.channels))
    rows = (_TAPS * layer.out_channels, layer.channels)
    maps = (pixels, *(TensorMap(name, _box(columns), 128, rows, tf32) for name in weights))
    sizes = (layer.side, images, layer.channels, layer.out_channels, n, channels_of(case))
    return _persistent(f"layer_product<{outputs}, {columns}, false, {_STAGES}>", tiles, outputs * columns, maps, f"x{n}", sizes)


def _box(rows: int) -> tuple[int, int]:
    """So many rows of the channels of a step: 128 bytes, the span of the swizzle."""
    return rows, _OF["kDepth"]


def _threads() -> int:
    """Of a block: a warpgroup that fetches and two that multiply."""
    return _OF["kProducers"] + _OF["kConsumers"]


def _persistent(kernel: str, tiles: int, columns: int, maps: tuple[TensorMap, ...], out: str, sizes: tuple[int, ...]) -> Launch:
    """One block for each multiprocessor, which takes one tile after another. A stage holds the pixels of a tile, and a tile of
    weights for each tensor map of weights."""
    shared_bytes = _STAGES * _OF["kDepth"] * (_OF["kImages"] + (len(maps) - 1) * columns) * _FLOAT + ALIGNMENT_BYTES
    blocks = min(tiles, MULTIPROCESSORS)
    return launch(kernel, blocks, _threads(), *maps, "folded", out, "next", *sizes, shared_bytes=shared_bytes)


def _last(case: Case, layer: Layer, parts: int) -> Launch:
    """The last layer: three colours of every output pixel, and their tanh."""
    images, tile, depth = images_of(case), _OF["kImages"], _OF["kDepth"]
    width = width_of_units(layer.side, images)
    units = ceil_div(images, tile) * (layer.side // 2) * ceil_div(layer.side, width)
    matrices = parts * _OF["kRelations"] * ceil_div(layer.channels, depth) * _OF["kMatrix"]
    staged = 4 * tile * _OF["kStaged"]  # four rows of outputs
    pixels = TensorMap("x3", _box(tile), 128, (layer.side**2 * images, layer.channels))
    return launch(
        *(template("last_layer_wgmma", parts, _LAST_STAGES), min(units, MULTIPROCESSORS), _threads()),
        *(pixels, "w4", "b4", "images", "next", layer.number, layer.side, layer.channels, images, width),
        shared_bytes=(_LAST_STAGES * tile * depth + matrices + staged) * _FLOAT + ALIGNMENT_BYTES,
    )


def width_of_units(side: int, images: int, multiple: int = _OF["kColumnsStaged"]) -> int:
    """Columns of input pixels that a block of the last layer walks along: the width with which all blocks end soonest. A piece
    of the image needs one more column at either end. The width is a multiple of four or another number, as `side` is."""

    def columns_in_turn(width: int) -> int:
        pieces = ceil_div(side, width)
        units = pieces * side // 2 * ceil_div(images, _OF["kImages"])
        return ceil_div(units, MULTIPROCESSORS) * (width if pieces == 1 else width + 2)

    widths = (side >> halvings for halvings in range(side.bit_length()))
    return min((width for width in widths if width % multiple == 0), key=columns_in_turn)
