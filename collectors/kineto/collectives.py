"""The communication kernels of a trace, with the arguments that PyTorch records."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from warpladder.collectors.kineto.columns import integers
from warpladder.collectors.kineto.events import NO_ARGUMENTS, Event
from warpladder.collectors.trace.attribution import Int64s
from warpladder.collectors.trace.communication import collective_of, element_bytes
from warpladder.data import schema

_COLUMNS = (
    "collective",
    "kernel",
    "group",
    "group_ranks",
    "group_size",
    "sequence",
    "in_elements",
    "out_elements",
    "element_type",
)


class Collectives:
    """Gathers communication kernels."""

    def __init__(self) -> None:
        self._parts: list[pa.Table] = []

    def gather(self, events: Sequence[Event], correlation: Int64s, start: Int64s, end: Int64s) -> None:
        """Add kernels with their times in ns."""
        if not events:
            return
        arguments = [event.args or NO_ARGUMENTS for event in events]
        stream = integers([each.stream for each in arguments])
        kinds = [_word(each.dtype) for each in arguments]
        inner, outer = (integers([getattr(each, name) for each in arguments]) for name in ("in_elements", "out_elements"))
        most = pc.max_element_wise(inner, outer).fill_null(0).to_numpy(zero_copy_only=False)
        size = np.array([element_bytes(kind) for kind in kinds], np.int64)
        groups = [_word(each.group) for each in arguments]
        self._parts.append(
            pa.table(
                {
                    "correlation": correlation,
                    "collective": [
                        collective_of(str(event.name), _word(each.collective))
                        for event, each in zip(events, arguments, strict=True)
                    ],
                    "kernel": [str(event.name) for event in events],
                    "group": [group or f"stream {number}" for group, number in zip(groups, stream.to_pylist(), strict=True)],
                    "group_ranks": [_word(each.group_ranks) for each in arguments],
                    "group_size": integers([each.group_size for each in arguments]).cast(pa.int32(), safe=False),
                    "sequence": integers([each.number for each in arguments]),
                    "in_elements": inner,
                    "out_elements": outer,
                    "element_type": kinds,
                    "bytes": np.clip(most * size, 0, schema.MOST_WORK),
                    "stream": stream,
                    "start_ns": start,
                    "end_ns": end,
                }
            )
        )

    def gathered(self) -> pa.Table | None:
        """All of them in the order of their start, with the column `correlation`; None without any."""
        return pa.concat_tables(self._parts).sort_by("start_ns") if self._parts else None


def _word(value: Any) -> str:
    return "" if value is None else str(value)
