"""The communication kernels of a trace, with the arguments that PyTorch records."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from warpladder.collectors.kineto.columns import integers
from warpladder.collectors.kineto.events import CollectiveArguments, Event, arguments_of
from warpladder.collectors.trace.attribution import Int64s
from warpladder.collectors.trace.communication import element_bytes
from warpladder.data.columns import MOST_WORK

#: Columns that are equal for all collectives of a group.
_OF_GROUP = ("group", "group_ranks", "group_size")


class Collectives:
    """Gathers communication kernels."""

    def __init__(self) -> None:
        self._parts: list[pa.Table] = []

    def gather(
        self,
        events: Sequence[Event],
        names: Sequence[str],
        kinds: Sequence[str],
        correlation: Int64s,
        start: Int64s,
        end: Int64s,
    ) -> None:
        """Add kernels with their names, their collectives and their times in ns."""
        if not events:
            return
        arguments = arguments_of(events, CollectiveArguments)
        stream = integers([each.stream for each in arguments])
        types = [_word(each.dtype) for each in arguments]
        inner, outer = (integers([getattr(each, name) for each in arguments]) for name in ("in_elements", "out_elements"))
        most = pc.max_element_wise(inner, outer).fill_null(0).to_numpy(zero_copy_only=False)
        size = np.array([element_bytes(each) for each in types], np.int64)
        groups = [_word(each.group) for each in arguments]
        self._parts.append(
            pa.table(
                {
                    "correlation": correlation,
                    "collective": pa.array(kinds, pa.string()),
                    "kernel": pa.array(names, pa.string()),
                    "group": [group or f"stream {number}" for group, number in zip(groups, stream.to_pylist(), strict=True)],
                    "group_ranks": [_word(each.group_ranks) for each in arguments],
                    "group_size": integers([each.group_size for each in arguments]).cast(pa.int32(), safe=False),
                    "sequence": integers([each.number for each in arguments]),
                    "in_elements": inner,
                    "out_elements": outer,
                    "element_type": types,
                    "bytes": np.clip(most * size, 0, MOST_WORK),
                    "stream": stream,
                    "start_ns": start,
                    "end_ns": end,
                }
            )
        )

    def gathered(self) -> pa.Table | None:
        """All of them in the order of their start, with the column `correlation`; None without any.

        The profiler leaves the arguments of some kernels out. A process group has a stream of its own on each device, so the group of
        such a kernel is the only one that other kernels of its stream have.
        """
        return _with_groups(pa.concat_tables(self._parts).sort_by("start_ns")) if self._parts else None


def _with_groups(rows: pa.Table) -> pa.Table:
    columns = {name: rows.column(name).to_pylist() for name in _OF_GROUP}
    stream = rows.column("stream").to_pylist()
    lacking = [group == f"stream {number}" for group, number in zip(columns["group"], stream, strict=True)]
    named: dict[Any, set[tuple[Any, ...]]] = {}
    for number, lacks, *group in zip(stream, lacking, *columns.values(), strict=True):
        if not lacks:
            named.setdefault(number, set()).add(tuple(group))
    for place, (number, lacks) in enumerate(zip(stream, lacking, strict=True)):
        if lacks and len(named.get(number, ())) == 1:
            for values, value in zip(columns.values(), next(iter(named[number])), strict=True):
                values[place] = value
    for name, values in columns.items():
        at = rows.schema.get_field_index(name)
        rows = rows.set_column(at, name, pa.array(values, rows.schema.field(at).type))
    return rows


def _word(value: Any) -> str:
    return "" if value is None else str(value)
