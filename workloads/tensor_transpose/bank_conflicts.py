"""Bank conflicts of the 8x8x8 tile by permutation and by size of its array. They are counted by a model, not measured.

Shared memory has 32 banks of 4 bytes. An access of a warp takes as many passes as the largest number of different words in
one bank. The tile's threads are numbered along x, then y, then z, so that a warp is four rows of eight.
"""

from collections import defaultdict
from typing import Final

from warpladder.workloads.tensor_transpose.problem import Triple

BANKS: Final = 32
WARP: Final = 32
TILE: Final = 8  # the student report's kernels work on cubes of 8x8x8

#: Rows and columns of the array, by permutation: those of the student report's table 2 ...
REPORT_PADDING: Final = {"012": (8, 8), "021": (8, 12), "102": (9, 8), "120": (10, 10), "201": (8, 9), "210": (12, 9)}
#: ... and the smallest with the fewest passes in all, by the count below.
FEWEST_PADDING: Final = {"012": (8, 8), "021": (8, 8), "102": (9, 8), "120": (8, 9), "201": (9, 8), "210": (12, 9)}


def passes(perm: Triple, rows: int, columns: int) -> tuple[float, float]:
    """Passes of a warp's store into the tile, permuted, and of its load from it, in order; 1 is free of conflicts.

    Args:
        perm: the permutation, as a thread (z, y, x) stores to [perm[0]], [perm[1]], [perm[2]] of itself.
        rows: rows of a plane of the array, at least 8.
        columns: elements of a row of the array, at least 8.

    Returns:
        The mean over the block's 16 warps, of the store and of the load.
    """
    threads = [(z, y, x) for z in range(TILE) for y in range(TILE) for x in range(TILE)]
    stores = [(thread[perm[0]] * rows + thread[perm[1]]) * columns + thread[perm[2]] for thread in threads]
    loads = [(z * rows + y) * columns + x for z, y, x in threads]
    return _mean_passes(stores), _mean_passes(loads)


def _mean_passes(addresses: list[int]) -> float:
    warps = [addresses[first : first + WARP] for first in range(0, len(addresses), WARP)]
    return sum(_passes_of_warp(warp) for warp in warps) / len(warps)


def _passes_of_warp(addresses: list[int]) -> int:
    words_of_bank = defaultdict(set)
    for address in addresses:
        words_of_bank[address % BANKS].add(address)
    return max(len(words) for words in words_of_bank.values())
