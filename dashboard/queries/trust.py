"""What a reviewer asks before believing a run."""

import pandas as pd

from dashboard.queries.run_data import RunData


def findings(data: RunData) -> pd.DataFrame:
    """Diagnostics grouped: `severity` (errors first), `source`, `text`, `cells` (how many rows said the same), `example` (one of the cells; empty for none)."""
    raise NotImplementedError


def verdicts(data: RunData) -> pd.DataFrame:
    """One row a workload: a count for each status of the schema that occurs, `ok` first, and `total`."""
    raise NotImplementedError


def failures(data: RunData) -> pd.DataFrame:
    """Results that are not ok: `workload`, `variant`, `config`, `case`, `status`, `detail`, `rel_l2_error`, `tolerance`."""
    raise NotImplementedError


def stop_reasons(data: RunData) -> pd.DataFrame:
    """Why sampling stopped: `workload`, `detail`, `cells`, most frequent first, of the cells that are ok."""
    raise NotImplementedError
