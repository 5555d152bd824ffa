"""Who is faster, by how much, and whether the difference is more than noise."""

import pandas as pd

from dashboard.queries.axes import View
from dashboard.queries.run_data import RunData


def speedups(
    data: RunData, workload: str, case: str, scope: str, cache: str, reference_variant: str, reference_config: str = ""
) -> pd.DataFrame:
    """Every variant of a case against a reference, paired by round.

    Returns:
        One row a (variant, config, gpus) with samples, in the order of the variants: `speedup` (median of the reference over
        that of the variant), `low`, `high`, `n`, `paired`, `noise_low`, `noise_high` (A/A interval of the cell, 1..1 where
        the baseline has no twin) and `verdict`: `faster`, `slower`, or `tied` where low..high holds 1 or lies within the noise.
    """
    raise NotImplementedError


def noise_floors(data: RunData) -> pd.DataFrame:
    """The baseline's second copy against the first.

    Returns:
        One row a (workload, case, scope, cache) with a twin: `variant`, `config`, `ratio`, `low`, `high`, `n`, `holds_one`.
    """
    raise NotImplementedError


def steps(data: RunData, workload: str, case: str, view: View) -> pd.DataFrame:
    """The gain of each rung over the one before it, each with its fastest config.

    Returns:
        One row a rung with samples, in order: `variant`, `config`, `rung`, `previous_variant`, `previous_config`, `gain`, `low`,
        `high`, `n`, `verdict`; the first rung has null figures.
    """
    raise NotImplementedError
