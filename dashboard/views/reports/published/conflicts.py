"""The bank conflicts of a tile in shared memory, which table 2 of the tensor report has."""

import itertools
from collections.abc import Sequence
from typing import Final

import numpy as np

_BANKS: Final = 32
_WARP: Final = 32
_BLOCK: Final = (8, 8, 8)
#: How we count, and how the report differs.
DEFINITION: Final = (
    "Our count is the extra passes of a warp through the banks (the words of the busiest bank, less one), averaged "
    "over the 16 warps of an 8x8x8 block. The report does not tell what it counts. Its padded tiles for (1,2,0) and (2,0,1) "
    "have no conflicts for the inverse permutation: for the store of its listing 0.4.4, the two tiles must be swapped."
)


def bank_conflicts(tile_zyx: Sequence[int], perm: Sequence[int]) -> float:
    """The extra passes of a warp's permuted store to shared memory, averaged over the warps of an 8x8x8 block.

    Thread (z, y, x) stores to `tile[t[perm[0]]][t[perm[1]]][t[perm[2]]]` with t = (z, y, x), as in listing 0.4.4 of the tensor
    report. Shared memory has 32 banks of 4 bytes. A warp's store takes one pass for each word of the busiest bank.

    Args:
        tile_zyx: allocated extents of the shared array, such as (8, 12, 9) for a padded one.
        perm: the permutation, such as (2, 1, 0); (0, 1, 2) is that of the load after the store.
    """
    threads = list(itertools.product(*map(range, _BLOCK)))
    passes = []
    for first in range(0, len(threads), _WARP):
        stored = ([thread[axis] for axis in perm] for thread in threads[first : first + _WARP])
        words = {(z * tile_zyx[1] + y) * tile_zyx[2] + x for z, y, x in stored}
        passes.append(np.bincount([word % _BANKS for word in words], minlength=_BANKS).max() - 1)
    return float(np.mean(passes))
