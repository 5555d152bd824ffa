"""What the page shows of a comparison, and of one of its cells."""

import difflib
from dataclasses import replace

from warpladder.dashboard.core.changes import Comparison
from warpladder.dashboard.core.run_data import RunData


def only(found: Comparison, workload: str) -> Comparison:
    """The comparison of one workload."""
    changes = tuple(change for change in found.changes if change.workload == workload)
    sources = tuple(each for each in found.changed_sources if each[0] == workload)
    return replace(found, changes=changes, changed_sources=sources)


def source_difference(a: RunData, b: RunData, workload: str, of_a: str, of_b: str) -> str:
    """The sources of a variant as they were measured, as a unified diff; empty where they are equal or not recorded."""
    before, after = (_source(data, workload, variant) for data, variant in ((a, of_a), (b, of_b)))
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), f"A: {of_a}", f"B: {of_b}", lineterm="")
    return "\n".join(lines)


def _source(data: RunData, workload: str, variant: str) -> str:
    found = data.variants[(data.variants["workload"] == workload) & (data.variants["variant"] == variant)]
    return next(iter(found["source_text"].fillna("")), "")
