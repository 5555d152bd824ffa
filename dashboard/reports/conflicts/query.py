"""The computed bank conflicts of the tensor report's tiles."""

import itertools
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
import pandas as pd

from warpladder.data import figures

BANKS: Final = 32
WARP: Final = 32
BLOCK: Final = (8, 8, 8)
DEFINITION: Final = (
    "Our count is the extra passes of a warp through the banks (the words of the busiest bank, less one), averaged "
    "over the 16 warps of an 8x8x8 block. The report does not say what it counts. Its padded tiles for (1,2,0) and (2,0,1) "
    "have no conflicts for the inverse permutation. For the store of its listing 0.4.4, the two tiles must be swapped."
)
WORKLOAD: Final = "tensor_transpose"

Address = Callable[[tuple[int, int, int]], int]


def bank_conflicts(tile_zyx: Sequence[int], perm: Sequence[int]) -> float:
    """The extra passes of a warp's permuted store to shared memory, averaged over the warps of an 8x8x8 block.

    Thread (z, y, x) stores to `tile[t[perm[0]]][t[perm[1]]][t[perm[2]]]` with t = (z, y, x), as in listing 0.4.4 of the tensor
    report. Shared memory has 32 banks of 4 bytes. A warp's store takes one pass for each word of the busiest bank.

    Args:
        tile_zyx: allocated extents of the shared array, such as (8, 12, 9) for a padded one.
        perm: the permutation, such as (2, 1, 0).
    """
    return _extra_passes(lambda thread: _linear(tile_zyx, [thread[axis] for axis in perm]))


def load_conflicts(tile_zyx: Sequence[int]) -> float:
    """The extra passes of the load after the store. In it, thread (z, y, x) reads `tile[z][y][x]`."""
    return _extra_passes(lambda thread: _linear(tile_zyx, thread))


def bank_conflict_table() -> pd.DataFrame:
    """The tensor report's table 2 beside the computed conflicts.

    Returns:
        One row for each (permutation, tile) of the report: `perm`, `tile` (such as `8x8x12`), `padded`, `published`, and as
        computed `store` (see `bank_conflicts`), `store_inverse` (of the inverse permutation) and `load` (see `load_conflicts`).
    """
    published = figures.read(WORKLOAD)
    rows = published[published["quantity"] == "bank_conflicts"]
    table = []
    for row in rows.to_dict("records"):
        digits = row["case"].rsplit("perm=", 1)[1]
        perm = [int(axis) for axis in digits]
        tile = [int(extent) for extent in row["config"].removeprefix("tile=").split("x")]
        table.append(
            {
                "perm": digits,
                "tile": "x".join(map(str, tile)),
                "padded": not row["variant"].startswith("F"),
                "published": row["value"],
                "store": bank_conflicts(tile, perm),
                "store_inverse": bank_conflicts(tile, [perm.index(axis) for axis in range(3)]),
                "load": load_conflicts(tile),
            }
        )
    return pd.DataFrame(table)


def _linear(tile_zyx: Sequence[int], index: Sequence[int]) -> int:
    return (index[0] * tile_zyx[1] + index[1]) * tile_zyx[2] + index[2]


def _extra_passes(address: Address) -> float:
    threads = list(itertools.product(range(BLOCK[0]), range(BLOCK[1]), range(BLOCK[2])))
    passes = []
    for first in range(0, len(threads), WARP):
        words = {address(thread) for thread in threads[first : first + WARP]}
        passes.append(np.bincount([word % BANKS for word in words], minlength=BANKS).max() - 1)
    return float(np.mean(passes))
