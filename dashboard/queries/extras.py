"""The source reports' own tables, from our samples or by computation."""

from collections.abc import Sequence

import pandas as pd

from dashboard.queries.run_data import RunData


def bank_conflicts(tile_zyx: Sequence[int], perm: Sequence[int]) -> float:
    """Average extra shared-memory transactions a warp for the store of the permuted 8x8x8 tile.

    Args:
        tile_zyx: allocated extents of the shared array, e.g. (8, 12, 9) for a padded one.
        perm: the permutation, e.g. (2, 1, 0).
    """
    raise NotImplementedError


def bank_conflict_table() -> pd.DataFrame:
    """The tensor report's table 2 beside ours: `perm`, `tile`, `padded` (bool), `published`, `store`, `load`, `definition`."""
    raise NotImplementedError


def overheads(data: RunData, workload: str = "conv2d") -> pd.DataFrame:
    """Allocation, copies and release as a part of the run: `case`, `size_rank`, `variant`, `config`, `part` (`allocate`, `h2d`, `operation`, `d2h`, `free`), `median_ns`,
    `low_ns`, `high_ns`, `n`, `fraction`. Empty where the run has no such phases."""
    raise NotImplementedError


def block_sensitivity(data: RunData, workload: str = "conv2d") -> pd.DataFrame:
    """Rows of `cells` of variants with configs `block=N`, in the first view, with `block` (int) and `relative` (time over the variant's fastest, with `relative_low`, `relative_high`)."""
    raise NotImplementedError


def with_and_without_copies(data: RunData, workload: str = "tensor_transpose") -> pd.DataFrame:
    """Speedups over the sequential host code: `variant`, `config`, `case`, `size_rank`, `copies` (False: device or operation; True: end_to_end), `scope`,
    `cache`, `speedup`, `low`, `high`, `n`, `paired`. Empty without host samples or without GPU samples."""
    raise NotImplementedError
