"""The label of a run: the user's own, or one made of what was measured, when and where."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from warpladder.data import files, store

#: Workloads that a made label names.
_MOST: Final = 2


def label_of(run: store.Run) -> str:
    """The label of a run on one line. Without one: `my_kernel · 2026-11-24 15:01 · AMD EPYC`."""
    if run.info["label"]:
        return files.one_line(str(run.info["label"]))
    try:
        column = run.arrow("cases", ("workload",)).column("workload")
        workloads = column.combine_chunks().unique().to_pylist()
    except store.StoreError:
        workloads = []
    return label_from(run.info, [str(name) for name in workloads])


def label_from(info: Mapping[str, Any], workloads: Sequence[str]) -> str:
    """As `label_of`, of the row of table `run` and of the workloads in their order. The id of the run where it has no workload."""
    if info["label"]:
        return files.one_line(str(info["label"]))
    if not workloads:
        return files.one_line(str(info["run_id"]))
    more = f" and {len(workloads) - _MOST} more" if len(workloads) > _MOST else ""
    device = str(info["device_name"] or info["cpu_name"])
    return files.one_line(f"{', '.join(workloads[:_MOST])}{more} · {info['started_at']:%Y-%m-%d %H:%M} · {device}")
