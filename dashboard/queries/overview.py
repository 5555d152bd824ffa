"""One row a workload: how far its best rung is from the baseline, the floor and the best peer."""

from pathlib import Path

import pandas as pd

from dashboard.queries.run_data import RunData


def overview(data: RunData, root: Path | None = None) -> pd.DataFrame:
    """What the first page answers.

    The figures are those of the cases of the largest size_rank at which a rung (or, without a GPU, a host variant) has samples. Where there are several (permutations) each figure is
    the geometric mean over them, the best rung is the one of the least geometric mean time over all of them, and `cases` counts them.

    Args:
        root: the project's folder, for the badge of a source that changed since; None leaves that check out.

    Returns:
        One row a workload: `workload`, `cases`, `case` (e.g. `n=512`), `scope`, `cache`, `baseline`, `baseline_config`, `baseline_ns`,
        `best`, `best_title`, `best_config`, `best_ns` (+`_low`, `_high`), `speedup` (+`_low`, `_high`), `percent_of_floor` (+`_low`,
        `_high`), `floor_bound`, `baseline_percent_of_floor`, `peer`, `peer_title`, `peer_config`, `peer_percent_of_floor`, `over_peer` (+`_low`, `_high`: peer's time over
        the best rung's), `n` (least of the cells used) and `badges` (tuple of texts; empty where nothing is distrusted). Where there is no GPU, best is
        the fastest host variant, the baseline `numba_serial`, and the peer null.
    """
    raise NotImplementedError
