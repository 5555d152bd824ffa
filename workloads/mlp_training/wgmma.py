"""The step in three launches, the large products on Hopper's warpgroups, as `kernels/v07_warpgroups_3xtf32.cu` has it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

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
from warpladder.workloads.mlp_training import fused
from warpladder.workloads.mlp_training.problem import Size, size_of

#: Blocks of the backward launch that are not of the product. They update all weights but w1.
SPARE_BLOCKS: Final = 20

_OF: Final = Constants(Path(__file__).resolve().parent / "kernels" / "v07_warpgroups_3xtf32.cu")
_FLOAT: Final = 4


def pitch_of(size: Size) -> int:
    """Floats from hidden unit to hidden unit in the transposed gradients: the batch, filled up to fours."""
    return ceil_div(size.batch, _OF["kSamples"]) * _OF["kSamples"]


def chunk_of(size: Size) -> int:
    """Samples of a block of the output layer: one block a multiprocessor at most."""
    groups = pitch_of(size) // _OF["kSamples"]
    return ceil_div(groups, MULTIPROCESSORS) * _OF["kSamples"]


def forward_columns(size: Size) -> int:
    """Samples of a tile of x w1: 128 if there are more than two tiles of 64 for each multiprocessor."""
    tiles = _tiles(size.hidden, size.batch, 64)
    return 128 if tiles > 2 * MULTIPROCESSORS else 64


def scratch(case: Case, config: Params) -> Mapping[str, Buffer]:
    """Activations, their gradients before the sigmoid, transposed, and parts of the output layer's gradient."""
    size = size_of(case)
    return {
        "a1": Buffer((size.batch, size.hidden)),
        "dz1": Buffer((size.hidden, pitch_of(size))),
        "parts": Buffer((ceil_div(pitch_of(size), chunk_of(size)), size.classes + 1, size.hidden + 1)),
    }


def launches(case: Case, config: Params) -> Sequence[Launch]:
    """Forward in two launches; backward and update in one."""
    size, columns = size_of(case), forward_columns(size_of(case))
    parts, _, _ = scratch(case, config)["parts"].shape
    blocks = min(_tiles(size.inputs, size.hidden, 64), MULTIPROCESSORS - SPARE_BLOCKS)
    threads, box, depth = _OF["kProducers"] + _OF["kConsumers"], (_OF["kDepth"], _OF["kBox"]), _OF["kDepth"]
    extents = (size.batch, size.inputs, size.hidden)
    return (
        launch(
            template("forward_hidden", columns, _stages(columns)),
            *(min(_tiles(size.hidden, size.batch, columns), MULTIPROCESSORS), threads),
            *(TensorMap("w1", box, 128), TensorMap("x", (columns, depth), 128), "b1", "a1", *extents),
            shared_bytes=_shared_bytes(columns),
        ),
        launch(
            *(template("forward_output", ceil_div(size.hidden, _OF["kThreads"])), parts, _OF["kThreads"]),
            *("a1", "w2", "b2", "y", "dz1", "parts", size.batch, size.hidden, pitch_of(size), chunk_of(size)),
        ),
        launch(
            *(template("backward_update", 64, _stages(64)), blocks + SPARE_BLOCKS, threads),
            *(TensorMap("x", box, 128), TensorMap("dz1", (64, depth), 128), *fused.WEIGHTS, "parts"),
            *(parts, *extents, *fused.rates(case), blocks),
            shared_bytes=_shared_bytes(64),
        ),
    )


def _tiles(rows: int, columns: int, width: int) -> int:
    return ceil_div(rows, _OF["kRows"]) * ceil_div(columns, width)


def _stages(columns: int) -> int:
    """The most stages that fit shared memory. A stage has 32 steps of 128 rows, and of twice the columns."""
    return {64: 6, 128: 4}[columns]


def _shared_bytes(columns: int) -> int:
    return _stages(columns) * _OF["kDepth"] * (_OF["kRows"] + 2 * columns) * _FLOAT + ALIGNMENT_BYTES
