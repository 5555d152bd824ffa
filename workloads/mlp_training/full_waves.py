"""The step in float32 with tiles that fill the GPU to the end, as `kernels/v09_full_waves.cu` has it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from warpladder.workloads.api import MULTIPROCESSORS, Buffer, Case, Constants, Launch, Params, ceil_div
from warpladder.workloads.ladder import launch, template
from warpladder.workloads.mlp_training import fused, shares
from warpladder.workloads.mlp_training.problem import Size, size_of
from warpladder.workloads.shares import Line, even_shares, parts_of_tiles

_OF: Final = Constants(Path(__file__).resolve().parent / "kernels" / "v09_full_waves.cu")
_FLOAT: Final = 4
#: Fewest stages along k of a part of a tile.
_LEAST_STAGES: Final = 2
#: Of a round of blocks besides its stages, and of an element of a slice, which is written and read: in microseconds.
_ROUND_US: Final = 2.0
_SLICE_US: Final = 8 / 4e6


@dataclass(frozen=True)
class Tile:
    """A tile of `kRows` hidden units. A thread has `thread_columns` columns, `across` warps lie side by side, and a multiprocessor
    has `blocks` blocks, which take about `stage_us` for a stage: so v07_warp_tile of mlp_gemm does on an H200."""

    thread_columns: int
    across: int
    blocks: int
    stage_us: float

    def kernel(self, name: str) -> str:
        """The kernel of that name for this tile."""
        return template(name, self.thread_columns, self.across, self.blocks)

    @property
    def columns(self) -> int:
        """Samples or inputs of a tile."""
        return self.across * _OF["kLaneColumns"] * self.thread_columns

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return 32 * self.across * _OF["kRows"] // (_OF["kLaneRows"] * _OF["kThreadRows"])

    @property
    def slots(self) -> int:
        """Blocks that the GPU has room for."""
        return self.blocks * MULTIPROCESSORS

    def count(self, hidden: int, columns: int) -> int:
        """Tiles of a product."""
        return ceil_div(hidden, _OF["kRows"]) * ceil_div(columns, self.columns)

    def shared_bytes(self, padding: int) -> int:
        """Shared memory of a block whose rows of B have `padding` floats more."""
        return _FLOAT * _OF["kStages"] * _OF["kDepth"] * (_OF["kRows"] + self.columns + padding)


#: Of x w1, a thread with 8 x 8 sums, and of x^T dz1, one with 8 x 14.
FORWARD: Final = Tile(8, 4, 2, 2.7)
BACKWARD: Final = Tile(14, 2, 2, 2.3)


def forward_line(size: Size, tile: Tile = FORWARD) -> Line:
    """Of x w1: whole tiles, parts of tiles or even shares, whichever takes the least time by rounds of blocks and memory's traffic."""
    tiles, depth = tile.count(size.hidden, size.batch), ceil_div(size.inputs, _OF["kDepth"])
    most = max(1, depth // _LEAST_STAGES)
    lines = [parts_of_tiles(tiles, depth, parts) for parts in range(1, most + 1)]
    lines.append(even_shares(tiles, depth, min(tile.slots, tiles * most)))

    def time_us(line: Line) -> float:
        rounds = ceil_div(line.blocks, tile.slots)
        return rounds * (line.share * tile.stage_us + _ROUND_US) + line.slices * size.batch * size.hidden * _SLICE_US

    return min(lines, key=time_us)


def backward_line(size: Size, tile: Tile = BACKWARD) -> Line:
    """Of x^T dz1: even shares."""
    tiles, depth = tile.count(size.hidden, size.inputs), ceil_div(size.batch, _OF["kDepth"])
    return even_shares(tiles, depth, min(tile.slots, tiles * max(1, depth // _LEAST_STAGES)))


def scratch(case: Case, config: Params) -> Mapping[str, Buffer]:
    """As `shares.scratch` says."""
    size = size_of(case)
    return shares.scratch(size, forward_line(size), backward_line(size), (size.batch, size.hidden))


def launches(case: Case, config: Params) -> Sequence[Launch]:
    """Forward in two launches, backward, update."""
    size = size_of(case)
    forward, backward = forward_line(size), backward_line(size)
    extents = (size.batch, size.inputs, size.hidden)
    return (
        launch(
            *(FORWARD.kernel("forward_hidden"), forward.blocks, FORWARD.threads),
            *("x", "w1", "b1", "z1", *extents, *forward.scalars),
            shared_bytes=FORWARD.shared_bytes(padding=4),
        ),
        shares.output_layer(size, forward, FORWARD.columns, tf32=False),
        launch(
            *(BACKWARD.kernel("backward_weights"), backward.blocks, BACKWARD.threads),
            *("x", "dz1", "dw1", *extents, fused.rates(case)[0], *backward.scalars),
            shared_bytes=BACKWARD.shared_bytes(padding=0),
        ),
        shares.update(case, backward, (BACKWARD.columns, _OF["kRows"]), (ceil_div(size.hidden, _OF["kRows"]), 1)),
    )
