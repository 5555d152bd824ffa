"""NVTX ranges around what is measured: domain `warpladder`, `workload` > `case` > `variant[config]` > `scope.cache#round`.

Pushed and popped outside the timed window. Without a profiler attached they cost next to nothing.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import nvtx

DOMAIN: Final = "warpladder"

_domain = nvtx.get_domain(DOMAIN)


@contextmanager
def nvtx_range(text: str, payload: int | None = None) -> Iterator[None]:
    """A nested range with a registered string, and a number where there is one."""
    attributes = _domain.get_event_attributes(message=text, payload=payload)
    _domain.push_range(attributes)
    try:
        yield
    finally:
        _domain.pop_range()
