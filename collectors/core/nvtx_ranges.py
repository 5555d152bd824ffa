"""NVTX ranges around what is measured: domain `warpladder`, `workload` > `case` > `variant[config]` > sample > executions.

Without a profiler attached they cost next to nothing. All but the innermost are pushed and popped outside of the timed window; that one
is pushed and popped while the stream is held, so that the device's clock does not see it.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, Final

import nvtx

DOMAIN: Final = "warpladder"

#: Samples that are not of the run proper: the baseline's second copy, and executions before the first sample.
TWIN: Final = "twin"
WARM_UP: Final = "warm_up"

#: A sample: `device.cold#3`, `device.cold.twin#3`, `device.cold.warm_up#0`.
SAMPLE_TEXT: Final = re.compile(
    rf"(?P<scope>[^.#]+)\.(?P<cache>cold|hot)(?:\.(?P<mark>{TWIN}|{WARM_UP}))?#(?P<round>\d{{1,9}})"
)
#: What a device sample divides by, around the launches themselves.
EXECUTIONS_TEXT: Final = re.compile(r"executions=(?P<executions>\d{1,9})")


def sample_text(scope: str, cache_state: str, mark: str, number: int) -> str:
    """Text of a sample's range; `SAMPLE_TEXT` reads it."""
    return f"{scope}.{cache_state}{f'.{mark}' if mark else ''}#{number}"


def executions_text(executions: int) -> str:
    """Text of the range around the launches of a device sample; `EXECUTIONS_TEXT` reads it."""
    return f"executions={executions}"


@cache
def _domain() -> Any:
    """Looked up at the first range: a profiler in this process has to be there before NVTX is."""
    return nvtx.get_domain(DOMAIN)


@contextmanager
def nvtx_range(text: str, payload: int | None = None) -> Iterator[None]:
    """A nested range with a registered string, and a number where there is one."""
    domain = _domain()
    domain.push_range(domain.get_event_attributes(message=text, payload=payload))
    try:
        yield
    finally:
        domain.pop_range()
