"""The definitions of the section Operators, operator by operator from the tables `operations`, `kernels`, `memory_ops` and `api_calls`."""

from typing import Any

import pandas as pd


def _inside(row: Any, other: Any) -> bool:
    """Whether an event is inside another one of its thread."""
    same = (row.process, row.thread) == (other.process, other.thread)
    return bool(same and other.start_ns <= row.start_ns and row.end_ns <= other.end_ns)


def figures(tables: dict[str, pd.DataFrame], name: str) -> dict[str, Any]:
    """The figures of the operators of a name. One that is the only one inside another of its name is no call of its own."""
    every = list(tables["operations"].itertuples())
    rows = [row for row in every if row.name == name]
    outermost = [row for row in rows if not any(row is not other and _inside(row, other) for other in rows)]
    children = {row.operation_id: 0 for row in every}
    for row in every:
        if not pd.isna(row.parent_id):
            children[row.parent_id] += row.end_ns - row.start_ns
    of_parent = tables["operations"]["parent_id"].value_counts()
    named = dict(zip(tables["operations"]["operation_id"], tables["operations"]["name"], strict=True))
    again = [
        row for row in rows if not pd.isna(row.parent_id) and named[row.parent_id] == name and of_parent[row.parent_id] == 1
    ]
    calls = dict.fromkeys(children, 0)
    for call in tables["api_calls"].itertuples():
        around = [row for row in every if _inside(call, row)]
        if around:
            calls[max(around, key=lambda row: row.start_ns).operation_id] += call.end_ns - call.start_ns
    device = sum(
        (tables[table]["end_ns"] - tables[table]["start_ns"]).sum() for table in ("kernels", "memory_ops") if table in tables
    )
    own = sum(row.self_device_ns for row in rows)
    return {
        "calls": len(rows) - len(again),
        "self_device_ns": own,
        "percent": 100 * own / device,
        "device_ns": sum(row.device_ns for row in outermost),
        "self_host_ns": sum(row.end_ns - row.start_ns - children[row.operation_id] - calls[row.operation_id] for row in rows),
        "host_ns": sum(row.end_ns - row.start_ns for row in outermost),
        "launches": sum(row.launches for row in rows),
    }
