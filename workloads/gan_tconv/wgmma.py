"""Launches of the rungs on Hopper's warpgroups: products whose operands are tensor maps, of pixels whose channels lie together."""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from warpladder.workloads.api import Buffer, Case, Launch, Params, TensorMap, ceil_div
from warpladder.workloads.gan_tconv import phases
from warpladder.workloads.gan_tconv.problem import KERNEL_SIZE, LATENT, Layer, channels_of, images_of, layers, side_of
from warpladder.workloads.hopper import ALIGNMENT_BYTES, DEPTH, MULTIPROCESSORS, THREADS

_IMAGES: Final = 128  # of a tile
_FEW: Final = 2 * _IMAGES
_STAGES: Final = 4
_FLOAT: Final = 4
_VECTOR: Final = 4
_TAPS: Final = KERNEL_SIZE**2
_LAST_STAGES: Final = 5
_COLUMNS_STAGED: Final = 4  # of input pixels, whose outputs leave together
_STAGED: Final = (
    4 * _IMAGES * 6 * _COLUMNS_STAGED
)  # floats: four rows of outputs, two columns of three colours for one of inputs
_LAST_COLUMNS: Final = 48  # sums of a row of outputs that an input meets
_RELATIONS: Final = 3  # of a row of inputs to one of outputs
_MOST_CHANNELS: Final = 512


def skip(case: Case, config: Params) -> str | None:
    """Channels of every layer must fill vectors, and the weights of the last one fit shared memory."""
    if channels_of(case) > _MOST_CHANNELS:
        return (
            "keeps the weights of the last layer in shared memory; "
            f"they fit where the first layer has at most {_MOST_CHANNELS} channels"
        )
    return phases.skip(case, config)


def three_products(case: Case, config: Params) -> Sequence[Launch]:
    """3xTF32: weights, and beside them what tensor cores cut off; pixels are split on their way."""
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


def scratch(case: Case, config: Params) -> Mapping[str, Buffer]:
    """`x0` to `x3`, the pixels between layers by [y][x][image][channel]; `r0` to `r3`, what is made of the weights; `folded`, scale and
    shift of each layer; `next`, a counter of tiles for each layer."""
    channels, side, images = channels_of(case), side_of(case), images_of(case)
    *middle, last = layers(case)
    found = {
        "folded": Buffer((2 * last.number, channels)),
        "next": Buffer((last.number + 1,), "int32", zeroed=True),
        "r0": Buffer((side**2 * channels, LATENT)),
        "x0": Buffer((side, side, images, channels)),
    }
    for layer in middle:
        found[f"r{layer.number}"] = Buffer((_TAPS * layer.out_channels, layer.channels))
        found[f"x{layer.number}"] = Buffer((2 * layer.side, 2 * layer.side, images, layer.out_channels))
    return found


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
    """Rounded, or what tensor cores cut off; and the counter of a layer's tiles at 0."""
    vectors = count // _VECTOR
    args = (name, to, np.int32(vectors), "next", np.int32(number))
    return Launch(f"prepare<{str(rest).lower()}>", (ceil_div(vectors, 256), 1, 1), (256, 1, 1), args, once=name != "z")


def _split_tile(layer: Layer) -> tuple[int, int]:
    """Output pixels of a tile of 3xTF32, and channels of each."""
    return (1, 128) if layer.out_channels >= 128 else (2, 64)


def _rounded_tile(layer: Layer, images: int) -> tuple[int, int]:
    """Output pixels of a tile of TF32, and channels of each. Narrower ones fetch more, but of few images there are enough for all
    multiprocessors."""
    if layer.out_channels < 128:
        return 4, 64
    if layer.out_channels < 256:
        return 2, 128
    return 1, 128 if images <= _FEW else 256


def _dense(case: Case, pixels: str, weights: tuple[str, ...], columns: int) -> Launch:
    """One pixel with one tap, and the channels of all pixels as its output channels."""
    channels, images = channels_of(case), images_of(case)
    outputs = side_of(case) ** 2 * channels
    tiles = ceil_div(images, _IMAGES) * ceil_div(outputs, columns)
    maps = (TensorMap(pixels, (_IMAGES, DEPTH), 128), *(TensorMap(name, (columns, DEPTH), 128) for name in weights))
    sizes = (1, images, LATENT, outputs, 0, channels)
    return _persistent(f"layer_product<1, {columns}, true, {_STAGES}>", tiles, columns, maps, "x0", sizes)


def _product(case: Case, layer: Layer, weights: tuple[str, ...], outputs: int, columns: int) -> Launch:
    n, images = layer.number, images_of(case)
    tiles = 4 * layer.side**2 // outputs * ceil_div(images, _IMAGES) * ceil_div(layer.out_channels, columns)
    pixels = TensorMap(f"x{n - 1}", (_IMAGES, DEPTH), 128, (layer.side**2 * images, layer.channels))
    rows = (_TAPS * layer.out_channels, layer.channels)
    maps = (pixels, *(TensorMap(name, (columns, DEPTH), 128, rows) for name in weights))
    sizes = (layer.side, images, layer.channels, layer.out_channels, n, channels_of(case))
    return _persistent(f"layer_product<{outputs}, {columns}, false, {_STAGES}>", tiles, outputs * columns, maps, f"x{n}", sizes)


def _persistent(kernel: str, tiles: int, columns: int, maps: tuple[TensorMap, ...], out: str, sizes: tuple[int, ...]) -> Launch:
    """One block a multiprocessor, which takes tile after tile. Its stages hold a tile's pixels and as many weights as there are maps
    of them."""
    shared = _STAGES * DEPTH * (_IMAGES + (len(maps) - 1) * columns) * _FLOAT + ALIGNMENT_BYTES
    args = (*maps, "folded", out, "next", *map(np.int32, sizes))
    return Launch(kernel, (min(tiles, MULTIPROCESSORS), 1, 1), (THREADS, 1, 1), args, shared)


def _last(case: Case, layer: Layer, parts: int) -> Launch:
    """Three colours of every output pixel, and their tanh."""
    images = images_of(case)
    width = width_of_units(layer.side, images)
    units = ceil_div(images, _IMAGES) * (layer.side // 2) * ceil_div(layer.side, width)
    matrices = parts * _RELATIONS * ceil_div(layer.channels, DEPTH) * _LAST_COLUMNS * DEPTH
    shared = (_LAST_STAGES * _IMAGES * DEPTH + matrices + _STAGED) * _FLOAT + ALIGNMENT_BYTES
    pixels = TensorMap("x3", (_IMAGES, DEPTH), 128, (layer.side**2 * images, layer.channels))
    args = (pixels, "w4", "b4", "images", "next", *map(np.int32, (layer.number, layer.side, layer.channels, images, width)))
    return Launch(
        f"last_layer_wgmma<{parts}, {_LAST_STAGES}>", (min(units, MULTIPROCESSORS), 1, 1), (THREADS, 1, 1), args, shared
    )


def width_of_units(side: int, images: int) -> int:
    """Columns of input pixels that a block of the last layer walks along: as many as end soonest, each piece with one more column at
    either end; a multiple of four, as `side` is."""

    def columns_in_turn(width: int) -> int:
        pieces = ceil_div(side, width)
        units = pieces * side // 2 * ceil_div(images, _IMAGES)
        return ceil_div(units, MULTIPROCESSORS) * (width if pieces == 1 else width + 2)

    widths = (side >> halvings for halvings in range(side.bit_length()))
    return min((width for width in widths if width % _COLUMNS_STAGED == 0), key=columns_in_turn)
