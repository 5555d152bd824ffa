"""Started by the launcher as every rank: a step is taken by all ranks together and by one alone, at odd sizes, and compared.

It is also the workload of the cases, for the ranks to find.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np

from warpladder.collectors.core.agreement import compare
from warpladder.collectors.core.bench import Pass
from warpladder.collectors.core.plan import WorkloadRef
from warpladder.collectors.host.host_clock import HostBench
from warpladder.collectors.ranks.ranked_bench import RankedBench
from warpladder.data.names import Phase
from warpladder.workloads import registry
from warpladder.workloads.mlp_training.problem import make_case

CASES = tuple(
    make_case({"batch": batch, "inputs": inputs, "hidden": hidden}) for batch, inputs, hidden in ((3, 5, 3), (37, 67, 131))
)
WORKLOAD = replace(registry.load("mlp_data_parallel"), cases=CASES)


def main() -> None:
    from mpi4py import MPI

    from warpladder.collectors.ranks.ranks import World

    world = World(MPI.COMM_WORLD, {"host": HostBench})
    if world.rank:
        return world.follow()
    variant = WORKLOAD.variant("numpy")
    for case in CASES:
        inputs = WORKLOAD.make_inputs(case, np.random.default_rng(0))
        together = RankedBench(world, WorkloadRef("mlp_data_parallel", Path(__file__)), "host", WORKLOAD, case, inputs)
        operation = together.prepare(variant, {})
        weights = together.run(operation)
        alone = HostBench(WORKLOAD, case, inputs)
        one = alone.run(alone.prepare(variant, {}))
        right = compare(weights, WORKLOAD.reference(case, inputs), WORKLOAD.tolerance["fp32"])
        same = all(np.allclose(weights[name], one[name], rtol=1e-5, atol=1e-6) for name in one)
        reading = together.sample(operation, Pass("operation", "hot"), None)
        timed = all(0 < of.phases_ns[Phase.ALLREDUCE] < of.duration_ns for of in reading.ranks)
        print(
            f"batch {case.params['batch']}: {'the same' if same else 'other'} weights, {right.detail or 'right'}, timed {timed}"
        )
        together.close()
    return world.dismiss()


if __name__ == "__main__":
    main()
