"""Launches of the rungs by phases: operands prepared, the dense layer, three products, and the last layer."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from warpladder.workloads.api import Buffer, Case, Constants, Launch, Params, ceil_div
from warpladder.workloads.gan_tconv.problem import COLOURS, KERNEL_SIZE, LATENT, Layer, channels_of, images_of, layers, side_of
from warpladder.workloads.ladder import launch, template

#: Kernel of one layer's product with the tile's rows and columns, threads a block, and dynamic shared memory.
Product = Callable[[Layer, Params], tuple[str, int, int, int, int]]

_KERNELS: Final = Path(__file__).parent / "kernels"
_TAPS: Final = KERNEL_SIZE**2
_VECTOR: Final = 4
_PHASES: Final = 4  # of outputs, by the parities of row and column; and layers whose outputs are normalised
_FLOAT_BYTES: Final = 4
_LANES: Final = 32
_OF_PHASES: Final = Constants(_KERNELS / "phases.cuh")
_OF_TRANSPOSE: Final = _OF_PHASES.within("transpose")
_OF_TENSOR_TILE: Final = Constants(_KERNELS / "tensor_tile.cuh")
_OF_LAST_LAYER_TF32: Final = Constants(_KERNELS / "last_layer_tf32.cuh")


def stride_of(case: Case) -> int:
    """The number of images, rounded up to whole vectors: the length of a row."""
    return ceil_div(images_of(case), _VECTOR) * _VECTOR


def skip(case: Case, config: Params) -> str | None:
    """Channels of every layer must fill vectors."""
    if channels_of(case) % (8 * _VECTOR) == 0:
        return None
    return f"channels are copied four at a time, in every layer: {channels_of(case)} is no multiple of 32"


def scratch(case: Case, config: Params) -> Mapping[str, Buffer]:
    """`x0` to `x3`: pixels between layers by [y][x][channel][image]. `m0` to `m4`: weights as matrices. `latent`: z transposed.
    `folded`: scale and shift of each layer."""
    channels, side, stride = channels_of(case), side_of(case), stride_of(case)
    buffers = {
        "latent": Buffer((LATENT, stride)),
        "folded": Buffer((2 * _PHASES, channels)),
        "m0": Buffer((LATENT, side**2 * channels)),
        "x0": Buffer((side, side, channels, stride)),
    }
    for layer in layers(case):
        if layer.last:
            buffers["m4"] = Buffer((layer.channels, _OF_PHASES["kWeights"]))
        else:
            buffers[f"m{layer.number}"] = Buffer((_TAPS, layer.channels, layer.out_channels))
            buffers[f"x{layer.number}"] = Buffer((2 * layer.side, 2 * layer.side, layer.out_channels, stride))
    return buffers


def launches(case: Case, config: Params, product: Product, round_operands: bool = False) -> Sequence[Launch]:
    """One operation.

    Args:
        product: the kernel of the three layers in the middle.
        round_operands: whether it takes operands rounded to TF32.
    """
    *middle, last = layers(case)
    return [
        fold(case),
        _transposed("z", "latent", images_of(case), LATENT, stride_of(case)),
        _transposed("w0", "m0", side_of(case) ** 2 * channels_of(case), LATENT),
        dense(case, config, round_operands),
        *(each for layer in middle for each in _middle(case, layer, config, product, round_operands)),
        _transposed("w4", "m4", _TAPS * COLOURS, last.channels, _OF_PHASES["kWeights"]),
        last_layer_tf32(case) if round_operands else last_layer(case),
    ]


def fold(case: Case) -> Launch:
    """Batch normalisation and bias of every layer as scale and shift."""
    names = [name for n in range(_PHASES) for name in ([f"bn{n}", f"b{n}"] if n else ["bn0"])]
    channels = channels_of(case)
    return launch("fold", (ceil_div(channels, 128), _PHASES), 128, *names, "folded", channels, once=True)


def dense(case: Case, config: Params, rounded: bool = False) -> Launch:
    """The dense layer as a convolution: one input pixel, one tap, and the channels of all pixels as output channels."""
    channels, stride = channels_of(case), stride_of(case)
    outputs = side_of(case) ** 2 * channels
    kernel, rows, columns, threads = fma_tile(config, 128, dense=True, rounded=rounded)
    blocks = ceil_div(stride, rows) * ceil_div(outputs, columns)
    return launch(kernel, blocks, threads, "latent", "m0", "folded", "x0", 1, stride, LATENT, outputs, 0, channels)


def last_layer(case: Case) -> Launch:
    """Three colours of every output pixel, and their tanh."""
    *_, last = layers(case)
    images, patches_a_block = images_of(case), 4
    patches = (2 * last.side // _OF_PHASES["kPatch"]) ** 2
    return launch(
        *("last_layer", (ceil_div(images, _LANES), patches // patches_a_block), (_LANES, patches_a_block)),
        *("x3", "m4", "b4", "images", last.side, stride_of(case), last.channels, images),
        shared_bytes=_FLOAT_BYTES * _OF_PHASES["kWeights"] * last.channels,
    )


def last_layer_tf32(case: Case) -> Launch:
    """The same on tensor cores."""
    *_, last = layers(case)
    of, images = _OF_LAST_LAYER_TF32, images_of(case)
    rows, columns = of["kPixelsDown"] * of["kWarpsDown"], of["kPixelsAcross"] * of["kWarpsAcross"]  # input pixels of a block
    fragment_bytes = 16  # a float4 a lane
    return launch(
        template("last_layer_tf32", last.channels % 8 == 0),
        *(
            (ceil_div(images, _LANES), last.side // rows * (last.side // columns)),
            _LANES * of["kWarpsDown"] * of["kWarpsAcross"],
        ),
        *("x3", "m4", "b4", "images", last.side, stride_of(case), last.channels, images),
        shared_bytes=of["kNeighbours"] * _LANES * fragment_bytes * ceil_div(last.channels, 8),
    )


def tiles(case: Case, layer: Layer, rows: int, columns: int) -> int:
    """Blocks of a layer's products."""
    return _PHASES * ceil_div(layer.side**2 * stride_of(case), rows) * ceil_div(layer.out_channels, columns)


