"""The step in four launches, as `kernels/fused.cuh` has it: for the rungs that differ in their tile of a product only."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from warpladder.workloads.api import Buffer, Case, Launch, Params, ceil_div
from warpladder.workloads.mlp_training.problem import REGULARIZATION, Size, rate_of, size_of

#: As in the kernels.
TILE_ROWS, TILE_COLUMNS, _DEPTH, TILE_THREADS = 64, 128, 16, 128
THREADS = 256

#: Fewest steps of the sum in a slice: what it costs to start and to write it is then the smaller part.
_LEAST_DEPTH = 32
#: Fewest samples whose part of the output layer's gradient a block adds up, and most such parts, which the update adds up.
_LEAST_CHUNK, _MOST_CHUNKS = 64, 32
#: Blocks that go through the samples of `forward_output`: each reads the output layer's weights once.
_SAMPLE_BLOCKS = 396


@dataclass(frozen=True)
class Slices:
    """A product cut along its sum: `count` slices of `depth` steps, the last one perhaps shorter, and `tiles` in each."""

    count: int
    depth: int
    tiles: int


def slices_of(rows: int, columns: int, steps: int, blocks: int) -> Slices:
    """As many slices as make about `blocks` blocks, none of them empty or shorter than it pays."""
    tiles = ceil_div(rows, TILE_ROWS) * ceil_div(columns, TILE_COLUMNS)
    wanted = max(1, min(blocks // tiles, steps // _LEAST_DEPTH))
    depth = ceil_div(ceil_div(steps, wanted), _DEPTH) * _DEPTH
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
    """Blocks that have the gradients of w2, b2 and b1."""
    return (size.hidden // 32 + 1) * ceil_div(size.batch, chunk_of(size))


def small_blocks(size: Size) -> int:
    """Blocks that update w2, b2 and b1."""
    return ceil_div((size.classes + 1) * (size.hidden + 1), THREADS)


def vector_of(size: Size) -> str:
    """Whether rows of samples and weights are vectors of four, as the kernels' template parameter."""
    return str(size.inputs % 4 == size.hidden % 4 == 0).lower()


def launches(case: Case, config: Params) -> Sequence[Launch]:
    """Forward in two launches, backward, update."""
    size = size_of(case)
    forward, backward = forward_slices(size, config), backward_slices(size, config)
    vector = vector_of(size)
    batch, inputs, hidden = np.int32(size.batch), np.int32(size.inputs), np.int32(size.hidden)
    chunks = ceil_div(size.batch, chunk_of(size))
    others = output_gradient_blocks(size)
    layers = ceil_div(others, backward.tiles)
    weights = ceil_div(size.inputs * size.hidden // (4 if vector == "true" else 1), THREADS)
    small = small_blocks(size)
    across = ceil_div(size.hidden, TILE_COLUMNS)
    return (
        Launch(
            f"forward_hidden<{vector}>",
            (across, ceil_div(size.batch, TILE_ROWS), forward.count),
            (TILE_THREADS, 1, 1),
            ("x", "w1", "z1_slices", batch, inputs, hidden, np.int32(forward.depth)),
        ),
        Launch(
            f"forward_output<{ceil_div(size.hidden, THREADS)}>",
            (min(size.batch, _SAMPLE_BLOCKS), 1, 1),
            (THREADS, 1, 1),
            ("z1_slices", np.int32(forward.count), "b1", "w2", "b2", "y", "a1", "dz2", "dz1", batch, hidden),
        ),
        Launch(
            f"backward_weights<{vector}>",
            (across, ceil_div(size.inputs, TILE_ROWS), layers + backward.count),
            (TILE_THREADS, 1, 1),
            (
                "x",
                "dz1",
                "a1",
                "dz2",
                "dw1_slices",
                "parts",
                batch,
                inputs,
                hidden,
                np.int32(backward.depth),
                np.int32(chunk_of(size)),
                np.int32(layers),
            ),
        ),
        Launch(
            f"update<{vector}>",
            (weights + small, 1, 1),
            (THREADS, 1, 1),
            (
                *("w1", "b1", "w2", "b2", "new_w1", "new_b1", "new_w2", "new_b2", "dw1_slices", "parts"),
                *(np.int32(backward.count), np.int32(chunks), inputs, hidden),
                *(np.float32(rate_of(case)), np.float32(1.0 - rate_of(case) * REGULARIZATION)),
            ),
        ),
    )
