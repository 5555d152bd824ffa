"""The exceptions that stand for a user's mistake. Importing this module loads nothing else."""

from typing import Final

#: Module -> its exception for a user's mistake. Each message is one line: where, what, and what to do.
MISTAKES: Final = {
    "warpladder.collectors.core.plan": "PlanError",
    "warpladder.collectors.core.tools": "CollectorError",
    "warpladder.collectors.core.runs": "LabelError",
    "warpladder.collectors.skeleton": "SkeletonError",
    "warpladder.collectors.programs.words": "ProgramError",
    "warpladder.collectors.trace.report": "ReportError",
    "warpladder.data.naming": "NamingError",
    "warpladder.data.store": "StoreError",
    "warpladder.workloads.api": "WorkloadError",
}
