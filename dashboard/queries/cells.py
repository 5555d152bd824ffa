"""One row a measured cell: its median with interval, the rates that follow from it, and how far it is from the floor."""

import pandas as pd

from dashboard.queries.run_data import RunData


def cells(data: RunData) -> pd.DataFrame:
    """Every cell of a run, those without samples included.

    Returns:
        One row a (workload, variant, config, case, gpus, cache, scope). A cell that failed or was skipped is one row with gpus,
        cache and scope null and null figures. Columns besides the key:

        - `n`, `median_ns`, `low_ns`, `high_ns`, `interval_kind`: samples (the baseline's second copy left out), their median,
          its interval and what that is;
        - `role`, `kind`, `precision`, `title`, `rung` of the variant; `size_rank`, `params`, `flops`, `min_bytes` of the case;
        - `gb_per_s`, `gflop_per_s`: min_bytes and flops over the median; null for a phase, and where the count is 0;
        - `floor_ns`, `floor_bound` (`memory`, `compute`, `copies`), `percent_of_floor`: see `floors`;
        - `_low` and `_high` of each of these three figures;
        - `status`, `detail` of the verdict, and `flags`, a tuple of the sources of warnings and errors about the cell.
    """
    raise NotImplementedError


def best_config(frame: pd.DataFrame) -> pd.DataFrame:
    """Of `cells`, the row of each variant's fastest config, by (workload, variant, case, gpus, cache, scope); cells without samples
    are left out."""
    raise NotImplementedError


def select(frame: pd.DataFrame, workload: str, case: str, scope: str, cache: str) -> pd.DataFrame:
    """The rows of `cells` of one case in one view."""
    raise NotImplementedError
