"""The step in four launches, as in `kernels/fused.cuh`, for the rungs that differ only in the tile of a product."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from warpladder.workloads.api import Buffer, Case, Constants, Launch, Params, ceil_div
from warpladder.workloads.ladder import launch, template
from warpladder.workloads.mlp_training.problem import INPUTS, OUTPUTS, REGULARIZATION, Size, rate_of, size_of

_KERNELS: Final = Path(__file__).resolve().parent / "kernels"
#: `kRows`, `kColumns` and `kTileThreads` of a product's tile.
TILE: Final = Constants(_KERNELS / "tiles.cuh")
#: `kThreads` of the kernels that are no products.
STEP: Final = Constants(_KERNELS / "fused.cuh")

#: Fewest steps of the sum in a slice. Shorter slices take most of their time to start and to write their result.
_LEAST_DEPTH = 32
#: A block adds up the output layer's gradient over a chunk of samples, and the update adds up the chunks. The least number of
#: samples in a chunk, and the largest number of chunks.
_LEAST_CHUNK, _MOST_CHUNKS = 64, 32
#: Blocks of `forward_output`. They share the samples, and each reads the output layer's weights once.
_SAMPLE_BLOCKS = 396
#: Arguments of every update: the weights, and the new ones.
WEIGHTS: Final = (*INPUTS, *OUTPUTS)


@dataclass(frozen=True)
class Slices:
    """A product cut along its sum: `count` slices of `depth` steps with `tiles` tiles each. The last slice may be shorter."""

    count: int
    depth: int
    tiles: int


def slices_of(rows: int, columns: int, steps: int, blocks: int) -> Slices:
    """The slices that give about `blocks` blocks. No slice is empty or too short to pay."""
    tiles = ceil_div(rows, TILE["kRows"]) * ceil_div(columns, TILE["kColumns"])
    count = max(1, min(blocks // tiles, steps // _LEAST_DEPTH))
    depth = ceil_div(ceil_div(steps, count), TILE["kDepth"]) * TILE["kDepth"]
    return Slices(ceil_div(steps, depth), depth, tiles)


def forward_slices(size: Size, config: Params) -> Slices:
    """Of x w1."""
    return slices_of(size.batch, size.hidden, size.inputs, config["blocks"])


def backward_slices(size: Size, config: Params) -> Slices:
    """Of x^T dz1."""
    return slices_of(size.inputs, size.hidden, size.batch, config["blocks"])


def chunk_of(size: Size) -> int:
    """Samples of a part of the output layer's gradient."""
    return max(_LEAST_CHUNK, ceil_div(size.batch, _MOST_CHUNKS))


def scratch(case: Case, config: Params) -> Mapping[str, Buffer]:
    """Slices of both products, activations and their gradients, parts of the output layer's gradient."""
    size = size_of(case)
    forward, backward = forward_slices(size, config), backward_slices(size, config)
    return {
        "z1_slices": Buffer((forward.count, size.batch, size.hidden)),
        "a1": Buffer((size.batch, size.hidden)),
        "dz1": Buffer((size.batch, size.hidden)),
        "dz2": Buffer((size.batch, size.classes)),
        "dw1_slices": Buffer((backward.count, size.inputs, size.hidden)),
        "parts": Buffer((ceil_div(size.batch, chunk_of(size)), size.classes + 1, size.hidden + 1)),
    }


def output_gradient_blocks(size: Size) -> int:
    """Blocks that compute the gradients of w2, b2 and b1."""
    return (size.hidden // 32 + 1) * ceil_div(size.batch, chunk_of(size))


def small_blocks(size: Size) -> int:
    """Blocks that update w2, b2 and b1."""
    return ceil_div((size.classes + 1) * (size.hidden + 1), STEP["kThreads"])


def has_vectors(size: Size) -> bool:
    """Whether rows of samples and weights are vectors of four."""
    return size.inputs % 4 == size.hidden % 4 == 0


def skip(case: Case, config: Params) -> str | None:
    """Copies are vectors of four, and the TMA takes rows of a multiple of 16 bytes."""
    size = size_of(case)
    if has_vectors(size):
        return None
    return f"copies four floats at a time: {size.inputs} inputs and {size.hidden} hidden units are not both multiples of four"


def rates(case: Case) -> tuple[np.generic, np.generic]:
    """The rate of the gradient, and how much of the old weight is kept."""
    return np.float32(rate_of(case)), np.float32(1.0 - rate_of(case) * REGULARIZATION)


def launches(case: Case, config: Params) -> Sequence[Launch]:
    """Forward in two launches, backward, update."""
    size = size_of(case)
    forward, backward, vector = forward_slices(size, config), backward_slices(size, config), has_vectors(size)
    threads, tile_threads = STEP["kThreads"], TILE["kTileThreads"]
    layers = ceil_div(output_gradient_blocks(size), backward.tiles)
    weights = ceil_div(size.inputs * size.hidden // (4 if vector else 1), threads)
    across = ceil_div(size.hidden, TILE["kColumns"])
    extents = (size.batch, size.inputs, size.hidden)
    return (
        launch(
            template("forward_hidden", vector),
            *((across, ceil_div(size.batch, TILE["kRows"]), forward.count), tile_threads),
            *("x", "w1", "z1_slices", *extents, forward.depth),
        ),
        launch(
            *(template("forward_output", ceil_div(size.hidden, threads)), min(size.batch, _SAMPLE_BLOCKS), threads),
            *("z1_slices", forward.count, "b1", "w2", "b2", "y", "a1", "dz2", "dz1", size.batch, size.hidden),
        ),
        launch(
            template("backward_weights", vector),
            *((across, ceil_div(size.inputs, TILE["kRows"]), layers + backward.count), tile_threads),
            *("x", "dz1", "a1", "dz2", "dw1_slices", "parts", *extents, backward.depth, chunk_of(size), layers),
        ),
        launch(
            *(template("update", vector), weights + small_blocks(size), threads, *WEIGHTS, "dw1_slices", "parts"),
            *(backward.count, ceil_div(size.batch, chunk_of(size)), size.inputs, size.hidden, *rates(case)),
        ),
    )
