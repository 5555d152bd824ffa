"""Shares of a line of tiles: how long they are, and that a kernel's blocks compute all of it once."""

from pathlib import Path

import numpy as np
import pytest

from tests.emulator.emulator import needs_compiler, run
from warpladder.workloads import shares
from warpladder.workloads.api import CudaVariant, Launch
from warpladder.workloads.shares import Line


def parts_by_tile(line: Line) -> list[list[int]]:
    """The blocks that have a stage of a tile, by walking over every stage."""
    found: list[list[int]] = [[] for _ in range(line.tiles)]
    for stage in range(line.tiles * line.span):
        block, tile = stage // line.share, stage // line.span
        if block not in found[tile]:
            found[tile].append(block)
    return found


@pytest.mark.parametrize(
    ("line", "expected", "blocks", "slices"),
    [
        (shares.whole_tiles(256, 25, 132), Line(256, 25, 50), 128, 1),  # two tiles a block
        (shares.whole_tiles(104, 25, 132), Line(104, 25, 25), 104, 1),
        (shares.parts_of_tiles(16, 25, 8), Line(16, 28, 4), 112, 7),  # 25 stages are seven parts of at most four
        (shares.even_shares(28, 256, 132), Line(28, 256, 55), 131, 6),  # 7168 stages; 256 begin in the middle of a share
        (shares.even_shares(56, 512, 264), Line(56, 512, 109), 264, 6),
        (shares.shortest_shares(36, 79, 132), Line(36, 79, 22), 130, 5),  # four parts of each tile are 144 blocks
        (shares.shortest_shares(66, 79, 132), Line(66, 80, 40), 132, 2),  # two parts of each tile, as short as even shares
    ],
)
def test_shares_counted_by_hand(line: Line, expected: Line, blocks: int, slices: int) -> None:
    assert line == expected
    assert (line.blocks, line.slices) == (blocks, slices)


@pytest.mark.parametrize("line", [Line(7, 12, 5), Line(7, 5, 12), Line(3, 4, 4), Line(3, 12, 4), Line(3, 4, 12), Line(1, 1, 1)])
def test_slices_are_the_most_blocks_that_share_a_tile(line: Line) -> None:
    parts = parts_by_tile(line)
    assert line.blocks == 1 + max(block for blocks in parts for block in blocks)
    assert line.slices == max(map(len, parts))
    assert line.has_whole_tiles == (line.slices == 1)


@needs_compiler
@pytest.mark.parametrize("whole", [0, 10])
@pytest.mark.parametrize(
    "line",
    [
        *(
            shares.shortest_shares(*of)
            for of in ((36, 79, 132), (66, 79, 132), (44, 35, 132), (4, 128, 132), (1, 9, 2), (131, 40, 132))
        ),
        *(shares.even_shares(*of) for of in ((3, 7, 4), (2, 7, 5), (5, 8, 8), (7, 3, 7))),
    ],
    ids=str,
)
def test_blocks_compute_each_step_of_each_tile_once_and_all_sums_of_a_tile_are_added(line: Line, whole: int) -> None:
    """The padding of a span is not computed: depths are those of the tiles."""
    depth = line.span if line.span % line.share else line.span - line.share + 1  # as short as the padding allows
    tiles, blocks = whole + line.tiles, max(line.blocks, min(whole, 4))
    written = {
        "computed": np.zeros((tiles, depth), np.int32),
        "sums": np.zeros(line.blocks + line.tiles - 1, np.int32),
        "added": np.zeros(tiles, np.int32),
    }
    of_line, extents = (np.int32(whole), *line.scalars), (np.int32(tiles), np.int32(depth))
    launches = [
        Launch("compute", (blocks, 1, 1), (1, 1, 1), ("computed", "sums", *extents, *of_line)),
        Launch("add", (line.tiles, 1, 1), (1, 1, 1), ("sums", "added", *of_line)),
    ]
    run(CudaVariant("line_pieces", "Pieces", "rung", source=Path(__file__).parent / "line_pieces.cu"), launches, {}, written)
    assert (written["computed"] == 1).all()
    assert (written["added"][:whole] == 0).all()
    assert (written["added"][whole:] == depth).all()
    assert written["sums"].sum() == line.tiles * depth
