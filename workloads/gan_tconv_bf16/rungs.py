"""The rungs in BF16, each with its launches."""

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
    up_to,
)
from warpladder.workloads.gan_tconv import phases
from warpladder.workloads.gan_tconv.problem import KERNEL_SIZE, LATENT, Layer, channels_of, images_of, layers, side_of
from warpladder.workloads.gan_tconv.wgmma import width_of_units
from warpladder.workloads.ladder import HOPPER, launch, rungs_in, template

_KERNELS: Final = Path(__file__).resolve().parent / "kernels"
_OF: Final = Constants(_KERNELS / "last_layer.cuh")  # and of warpgroups.cuh, which it includes
_FEW: Final = Constants(_KERNELS / "v03_few_images.cu")
_TAPS: Final = KERNEL_SIZE**2
_THREADS: Final = 128  # of a block of a thread an output
_ELEMENT: Final = 2  # bytes
_PITCH: Final = ceil_div(LATENT, 8) * 8  # elements of a padded row that the TMA takes: 16 bytes
_SHARED_BYTES: Final = 200 * 1024  # most that stages take
_LAST_STAGES: Final = 8


def _pixels(case: Case) -> Mapping[str, Buffer]:
    """`x0` to `x3`: pixels between layers by [y][x][image][channel]."""
    channels, side, images = channels_of(case), side_of(case), images_of(case)
    return {
        "x0": Buffer((side, side, images, channels), "bfloat16"),
        **{
            f"x{of.number}": Buffer((2 * of.side, 2 * of.side, images, of.out_channels), "bfloat16") for of in layers(case)[:-1]
        },
    }


def _folded(case: Case, config: Params) -> Mapping[str, Buffer]:
    """The same with `folded`, scale and shift of each layer."""
    return {**_pixels(case), "folded": Buffer((2 * layers(case)[-1].number, channels_of(case)))}


def _thread_an_output(case: Case, config: Params) -> Sequence[Launch]:
    *middle, last = layers(case)
    images, channels = images_of(case), channels_of(case)
    outputs = side_of(case) ** 2 * channels

    def blocks(count: int) -> int:
        return ceil_div(images * count, _THREADS)

    def grid(layer: Layer) -> tuple[int, int]:
        return blocks(layer.out_channels), 4 * layer.side**2

    return [
        phases.fold(case),
        launch("dense", blocks(outputs), _THREADS, "z", "w0", "folded", "x0", images, LATENT, outputs, channels),
        *(
            launch(
                *("tconv", grid(layer), _THREADS, f"x{layer.number - 1}", f"w{layer.number}", "folded", f"x{layer.number}"),
                *(layer.side, images, layer.channels, layer.out_channels, layer.number, channels),
            )
            for layer in middle
        ),
        launch("colours", grid(last), _THREADS, "x3", "w4", "b4", "images", last.side, images, last.channels),
    ]


def _skip_warpgroups(case: Case, config: Params) -> str | None:
    """The TMA takes rows of whole 16 bytes in every layer, and a block keeps the factors of all channels."""
    channels, most = channels_of(case), _OF["kMostChannels"]
    if channels % 64 == 0 and channels <= most:
        return None
    return f"takes eight channels at a time, in every layer: {channels} is no multiple of 64 up to {most}"


def _of_warpgroups(case: Case, config: Params) -> Mapping[str, Buffer]:
    """Pixels; `next`, a counter of tiles for each layer; and rows that the TMA takes."""
    return {
        **_pixels(case),
        "next": Buffer((layers(case)[-1].number,), "int32", zeroed=True),
        "latent": Buffer((images_of(case), _PITCH), "bfloat16"),
        "padded": Buffer((side_of(case) ** 2 * channels_of(case), _PITCH), "bfloat16"),
    }


def _warpgroups(case: Case, config: Params) -> Sequence[Launch]:
    *middle, last = layers(case)
    return [_pad(case), _dense(case), *(_product(case, layer) for layer in middle), _last(case, last)]


def _skip_few_images(case: Case, config: Params) -> str | None:
    if images_of(case) > _FEW["kMostImages"]:
        return f"rows of a product are pixels of all images: for at most {_FEW['kMostImages']}"
    return _skip_warpgroups(case, config)


