"""The step on warpgroups with TF32, as `kernels/v08_warpgroups_tf32.cu` has it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np

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
)
from warpladder.workloads.mlp_training import shares
from warpladder.workloads.mlp_training.problem import Size, size_of
from warpladder.workloads.mlp_training.wgmma import SPARE_BLOCKS, pitch_of
from warpladder.workloads.shares import Line, even_shares, parts_of_tiles, whole_tiles

_OF: Final = Constants(Path(__file__).resolve().parent / "kernels" / "v08_warpgroups_tf32.cu")
_FLOAT: Final = 4
#: Stages that fit shared memory, by the columns of a tile.
_STAGES: Final = {64: 8, 256: 4}
#: Parts of a tile on the way back, by its columns; without a number, even shares.
_PARTS: Final = {256: 4}
#: Fewest stages along k of a part of a tile.
_LEAST_STAGES: Final = 4


def forward_line(size: Size, config: Params) -> Line:
    """Of x w1: whole tiles, or parts of tiles if these fit all multiprocessors at once."""
    tiles, depth = _tiles(size.hidden, size.batch, config["columns"]), ceil_div(size.inputs, _OF["kDepth"])
    parts = min(MULTIPROCESSORS // tiles, max(1, depth // _LEAST_STAGES))
    return parts_of_tiles(tiles, depth, parts) if parts > 1 else whole_tiles(tiles, depth, MULTIPROCESSORS)


def backward_line(size: Size, config: Params) -> Line:
    """Of x^T dz1: whole tiles, one a block, where they are nearly as many as multiprocessors; otherwise parts of tiles or even
    shares."""
    tiles, depth = _tiles(size.inputs, size.hidden, config["columns"]), ceil_div(size.batch, _OF["kDepth"])
    most = MULTIPROCESSORS - SPARE_BLOCKS
    if most / 2 < tiles <= most:
        return whole_tiles(tiles, depth, most)
    if parts := _PARTS.get(config["columns"]):
        return parts_of_tiles(tiles, depth, min(parts, max(1, depth // _LEAST_STAGES)))
    return even_shares(tiles, depth, min(MULTIPROCESSORS, max(tiles, tiles * depth // _LEAST_STAGES)))


def scratch(case: Case, config: Params) -> Mapping[str, Buffer]:
    """As `shares.scratch` says, gradients transposed and filled up to fours of samples."""
    size = size_of(case)
    forward, backward = forward_line(size, config), backward_line(size, config)
    buffers = shares.scratch(size, forward, backward, (size.hidden, pitch_of(size)))
    return {name: buffer for name, buffer in buffers.items() if name != "dw1" or not backward.has_whole_tiles}


def launches(case: Case, config: Params) -> Sequence[Launch]:
    """Forward in two launches; backward and update in one or two."""
    size, columns = size_of(case), config["columns"]
    forward, backward = forward_line(size, config), backward_line(size, config)
    template, shared = f"<{columns}, {_STAGES[columns]}>", _shared_bytes(columns)
    extents = tuple(map(np.int32, (size.batch, size.inputs, size.hidden)))
    threads = (_OF["kProducers"] + _OF["kConsumers"], 1, 1)
    operands = (_by_rows("x"), _by_columns("dz1", columns))
    ahead = (
        Launch(
            f"forward_hidden{template}",
            (forward.blocks, 1, 1),
            threads,
            (_by_rows("w1"), _by_columns("x", columns), "b1", "z1", *extents, *forward.scalars),
            shared,
        ),
        shares.output_layer(size, forward, columns, tf32=True),
    )
    if backward.has_whole_tiles:
        weights = ("w1", "b1", "w2", "b2", "new_w1", "new_b1", "new_w2", "new_b2", "parts")
        count, last = np.int32(shares.count_of_parts(size)), (*shares.rates(case), *backward.scalars, np.int32(backward.blocks))
        arguments = (*operands, *weights, count, *extents, *last)
        return (
            *ahead,
            Launch(f"backward_update{template}", (backward.blocks + SPARE_BLOCKS, 1, 1), threads, arguments, shared),
        )
    slices = (*operands, "dw1", *extents, shares.rates(case)[0], *backward.scalars)
    return (
        *ahead,
        Launch(f"backward_slices{template}", (backward.blocks, 1, 1), threads, slices, shared),
        shares.update(case, backward, (_OF["kRows"], columns), (1, ceil_div(size.inputs, _OF["kRows"]))),
    )


def _by_rows(name: str) -> TensorMap:
    """The first operand of a product, whose rows are neighbours in memory."""
    return TensorMap(name, (_OF["kDepth"], _OF["kBox"]), 128, tf32=True)


def _by_columns(name: str, columns: int) -> TensorMap:
    """The second operand, whose steps along k are neighbours in memory."""
    return TensorMap(name, (columns, _OF["kDepth"]), 128, tf32=True)


def _tiles(rows: int, columns: int, width: int) -> int:
    return ceil_div(rows, _OF["kRows"]) * ceil_div(columns, width)


def _shared_bytes(columns: int) -> int:
    return _STAGES[columns] * _OF["kDepth"] * (_OF["kRows"] + columns) * _FLOAT + ALIGNMENT_BYTES
