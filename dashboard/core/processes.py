"""What the number of processes that took the samples tells about a verdict."""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from warpladder.dashboard.core.run_data import RunData

UNKNOWN: Final = "how far processes differ is not known"


def of_one_process(info: Mapping[str, Any], process: npt.ArrayLike) -> str:
    """The remark about a recording whose samples one process took, which share how its memory lies; else empty.

    Args:
        info: the row of table `run`.
        process: the process of each sample.
    """
    is_one = info["kind"] == "recording" and len(np.unique(process)) == 1
    return f"one process took all samples: {UNKNOWN}" if is_one else ""


def remark(data: RunData) -> str:
    """See `of_one_process`."""
    return of_one_process(data.info, data.grouped.processes)
