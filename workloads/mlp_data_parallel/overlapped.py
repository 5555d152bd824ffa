"""Launches of `kernels/v03_overlapped.cu`: weights leave as soon as they are new, while the gradient of others is computed."""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from warpladder.workloads.api import Buffer, Case, Launch, Params, Step, ceil_div, split_evenly
from warpladder.workloads.communication import AllReduce, RowsOf
from warpladder.workloads.mlp_training import fused
from warpladder.workloads.mlp_training.problem import REGULARIZATION, Size, rate_of, size_of

_VECTOR: Final = 4


def chunks_of(size: Size, config: Params) -> tuple[tuple[int, int], ...]:
    """First and number of the rows of w1 that are one chunk: whole tiles, but for the last chunk's last."""
    tiles = ceil_div(size.inputs, fused.TILE_ROWS)
    spans = split_evenly(tiles, min(config["chunks"], tiles), "tiles")
    return tuple(
        (first * fused.TILE_ROWS, min((first + count) * fused.TILE_ROWS, size.inputs) - first * fused.TILE_ROWS)
        for first, count in spans
    )


def scratch(case: Case, config: Params) -> Mapping[str, Buffer]:
    """As of the fused step, but slices of each chunk of x^T dz1 for themselves."""
    size = size_of(case)
    of_fused = {name: buffer for name, buffer in fused.scratch(case, config).items() if name != "dw1_slices"}
    return of_fused | {
        f"dw1_slices_{number}": Buffer((_slices(size, rows, config).count, rows, size.hidden))
        for number, (_, rows) in enumerate(chunks_of(size, config))
    }


def _slices(size: Size, rows: int, config: Params) -> fused.Slices:
    return fused.slices_of(rows, size.hidden, size.batch, config["blocks"])


def launches(case: Case, config: Params) -> Sequence[Step]:
    """Forward in two launches; gradients of the output layer and update; then each chunk of w1's. What is new is averaged beside."""
    size, vector = size_of(case), fused.vector_of(size_of(case))
    batch, inputs, hidden = np.int32(size.batch), np.int32(size.inputs), np.int32(size.hidden)
    samples = ceil_div(size.batch, fused.chunk_of(size))
    step = (np.float32(rate_of(case)), np.float32(1.0 - rate_of(case) * REGULARIZATION))
    # `update` takes all weights; of those whose number is given as 0, or that it has no blocks for, it touches nothing.
    small = ("w1", "b1", "w2", "b2", "new_b1", "new_b1", "new_w2", "new_b2", "parts", "parts")
    steps: list[Step] = [
        *fused.launches(case, config)[:2],
        Launch(
            "backward_output",
            (fused.output_gradient_blocks(size), 1, 1),
            (fused.TILE_THREADS, 1, 1),
            ("a1", "dz2", "dz1", "parts", batch, hidden, np.int32(fused.chunk_of(size))),
        ),
        Launch(
            f"update<{vector}>",
            (fused.small_blocks(size), 1, 1),
            (fused.THREADS, 1, 1),
            (*small, np.int32(0), np.int32(samples), np.int32(0), hidden, *step),
        ),
        AllReduce(("new_b1", "new_w2", "new_b2"), beside=True),
    ]
    for number, (first, rows) in enumerate(chunks_of(size, config)):
        slices, of_chunk = _slices(size, rows, config), f"dw1_slices_{number}"
        old, new = RowsOf("w1", first, rows), RowsOf("new_w1", first, rows)
        tiles = (ceil_div(size.hidden, fused.TILE_COLUMNS), ceil_div(rows, fused.TILE_ROWS), slices.count)
        weights = ceil_div(rows * size.hidden // (_VECTOR if vector == "true" else 1), fused.THREADS)
        steps += [
            Launch(
                f"backward_rows<{vector}>",
                tiles,
                (fused.TILE_THREADS, 1, 1),
                ("x", "dz1", of_chunk, batch, inputs, hidden, np.int32(slices.depth), np.int32(first), np.int32(rows)),
            ),
            Launch(
                f"update<{vector}>",
                (weights, 1, 1),
                (fused.THREADS, 1, 1),
                (
                    *(old, "b1", "w2", "b2", new, new, new, new, of_chunk, "parts"),
                    *(np.int32(slices.count), np.int32(0), np.int32(rows), hidden, *step),
                ),
            ),
            AllReduce((new,), beside=True),
        ]
    return steps
