"""Launches of the rungs on Hopper's warpgroups: products whose operands are tensor maps, between the kernels of the rungs by phases."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from workloads.api import Buffer, Case, Launch, Params, TensorMap, ceil_div
from workloads.gan_tconv import phases
from workloads.gan_tconv.network import KERNEL_SIZE, LATENT, Layer, channels_of, layers, side_of
from workloads.hopper import ALIGNMENT_BYTES, BOX, DEPTH, MULTIPROCESSORS, THREADS

_IMAGES: Final = 128
_FLOAT: Final = 4
_TAPS: Final = KERNEL_SIZE**2
_QUARTER: Final = 64


@dataclass(frozen=True)
class Tile:
    """A kernel and its tile: images, output channels, output pixels, and floats a channel that a stage holds."""

    kernel: str
    images: int
    columns: int
    pixels: int
    stages: int
    floats: int

    @property
    def shared_bytes(self) -> int:
        return self.stages * DEPTH * self.floats * _FLOAT + ALIGNMENT_BYTES


def skip(case: Case, config: Params) -> str | None:
    """Channels of every layer must fill stages, two at a time."""
    if channels_of(case) % 512 == 0:
        return None
    return f"takes 64 channels of the third layer at a time, as the whole network has: {channels_of(case)} in all are too few"


def three_products(case: Case, config: Params) -> Sequence[Launch]:
    """3xTF32: the dense layer and the last one on the multiply-add units."""
    *middle, _ = layers(case)
    return [
        phases.fold(case),
        *phases.transposed_ends(case),
        phases.dense(case, config),
        *(_split_product(case, layer) for layer in middle),
        phases.last_layer(case),
    ]


def one_product(case: Case, config: Params) -> Sequence[Launch]:
    """TF32: the dense layer on tensor cores as well."""
    *middle, _ = layers(case)
    dense = side_of(case) ** 2 * channels_of(case)
    return [
        phases.fold(case),
        *phases.transposed_ends(case, dense=False),
        _rounded("w0", "r0", dense * LATENT),
        *(_rounded(f"w{n.number}", f"r{n.number}", _TAPS * n.channels * n.out_channels) for n in middle),
        _rounded_dense(case),
        *(_rounded_product(case, layer) for layer in middle),
        phases.last_layer_tf32(case),
    ]


def scratch(case: Case, config: Params) -> Mapping[str, Buffer]:
    """Those of the rungs by phases, less the transposed weights of the layers in the middle."""
    return _without(phases.scratch(case, config), "m1", "m2", "m3")


def scratch_of_one_product(case: Case, config: Params) -> Mapping[str, Buffer]:
    """The same with `r0` to `r3`, weights as they come, rounded, in place of `m0`."""
    *middle, _ = layers(case)
    rounded = {f"r{layer.number}": Buffer((_TAPS * layer.out_channels, layer.channels)) for layer in middle}
    return {**_without(scratch(case, config), "m0"), "r0": Buffer((side_of(case) ** 2 * channels_of(case), LATENT)), **rounded}


def _without(buffers: Mapping[str, Buffer], *names: str) -> Mapping[str, Buffer]:
    return {name: buffer for name, buffer in buffers.items() if name not in names}


def _split_product(case: Case, layer: Layer) -> Launch:
    columns, stages = (128, 4) if layer.out_channels >= 128 else (64, 6)
    tile = Tile(f"warpgroup_product<{columns}, {stages}>", _IMAGES, columns, 1, stages, _IMAGES + 2 * columns)
    return _product(case, layer, tile, f"w{layer.number}")


def _rounded_product(case: Case, layer: Layer) -> Launch:
    if layer.out_channels >= 256:
        tile = Tile("warpgroup_product<1, 256, false, 4>", _IMAGES, 256, 1, 4, _IMAGES + 256)
    elif layer.out_channels >= 128:
        tile = Tile("warpgroup_product<2, 128, false, 4>", 2 * _IMAGES, 128, 1, 4, 2 * _IMAGES + 128)
    else:
        tile = Tile("quad_product<4>", _IMAGES, _QUARTER, 4, 4, _IMAGES + 4 * _QUARTER)
    return _product(case, layer, tile, f"r{layer.number}")


def _rounded_dense(case: Case) -> Launch:
    """One pixel, one tap, and the channels of all 4x4 pixels as its output channels."""
    channels, stride = channels_of(case), phases.stride_of(case)
    outputs = side_of(case) ** 2 * channels
    tile = Tile("warpgroup_product<1, 256, true, 4>", _IMAGES, 256, 1, 4, _IMAGES + 256)
    maps = (TensorMap("latent", (DEPTH, BOX), 128), TensorMap("r0", (tile.columns, DEPTH), 128))
    tiles = ceil_div(stride, tile.images) * ceil_div(outputs, tile.columns)
    sizes = map(np.int32, (1, stride, LATENT, outputs, 0, channels))
    return _persistent(tile, tiles, (*maps, "folded", "x0", *sizes))


def _rounded(name: str, to: str, count: int) -> Launch:
    return Launch("round_weights", (ceil_div(count // 4, 256), 1, 1), (256, 1, 1), (name, to, np.int32(count // 4)))


def _product(case: Case, layer: Layer, tile: Tile, weights: str) -> Launch:
    n, stride = layer.number, phases.stride_of(case)
    shape = (layer.side**2 * layer.channels, stride)
    maps = (
        TensorMap(f"x{n - 1}", (DEPTH, BOX), 128, shape),
        TensorMap(weights, (tile.columns, DEPTH), 128, (_TAPS * layer.out_channels, layer.channels)),
    )
    tiles = 4 * layer.side**2 // tile.pixels * ceil_div(stride, tile.images) * ceil_div(layer.out_channels, tile.columns)
    sizes = map(np.int32, (layer.side, stride, layer.channels, layer.out_channels, n, channels_of(case)))
    return _persistent(tile, tiles, (*maps, "folded", f"x{n}", *sizes))


def _persistent(tile: Tile, tiles: int, args: tuple[object, ...]) -> Launch:
    """One block a multiprocessor, which walks over the tiles."""
    return Launch(tile.kernel, (min(tiles, MULTIPROCESSORS), 1, 1), (THREADS, 1, 1), args, tile.shared_bytes)
