"""NVTX ranges around measurements; `range_texts` defines their texts.

Without a profiler they cost almost no time. The innermost range is pushed and popped while the stream is held, so that device
times do not include it. All other ranges are pushed and popped outside of the timed window.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import nvtx

from warpladder.collectors.core.range_texts import DOMAIN


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
