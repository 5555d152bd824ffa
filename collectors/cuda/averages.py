"""Sizes in bytes of the all-reduces of a plan."""

import math

from warpladder.collectors.core.plan import Plan
from warpladder.collectors.cuda.steps import rows_taken
from warpladder.workloads.api import Buffer, Case, CudaVariant, Params, Workload
from warpladder.workloads.declare.launches import AllReduce


def averaged_bytes(workload: Workload, case: Case, variant: CudaVariant, config: Params) -> int:
    """Bytes per rank that the NCCL all-reduces of one operation average.

    Args:
        workload, variant, config: the operation's.
        case: the case of one rank's share.
    """
    if variant.skip(case, config):
        return 0
    buffers: dict[str, Buffer] = {}
    for more_buffers in (*workload.buffers(case), variant.scratch(case, config)):
        buffers |= more_buffers
    return sum(
        math.prod((min(rows.count, buffers[rows.buffer].shape[0]), *buffers[rows.buffer].shape[1:])) * 4
        for step in variant.launches(case, config)
        if isinstance(step, AllReduce) and step.by == "nccl"
        for rows in rows_taken(step)
    )


def sizes_of(plan: Plan) -> dict[int, tuple[int, ...]]:
    """Return, by number of ranks, the distinct sizes in bytes of the plan's NCCL all-reduces."""
    workloads = {workload.name: workload for workload in plan.workloads}
    sizes: dict[int, set[int]] = {}
    for job in plan.jobs:
        workload = workloads[job.workload.name]
        if job.gpus == 1 or not workload.shares:
            continue
        share = workload.shares(workload.case(job.case), job.gpus)[0].case
        for variant in {cell.variant for cell in job.cells}:
            of = workload.variant(variant)
            if isinstance(of, CudaVariant) and (nbytes := averaged_bytes(workload, share, of, of.configs[0])):
                sizes.setdefault(job.gpus, set()).add(nbytes)
    return {gpus: tuple(sorted(distinct)) for gpus, distinct in sorted(sizes.items())}
