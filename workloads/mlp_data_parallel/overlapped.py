"""Launches of `kernels/v03_overlapped.cu`: new weights are averaged while the gradients of other weights are computed."""

from collections.abc import Mapping, Sequence
from typing import Final

from warpladder.workloads.api import AllReduce, Buffer, Case, Params, RowsOf, Step, ceil_div, split_evenly
from warpladder.workloads.ladder import launch, template
from warpladder.workloads.mlp_training import fused
from warpladder.workloads.mlp_training.problem import Size, size_of

_VECTOR: Final = 4


def chunks_of(size: Size, config: Params) -> tuple[tuple[int, int], ...]:
    """The first row and the number of rows of each chunk of w1. Chunks are whole tiles, except at the end of the last one."""
    rows_of_tile = fused.TILE["kRows"]
    tiles = ceil_div(size.inputs, rows_of_tile)
    spans = split_evenly(tiles, min(config["chunks"], tiles), "tiles")
    return tuple(
        (first * rows_of_tile, min((first + count) * rows_of_tile, size.inputs) - first * rows_of_tile)
        for first, count in spans
    )


def scratch(case: Case, config: Params) -> Mapping[str, Buffer]:
    """The scratch of the fused step, with slices of x^T dz1 for each chunk."""
    size = size_of(case)
    of_fused = {name: buffer for name, buffer in fused.scratch(case, config).items() if name != "dw1_slices"}
    return of_fused | {
        f"dw1_slices_{number}": Buffer((_slices(size, rows, config).count, rows, size.hidden))
        for number, (_, rows) in enumerate(chunks_of(size, config))
    }


def _slices(size: Size, rows: int, config: Params) -> fused.Slices:
    return fused.slices_of(rows, size.hidden, size.batch, config["blocks"])


def launches(case: Case, config: Params) -> Sequence[Step]:
    """Forward in two launches; gradients and update of the output layer; then those of each chunk of w1. Averages run beside
    them."""
    size, vector, step = size_of(case), fused.has_vectors(size_of(case)), fused.rates(case)
    update, threads, tile_threads = template("update", vector), fused.STEP["kThreads"], fused.TILE["kTileThreads"]
    chunk, samples = fused.chunk_of(size), ceil_div(size.batch, fused.chunk_of(size))
    # `update` takes all weights. It leaves those alone whose number is given as 0, or that it has no blocks for.
    small = ("w1", "b1", "w2", "b2", "new_b1", "new_b1", "new_w2", "new_b2", "parts", "parts")
    steps: list[Step] = [
        *fused.launches(case, config)[:2],
        launch(
            *("backward_output", fused.output_gradient_blocks(size), tile_threads),
            *("a1", "dz2", "dz1", "parts", size.batch, size.hidden, chunk),
        ),
        launch(update, fused.small_blocks(size), threads, *small, 0, samples, 0, size.hidden, *step),
        AllReduce(("new_b1", "new_w2", "new_b2"), beside=True),
    ]
    for number, (first, rows) in enumerate(chunks_of(size, config)):
        slices, of_chunk = _slices(size, rows, config), f"dw1_slices_{number}"
        old, new = RowsOf("w1", first, rows), RowsOf("new_w1", first, rows)
        tiles = (ceil_div(size.hidden, fused.TILE["kColumns"]), ceil_div(rows, fused.TILE["kRows"]), slices.count)
        weights = ceil_div(rows * size.hidden // (_VECTOR if vector else 1), threads)
        steps += [
            launch(
                *(template("backward_rows", vector), tiles, tile_threads, "x", "dz1", of_chunk),
                *(size.batch, size.inputs, size.hidden, slices.depth, first, rows),
            ),
            launch(
                *(update, weights, threads, old, "b1", "w2", "b2", new, new, new, new, of_chunk, "parts"),
                *(slices.count, 0, rows, size.hidden, *step),
            ),
            AllReduce((new,), beside=True),
        ]
    return steps
