"""The rungs of one case, with the ceiling, the peers and the host set apart."""

import pandas as pd

from dashboard.queries.axes import View
from dashboard.queries.run_data import RunData


def ladder(data: RunData, workload: str, case: str, view: View) -> pd.DataFrame:
    """Each variant's fastest config of one case, in the order in which the chart shows them.

    Returns:
        Rows of `cells` (ceilings, then rungs by rung, peers, host, specimens) with, besides, `speedup`, `speedup_low`,
        `speedup_high`, `verdict` against the baseline; `gain`, `gain_low`, `gain_high`, `gain_verdict` of a rung over the one before it;
        `baseline`, `baseline_config`. Variants without samples come last within their role, with `status` and `detail`.
    """
    raise NotImplementedError
