"""The launches behind products whose blocks have shares of a line of tiles, as `kernels/hidden_sums.cuh` has them."""

from warpladder.workloads.api import Buffer, Case, Launch, ceil_div
from warpladder.workloads.ladder import launch, template
from warpladder.workloads.mlp_training import fused, wgmma
from warpladder.workloads.mlp_training.problem import Size, size_of
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
    return launch(
        template("output_layer", ceil_div(size.hidden, threads), tf32, forward.has_whole_tiles),
        *(count_of_parts(size), threads, "z1", "w2", "b2", "y", "dz1", "parts"),
        *(size.batch, size.hidden, wgmma.pitch_of(size), wgmma.chunk_of(size), *forward.scalars, columns),
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
    return launch(
        *(template("update", *tile), weights + fused.small_blocks(size), threads, *fused.WEIGHTS, "dw1", "parts"),
        *(count_of_parts(size), size.inputs, size.hidden, *fused.rates(case), *backward.scalars, *strides, weights),
    )
