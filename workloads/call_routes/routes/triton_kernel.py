"""The transposition in Triton's language. Importing this module imports Triton."""

import triton
import triton.language as tl

from warpladder.workloads.call_routes.rungs import block

TILE, *_ = block()


@triton.jit  # type: ignore[untyped-decorator]
def transpose(x, y, height, width, TILE: tl.constexpr):  # type: ignore[no-untyped-def]  # noqa: N803
    """One tile of `v01_padded_tile.cu`; Triton shares it out among the threads."""
    rows = tl.program_id(1) * TILE + tl.arange(0, TILE)
    columns = tl.program_id(0) * TILE + tl.arange(0, TILE)
    inside = (rows[:, None] < height) & (columns[None, :] < width)
    tile = tl.load(x + rows[:, None] * width + columns[None, :], mask=inside)
    tl.store(y + columns[:, None] * height + rows[None, :], tl.trans(tile), mask=tl.trans(inside))
