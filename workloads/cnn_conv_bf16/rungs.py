"""The rungs in BF16, each with its launches."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from warpladder.workloads.api import ALIGNMENT_BYTES, MULTIPROCESSORS, Case, Constants, Launch, Params, TensorMap, ceil_div
from warpladder.workloads.cnn_conv.problem import SIZE, Shape, shape_of
from warpladder.workloads.ladder import HOPPER, launch, rungs_in, template

_KERNELS: Final = Path(__file__).resolve().parent / "kernels"
_PARALLEL: Final = Constants(_KERNELS / "v01_parallel.cu")
_WHOLE_IMAGES: Final = Constants(_KERNELS / "v02_whole_images.cu")

_ELEMENT: Final = 2  # bytes
_WORD: Final = 4
_MOST_SHARED_BYTES: Final = 227 * 1024  # of a block on Hopper
_MOST_OF_BOX: Final = 256  # elements along an axis


def _parallel(case: Case, config: Params) -> Sequence[Launch]:
    """Images, maps and tiles of the output are the grid's dimensions."""
    shape, tile = shape_of(case), _PARALLEL["kTile"]
    tiles = ceil_div(shape.out_height, tile) * ceil_div(shape.out_width, tile)
    sizes = (shape.channels, shape.maps, shape.height, shape.width)
    return [launch("conv_layer", (shape.batch, shape.maps, tiles), (tile, tile), "x", "k", "y", *sizes)]


def _band_rows(shape: Shape) -> int:
    """Output rows of a band, where an image is as many bands side by side as a block has pairs for."""
    pairs = _WHOLE_IMAGES["kWarpgroups"] * _WHOLE_IMAGES["kPairs"]
    return ceil_div(shape.out_height, max(pairs // (shape.out_width // 2), 1))


def _shared_bytes(shape: Shape) -> int:
    """Of a block: the filters, and buffers for the pixels and the results of images."""
    of = _WHOLE_IMAGES
    pixels = ceil_div(_ELEMENT * shape.channels * shape.height * shape.width, 128) * 128
    results = ceil_div(_ELEMENT * shape.maps * shape.out_height * shape.out_width, 128) * 128
    barriers = 8 * (2 * of["kInBuffers"] + 2 * of["kOutBuffers"] + of["kWarpgroups"] + 1)
    filters = SIZE * of["kColumns"] * of["kWords"] * _WORD
    return filters + of["kInBuffers"] * pixels + of["kOutBuffers"] * results + barriers + ALIGNMENT_BYTES


def _whole_images(case: Case, config: Params) -> Sequence[Launch]:
    """A block for each multiprocessor. It takes one image after another."""
    shape = shape_of(case)
    rows = shape.channels * shape.height
    kernel = template("conv_layer", shape.height, shape.width, _band_rows(shape))
    pixels = TensorMap("x", box=(rows, shape.width), shape=(shape.batch * rows, shape.width))
    blocks, threads = min(MULTIPROCESSORS, shape.batch), _WHOLE_IMAGES["kThreads"]
    return [launch(kernel, blocks, threads, pixels, "k", "y", shape.batch, shared_bytes=_shared_bytes(shape))]


def _not_for_whole_images(case: Case, config: Params) -> str | None:
    shape = shape_of(case)
    if shape.width % 8 or shape.out_height < 1 or shape.out_width < 2:
        return "the TMA copies rows of pixels whose bytes are a multiple of 16: a width in eights"
    if shape.channels * shape.height > _MOST_OF_BOX or _shared_bytes(shape) > _MOST_SHARED_BYTES:
        return "images and their results are larger than shared memory, or than the TMA copies at once"
    if _band_rows(shape) > SIZE:
        return f"a block computes bands of at most {SIZE} rows side by side; these images have more rows"
    return None


_rung: Final = rungs_in(_KERNELS)

CUDA_VARIANTS: Final = (
    _rung("v01_parallel", "Thread an output", _parallel, precision="bf16"),
    _rung("v02_whole_images", "Whole images", _whole_images, precision="bf16", skip=_not_for_whole_images, **HOPPER),
)
