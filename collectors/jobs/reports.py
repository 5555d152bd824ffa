"""Finds the ranks in reports of Nsight Systems before they are imported, and exports the reports that need it, each once."""

from dataclasses import dataclass
from pathlib import Path

from warpladder.collectors.nsight_systems.parts import Part, parts_of
from warpladder.collectors.nsight_systems.source import exported, open_report
from warpladder.errors import Error


@dataclass(frozen=True)
class ToList:
    """A report whose ranks are wanted.

    Attributes:
        path: the report.
        folder: that its export is written to, if it needs one.
    """

    path: Path
    folder: Path


@dataclass(frozen=True)
class Listed:
    """The ranks in a report.

    Attributes:
        path: the report.
        opened: what is read: the report, or its export.
        parts: the ranks in the order of process and GPU.
        why: the reason why it cannot be read; empty if it can.
    """

    path: Path
    opened: Path
    parts: tuple[Part, ...] = ()
    why: str = ""


def list_parts(task: ToList) -> Listed:
    """List the ranks of a report. Runs in a worker, which sees the same paths."""
    try:
        task.folder.mkdir(parents=True, exist_ok=True)
        opened = exported(task.path, task.folder)
        with open_report(opened, task.path.name) as report:
            return Listed(task.path, opened, tuple(parts_of(report)))
    except Error as error:
        return Listed(task.path, task.path, why=str(error))
    except (MemoryError, OSError) as error:
        return Listed(task.path, task.path, why=f"{task.path.name}: {type(error).__name__}: {error}")


def lost(task: ToList) -> Listed:
    """The result for a report whose worker died each time."""
    return Listed(
        task.path,
        task.path,
        why=f"{task.path.name}: its process was killed twice, as of a lack of memory; give fewer --workers",
    )
