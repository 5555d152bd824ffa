"""Products whose tiles lie behind one another along k, as one line of stages, of which each block has an equal share.

Source: M. Osama et al., "Stream-K: Work-centric Parallel Decomposition for Dense Matrix-Matrix Multiplication on the GPU", 2023.
"""

from dataclasses import dataclass

import numpy as np

from warpladder.workloads.declare.launches import ceil_div


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


def shortest_shares(tiles: int, depth: int, blocks: int) -> Line:
    """The shares of at most `blocks` blocks are as short as they can be. Parts of one tile are preferred: they are fewer."""
    even = even_shares(tiles, depth, blocks)
    parts = parts_of_tiles(tiles, depth, ceil_div(depth, even.share))
    return parts if parts.blocks <= blocks else even