def _transposed(name: str, to: str, rows: int, columns: int, stride: int = 0, batch: int = 1, rounded: bool = False) -> Launch:
    stride, tile = stride or rows, _OF_TRANSPOSE["kTile"]
    grid, block = (ceil_div(stride, tile), ceil_div(columns, tile), batch), (tile, _OF_TRANSPOSE["kStep"])
    return launch(template("transpose", rounded), grid, block, name, to, rows, columns, stride, once=name != "z")


def _middle(case: Case, layer: Layer, config: Params, product: Product, rounded: bool) -> tuple[Launch, Launch]:
    """The weights of a layer as matrices, and its product."""
    n = layer.number
    kernel, rows, columns, threads, shared_bytes = product(layer, config)
    sizes = (layer.side, stride_of(case), layer.channels, layer.out_channels, n, channels_of(case))
    args = (f"x{n - 1}", f"m{n}", "folded", f"x{n}", *sizes)
    return (
        _transposed(f"w{n}", f"m{n}", layer.out_channels, layer.channels, batch=_TAPS, rounded=rounded),
        launch(kernel, tiles(case, layer, rows, columns), threads, *args, shared_bytes=shared_bytes),
    )


def fma_tile(config: Params, most_columns: int, dense: bool, rounded: bool) -> tuple[str, int, int, int]:
    """The kernel on the multiply-add units, and its rows, columns and threads. A thread has 8 x 8 sums."""
    rows = config.get("tile", 128)
    columns = min(rows, most_columns)
    return template("product", rows, columns, dense, rounded), rows, columns, rows * columns // 64


def fma_product(layer: Layer, config: Params) -> tuple[str, int, int, int, int]:
    """`Product` on the multiply-add units."""
    return (*fma_tile(config, 128 if layer.out_channels >= 128 else 64, dense=False, rounded=False), 0)


def tensor_product(terms: str, rounded: bool) -> Product:
    """`Product` on tensor cores.

    Args:
        terms: struct of the kernel that multiplies the operands.
        rounded: operands are rounded to TF32. So are the outputs, except for those that the last layer takes.
    """

    def product(layer: Layer, config: Params) -> tuple[str, int, int, int, int]:
        rows, columns = 128, min(config.get("columns", 64), 128 if layer.out_channels >= 128 else 64)
        warp_columns, of = columns // 2, _OF_TENSOR_TILE
        kernel = template("tensor_product", terms, rows, columns, warp_columns, rounded and layer.number < 3)
        threads = rows // of["kWarpRows"] * (columns // warp_columns) * _LANES
        stage_floats = of["kTensorDepth"] * (rows + columns + 2 * of["kPadding"])
        return kernel, rows, columns, threads, of["kTensorStages"] * stage_floats * _FLOAT_BYTES

    return product
