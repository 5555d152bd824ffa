"""The launches behind products whose blocks have shares of a line of tiles, as `kernels/hidden_sums.cuh` has them."""

import numpy as np

from warpladder.workloads.api import Buffer, Case, Launch, ceil_div
from warpladder.workloads.mlp_training import fused, wgmma
from warpladder.workloads.mlp_training.problem import REGULARIZATION, Size, rate_of, size_of
from warpladder.workloads.shares import Line


def scratch(size: Size, forward: Line, backward: Line, dz1: tuple[int, int]) -> dict[str, Buffer]:
    """Slices of both products, gradients before the sigmoid, parts of the small gradients."""
    return {
        "z1": Buffer((forward.slices, size.batch, size.hidden)),
        "dz1": Buffer(dz1),
        "dw1": Buffer((backward.slices, size.inputs, size.hidden)),
        "parts": Buffer((count_of_parts(size), size.classes + 1, size.hidden + 1)),
    }


def count_of_parts(size: Size) -> int:
    """Blocks of the output layer."""
    return ceil_div(wgmma.pitch_of(size), wgmma.chunk_of(size))


def output_layer(size: Size, forward: Line, columns: int, tf32: bool) -> Launch:
    """The launch between the products; `columns` are the samples of a tile of the forward one."""
    threads = fused.STEP["kThreads"]
    scalars = (size.batch, size.hidden, wgmma.pitch_of(size), wgmma.chunk_of(size))
    return Launch(
        f"output_layer<{ceil_div(size.hidden, threads)}, {str(tf32).lower()}, {str(forward.has_whole_tiles).lower()}>",
        (count_of_parts(size), 1, 1),
        (threads, 1, 1),
        ("z1", "w2", "b2", "y", "dz1", "parts", *map(np.int32, scalars), *forward.scalars, np.int32(columns)),
    )


def update(case: Case, backward: Line, tile: tuple[int, int], strides: tuple[int, int]) -> Launch:
    """The last launch, which adds the slices up.

    Args:
        case: the step.
        backward: the product whose slices these are.
        tile: inputs and hidden units of one of its tiles.
        strides: how many tiles a tile is behind its neighbour along the inputs, and along the hidden units.
    """
    size, threads = size_of(case), fused.STEP["kThreads"]
    weights = ceil_div(size.inputs * size.hidden // 4, threads)
    counts = (count_of_parts(size), size.inputs, size.hidden)
    return Launch(
        f"update<{tile[0]}, {tile[1]}>",
        (weights + fused.small_blocks(size), 1, 1),
        (threads, 1, 1),
        (
            *("w1", "b1", "w2", "b2", "new_w1", "new_b1", "new_w2", "new_b2", "dw1", "parts"),
            *map(np.int32, counts),
            *rates(case),
            *backward.scalars,
            *map(np.int32, (*strides, weights)),
        ),
    )


def rates(case: Case) -> tuple[np.generic, np.generic]:
    """The rate of the gradient, and how much of the old weight is kept."""
    return np.float32(rate_of(case)), np.float32(1.0 - rate_of(case) * REGULARIZATION)
