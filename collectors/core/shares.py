"""Maps the parts of a case to rows of the case's buffers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from warpladder.workloads.api import Buffer, Part, Workload, WorkloadError


@dataclass(frozen=True)
class BufferRows:
    """Rows of a buffer along its first axis."""

    name: str
    start: int
    stop: int

    def of(self, array: Any) -> Any:
        """Return these rows of an array, as a view."""
        return array[self.start : self.stop]


def rows_of(workload: Workload, part: Part, whole: Mapping[str, Buffer]) -> dict[str, BufferRows]:
    """Return a part's rows of every buffer of the whole case. A buffer of the same shape in both belongs to the part whole."""
    inputs, outputs = workload.buffers(part.case)
    found = {}
    for name, buffer in {**inputs, **outputs}.items():
        shared = buffer.shape == whole[name].shape
        start = 0 if shared else part.first
        found[name] = BufferRows(name, start, start + buffer.shape[0])
    return found


def check_covered(where: str, whole: Mapping[str, Buffer], parts: Sequence[Mapping[str, BufferRows]]) -> None:
    """Raise WorkloadError unless the parts, in order, cover all rows of each buffer without gap or overlap."""
    for name, buffer in whole.items():
        end = 0
        for rows in dict.fromkeys(part[name] for part in parts):
            if rows.start != end:
                raise WorkloadError(
                    f"{where}: a part of {name} begins at row {rows.start}, not at {end}; make parts follow one another"
                )
            end = rows.stop
        if end != buffer.shape[0]:
            raise WorkloadError(f"{where}: the parts of {name} end at row {end} of {buffer.shape[0]}; make them cover the case")