def _of_few_images(case: Case, config: Params) -> Mapping[str, Buffer]:
    """Pixels, with zeros around them but for the last layer's."""
    pixels = _pixels(case)
    *inner, last = pixels
    padded = {name: (pixels[name].shape[0] + 2, pixels[name].shape[1] + 2, *pixels[name].shape[2:]) for name in inner}
    return {**{name: Buffer(shape, "bfloat16", zeroed=True) for name, shape in padded.items()}, last: pixels[last]}


def _few_images(case: Case, config: Params) -> Sequence[Launch]:
    images, channels, side = images_of(case), channels_of(case), side_of(case)
    *middle, last = layers(case)
    blocks = side**2 * channels // (_FEW["kDenseOutputs"] * _FEW["kDenseThreads"] // 32)
    return [
        launch("few_dense", blocks, _FEW["kDenseThreads"], "z", "w0", "bn0", "x0", images, channels, side),
        *(_of_rows(case, layer, config, border=int(layer is not middle[-1])) for layer in middle),
        launch(
            *(
                "few_colours",
                ceil_div(last.side**2 * images, _FEW["kLastPixels"]),
                _FEW["kLastThreads"],
                "x3",
                "w4",
                "b4",
                "images",
            ),
            *(last.side, images, last.channels),
            shared_bytes=ceil_div(last.channels, 32) * _FEW["kNeighbours"] * 64 * 16,
            early=True,
        ),
    ]


def _of_rows(case: Case, layer: Layer, config: Params, border: int) -> Launch:
    """The product of a layer in the middle. `border`: its outputs have zeros around them."""
    n, images, columns = layer.number, images_of(case), config["columns"] if layer.out_channels >= 128 else 64
    rows = ((layer.side - 1) * (layer.side + 2) + layer.side) * images  # with the zeros between two lines of pixels
    tiles = 4 * ceil_div(rows, _OF["kImages"]) * ceil_div(layer.out_channels, columns)
    parts = _parts(tiles, 4 * ceil_div(layer.channels, 2 * _OF["kChannels"]))
    stage_bytes = _OF["kRowBytes"] * (_OF["kImages"] + columns)
    stages = _SHARED_BYTES // stage_bytes
    return launch(
        *(template("row_product", columns, stages, parts), tiles * parts, _FEW["kRowThreads"]),
        TensorMap(f"x{n - 1}", _box(_OF["kImages"]), 128, ((layer.side + 2) ** 2 * images, layer.channels)),
        TensorMap(f"w{n}", _box(columns), 128, (_TAPS * layer.out_channels, layer.channels)),
        *(f"bn{n}", f"b{n}", f"x{n}", layer.side, images, _words(layer.channels), layer.out_channels, border),
        shared_bytes=stages * stage_bytes + ALIGNMENT_BYTES,
        early=True,
    )


