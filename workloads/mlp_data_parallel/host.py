"""The step on the host: BLAS on each rank, MPI between them."""

from warpladder.workloads.api import ALONE, Buffers, Case, Communicator
from warpladder.workloads.mlp_training import host
from warpladder.workloads.mlp_training.problem import OUTPUTS


def numpy_allreduce(case: Case, inputs: Buffers, outputs: Buffers, communicator: Communicator = ALONE) -> None:
    """NumPy's step of each rank's own rows, then the average of all ranks' new weights by MPI_Allreduce.

    Idea: A rank's rows go forward and back as if they were the batch; only the weights, 3.2 MB of them, go between processes.
    Bottleneck: On one machine the processes share its cores and its memory: BLAS alone uses them all.
    Next: A GPU for each rank: `v01_host_staged`.
    Source: M. L. Wong, "CME213 Final Project Report", section 1.2: each process sums its gradients with the others' by MPI_Allreduce.
    """
    host.numpy_blas(case, inputs, outputs)
    communicator.average([outputs[name] for name in OUTPUTS])
