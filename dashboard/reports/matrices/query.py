"""The tensor report's figure 5: one permutation as a stack of matrices and as a tensor."""

from typing import Final

import pandas as pd

from warpladder.dashboard.core.axes import charted_cases, timings
from warpladder.dashboard.core.cells import cells
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.core.timing import Timing

WORKLOAD: Final = "tensor_transpose"
#: Variant -> the way in which it moves the data.
MATRIX_AND_TENSOR: Final = {
    "v01_copy": "copy",
    "v06_shared_template": "3-D",
    "v07_bank_padding": "3-D",
    "v08_matrix_tile": "2-D",
}


def matrix_and_tensor(data: RunData) -> pd.DataFrame:
    """The tensor report's figure 5: a stack of matrices transposed with 8x8 and 32x32 tiles, and as a tensor with 8x8x8 tiles.

    Returns:
        Rows of `cells` in the first timing, of the permutation (0,2,1) and by variant, config and size, with `size` and
        `size_value` (see `axes.charted_cases`) and `what` (`2-D`, `3-D` or `copy`). Empty where the run lacks one of the two
        kinds.
    """
    every = cells(data)
    found = timings(data, WORKLOAD)
    timing = found[0] if found else Timing("", "")
    cases = charted_cases(data, WORKLOAD)
    cases = cases.loc[cases["series"] == "perm=021", ["case", "size", "size_value"]]
    rows = every[
        (every["workload"] == WORKLOAD)
        & (every["scope"] == timing.scope)
        & (every["cache"] == timing.cache)
        & (every["n"] > 0)
        & every["variant"].isin(MATRIX_AND_TENSOR)
    ].merge(cases, on="case")
    rows["what"] = rows["variant"].map(MATRIX_AND_TENSOR)
    if not {"2-D", "3-D"} <= set(rows["what"]):
        return rows.iloc[:0]
    return rows.sort_values(["what", "variant", "config", "size_value"], kind="stable").reset_index(drop=True)
