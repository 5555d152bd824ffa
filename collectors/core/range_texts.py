"""Texts of the NVTX ranges around measurements.

All are in the domain `warpladder`, nested as `workload` > `case` > `variant[config]` > sample > executions.

`core` and `cuda` open ranges with these texts. `trace` and `nsight_compute` find the samples in a trace by them.
"""

import re
from typing import Final

DOMAIN: Final = "warpladder"

#: Marks of special samples: the baseline's second copy, and warm-up executions.
TWIN: Final = "twin"
WARM_UP: Final = "warm_up"

#: Text of a range around one variant: its name, and its config if it has one.
VARIANT_TEXT: Final = re.compile(r"(?P<variant>[^\[]+)(?:\[(?P<config>.*)\])?")
#: A sample: `device.cold#3`, `device.cold.twin#3`, `device.cold.warm_up#0`.
SAMPLE_TEXT: Final = re.compile(
    rf"(?P<scope>[^.#]+)\.(?P<cache>cold|hot)(?:\.(?P<mark>{TWIN}|{WARM_UP}))?#(?P<round>\d{{1,9}})"
)
#: Text of the range around the launches of a device sample; the sample's time is divided by this number of executions.
EXECUTIONS_TEXT: Final = re.compile(r"executions=(?P<executions>\d{1,9})")


def is_of_sample(text: str) -> bool:
    """Whether a range is of a sample or of its executions, and so names no variant, wherever it is nested."""
    return bool(SAMPLE_TEXT.fullmatch(text) or EXECUTIONS_TEXT.fullmatch(text))


def sample_text(scope: str, cache_state: str, mark: str, number: int) -> str:
    """Text of a sample's range; `SAMPLE_TEXT` reads it."""
    return f"{scope}.{cache_state}{f'.{mark}' if mark else ''}#{number}"


def executions_text(executions: int) -> str:
    """Text of the range around the launches of a device sample; `EXECUTIONS_TEXT` reads it."""
    return f"executions={executions}"
