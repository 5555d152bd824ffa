"""The step on warpgroups with TF32, as `kernels/v08_warpgroups_tf32.cu` has it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

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
from warpladder.workloads.ladder import launch, template
from warpladder.workloads.mlp_training import fused, shares
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
    extents, threads = (size.batch, size.inputs, size.hidden), _OF["kProducers"] + _OF["kConsumers"]

    def product(kernel: str, blocks: int, rows: str, by: str, *args: Any) -> Launch:
        operands = (
            TensorMap(rows, (_OF["kDepth"], _OF["kBox"]), 128, tf32=True),
            TensorMap(by, (columns, _OF["kDepth"]), 128, tf32=True),
        )
        name, shared_bytes = template(kernel, columns, _STAGES[columns]), _shared_bytes(columns)
        return launch(name, blocks, threads, *operands, *args, shared_bytes=shared_bytes)

    ahead = (
        product("forward_hidden", forward.blocks, "w1", "x", "b1", "z1", *extents, *forward.scalars),
        shares.output_layer(size, forward, columns, tf32=True),
    )
    rates = fused.rates(case)
    if backward.has_whole_tiles:
        args = (*fused.WEIGHTS, "parts", shares.count_of_parts(size), *extents, *rates, *backward.scalars, backward.blocks)
        return (*ahead, product("backward_update", backward.blocks + SPARE_BLOCKS, "x", "dz1", *args))
    return (
        *ahead,
        product("backward_slices", backward.blocks, "x", "dz1", "dw1", *extents, rates[0], *backward.scalars),
        shares.update(case, backward, (_OF["kRows"], columns), (1, ceil_div(size.inputs, _OF["kRows"]))),
    )


def _tiles(rows: int, columns: int, width: int) -> int:
    return ceil_div(rows, _OF["kRows"]) * ceil_div(columns, width)


def _shared_bytes(columns: int) -> int:
    return _STAGES[columns] * _OF["kDepth"] * (_OF["kRows"] + columns) * _FLOAT + ALIGNMENT_BYTES
