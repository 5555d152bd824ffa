"""NVTX ranges around what is measured; `data.range_texts` has their texts.

Without a profiler attached they cost next to nothing. All but the innermost are pushed and popped outside of the timed window; that one
is pushed and popped while the stream is held, so that the device's clock does not see it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import nvtx

from warpladder.data.range_texts import DOMAIN


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