def _parts(tiles: int, pairs: int) -> int:
    """Blocks that share a tile: as many as there are multiprocessors for and as a cluster may have, each with one of the fewest pairs of steps."""
    return max(parts for parts in (1, 2, 4) if parts == 1 or parts <= min(MULTIPROCESSORS // tiles, pairs))


def _pad(case: Case) -> Launch:
    """Rows of z and of the dense layer's weights, which the TMA does not take as they lie."""
    images, outputs, rows = images_of(case), side_of(case) ** 2 * channels_of(case), _OF["kPadRows"]
    grid = (ceil_div(images + outputs, rows), ceil_div(_PITCH, _OF["kPadSegment"]))
    args = ("z", "latent", images, "w0", "padded", outputs, LATENT, _PITCH)
    return launch(template("pad_operands", "unsigned short"), grid, (32, rows), *args)


def _dense(case: Case) -> Launch:
    """The dense layer as a convolution: one input pixel, one tap, and the channels of all pixels as output channels."""
    channels, images = channels_of(case), images_of(case)
    outputs, columns = side_of(case) ** 2 * channels, _columns(images)
    tiles = ceil_div(images, _OF["kImages"]) * ceil_div(outputs, columns)
    maps = TensorMap("latent", _box(_rows(images)), 128), TensorMap("padded", _box(columns), 128)
    return _persistent(1, columns, True, tiles, maps, ("bn0", "bn0", "x0"), (1, images, _words(_PITCH), outputs, 0, channels))


def _columns(images: int) -> int:
    """Of a tile of one output pixel. Narrow tiles fetch more data, but give all multiprocessors work where there are few images."""
    return {1: 64, 2: 128}.get(ceil_div(images, _OF["kImages"]), 256)


def _rows(images: int) -> int:
    """Images that the TMA brings for a tile."""
    return min(ceil_div(images, 8) * 8, int(_OF["kImages"]))


def _tile(layer: Layer, images: int) -> tuple[int, int]:
    """Output pixels of a tile, and channels of each."""
    if layer.out_channels < 128:
        return 4, 64
    if layer.out_channels < 256:
        return 2, 128
    return 1, _columns(images)


def _product(case: Case, layer: Layer) -> Launch:
    """The product of a layer in the middle."""
    n, images = layer.number, images_of(case)
    outputs, columns = _tile(layer, images)
    tiles = 4 * layer.side**2 // outputs * ceil_div(images, _OF["kImages"]) * ceil_div(layer.out_channels, columns)
    maps = (
        TensorMap(f"x{n - 1}", _box(_rows(images)), 128, (layer.side**2 * images, layer.channels)),
        TensorMap(f"w{n}", _box(columns), 128, (_TAPS * layer.out_channels, layer.channels)),
    )
    sizes = (layer.side, images, _words(layer.channels), layer.out_channels, n, channels_of(case))
    return _persistent(outputs, columns, False, tiles, maps, (f"bn{n}", f"b{n}", f"x{n}"), sizes)


def _words(channels: int) -> int:
    return channels * _ELEMENT // 4


def _box(rows: int) -> tuple[int, int]:
    """So many rows of the channels of a step: 128 bytes, the span of the swizzle."""
    return rows, _OF["kChannels"]


def _persistent(
    outputs: int,
    columns: int,
    dense: bool,
    tiles: int,
    maps: tuple[TensorMap, TensorMap],
    names: tuple[str, ...],
    sizes: tuple[int, ...],
) -> Launch:
    """One block for each multiprocessor, which takes one tile after another. A stage holds the pixels and the weights of a step."""
    stage_bytes = _OF["kRowBytes"] * (_OF["kImages"] + outputs * columns)
    stages = _SHARED_BYTES // stage_bytes
    return launch(
        *(template("layer_product", outputs, columns, dense, stages), min(tiles, MULTIPROCESSORS), _block()),
        *(*maps, *names, "next", *sizes),
        shared_bytes=stages * stage_bytes + ALIGNMENT_BYTES,
        early=True,
    )


def _block() -> int:
    """Threads of a block: a warpgroup that fetches and two that multiply."""
    return _OF["kProducers"] + _OF["kConsumers"]


def _last(case: Case, layer: Layer) -> Launch:
    """The last layer: three colours of every output pixel, and their tanh."""
    images, tile = images_of(case), _OF["kImages"]
    width = width_of_units(layer.side, images, _OF["kColumnsStaged"])
    units = ceil_div(images, tile) * (layer.side // 2) * ceil_div(layer.side, width)
    matrices = _OF["kRelations"] * ceil_div(layer.channels, _OF["kChannels"]) * _OF["kMatrix"]
    staged = 4 * tile * _OF["kStaged"]  # four rows of outputs
    pixels = TensorMap("x3", _box(_rows(images)), 128, (layer.side**2 * images, layer.channels))
    return launch(
        *(template("last_layer_wgmma", _LAST_STAGES), min(units, MULTIPROCESSORS), _block()),
        *(pixels, "w4", "b4", "images", "next", layer.number, layer.side, layer.channels, images, width),
        shared_bytes=_LAST_STAGES * tile * _OF["kRowBytes"] + (matrices + staged) * _ELEMENT + ALIGNMENT_BYTES,
        early=True,
    )


_rung: Final = rungs_in(_KERNELS)

CUDA_VARIANTS: Final = (
    _rung(
        *("v01_stride_two", "A thread an output", _thread_an_output),
        precision="bf16",
        scratch=_folded,
        skip=up_to(100, "images", images_of),
        min_compute_capability=(8, 0),
    ),
    _rung(
        *("v02_warpgroups", "Warpgroups", _warpgroups),
        precision="bf16",
        scratch=_of_warpgroups,
        skip=_skip_warpgroups,
        graph=True,
        **HOPPER,
    ),
    _rung(
        *("v03_few_images", "Pixels of all images as rows", _few_images),
        precision="bf16",
        scratch=_of_few_images,
        skip=_skip_few_images,
        configs=({"columns": 64}, {"columns": 128}),
        graph=True,
        **HOPPER,
    ),
)
