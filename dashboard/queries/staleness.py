"""Variants whose source changed since they were measured."""

from pathlib import Path

import pandas as pd

from dashboard.queries.run_data import RunData


def stale_variants(data: RunData, root: Path) -> pd.DataFrame:
    """Variants whose recorded source is not what stands at their source_path below `root` now.

    Returns:
        `workload`, `variant`, `source_path`, `reason`; a variant without a source_path is never listed.
    """
    raise NotImplementedError
