"""NVTX ranges around measurements, and their texts.

Without a profiler they cost almost no time. The innermost range is pushed and popped while the stream is held, so that device
times do not include it. All other ranges are pushed and popped outside of the timed window.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, Final

import nvtx

# -- texts ---------------------------------------------------------------------------------------------------------------------
#
# All are in the domain `warpladder`, nested as `workload` > `case` > `variant[config]` > sample > executions.
#
# `core` and `cuda` open ranges with these texts. `trace` and `nsight_compute` find the samples in a trace by them.

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


# -- ranges --------------------------------------------------------------------------------------------------------------------


@cache
def _domain() -> Any:
    """Return the domain. It is made at the first range, because a profiler in this process must be loaded before NVTX."""
    return nvtx.get_domain(DOMAIN)


@contextmanager
def nvtx_range(text: str, payload: int | None = None) -> Iterator[None]:
    """Open a nested range with a registered string and an optional number."""
    domain = _domain()
    domain.push_range(domain.get_event_attributes(message=text, payload=payload))
    try:
        yield
    finally:
        domain.pop_range()
