"""The ladder: every CUDA variant and how it is launched. What each tries stands at the head of its `.cu` file."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np

from workloads.api import Case, CudaVariant, Launch, Params, ceil_div
from workloads.cnn_conv.problem import Shape, shape_of

KERNELS: Final = Path(__file__).resolve().parent / "kernels"

_TILE: Final = 16
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
)
