"""Products whose tiles lie behind one another along k, and the launches behind them, as `kernels/hidden_sums.cuh` has them."""

from dataclasses import dataclass

import numpy as np

from warpladder.workloads.api import Buffer, Case, Launch, ceil_div
from warpladder.workloads.mlp_training import fused, wgmma
from warpladder.workloads.mlp_training.problem import REGULARIZATION, Size, rate_of, size_of


@dataclass(frozen=True)
class Line:
    """Tiles behind one another, `span` stages along k each. A block has `share` stages of the line."""

    tiles: int
    span: int
    share: int

    @property
    def blocks(self) -> int:
        """Blocks that have a share."""
        return ceil_div(self.tiles * self.span, self.share)

    @property
    def slices(self) -> int:
        """The largest number of blocks that have a part of the same tile."""
        if self.span % self.share == 0 or self.share % self.span == 0:
            return ceil_div(self.span, self.share)
        first = [tile * self.span // self.share for tile in range(self.tiles)]
        last = [((tile + 1) * self.span - 1) // self.share for tile in range(self.tiles)]
        return max(end - begin + 1 for begin, end in zip(first, last, strict=True))

    @property
    def has_whole_tiles(self) -> bool:
        """Whether a block has whole tiles."""
        return self.share % self.span == 0

    @property
    def scalars(self) -> tuple[np.generic, ...]:
        """The kernels' parameters `share` and `span`."""
        return np.int32(self.share), np.int32(self.span)


def whole_tiles(tiles: int, depth: int, most_blocks: int) -> Line:
    """Each block has as many whole tiles of `depth` stages as it takes for at most `most_blocks` blocks."""
    return Line(tiles, depth, depth * ceil_div(tiles, most_blocks))


def parts_of_tiles(tiles: int, depth: int, parts: int) -> Line:
    """Each block has a part of one tile. There are at most `parts` of a tile, and none is empty."""
    share = ceil_div(depth, parts)
    return Line(tiles, share * ceil_div(depth, share), share)


def even_shares(tiles: int, depth: int, blocks: int) -> Line:
    """At most `blocks` blocks have equally many stages, wherever tiles end."""
    return Line(tiles, depth, ceil_div(tiles * depth, blocks))


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
