"""The step on the host: BLAS on each rank, MPI between them."""

from warpladder.workloads.api import ALONE, Buffers, Case, Communicator
from warpladder.workloads.declare.cases import narrowed
from warpladder.workloads.mlp_training.problem import OUTPUTS
from warpladder.workloads.mlp_training_bf16 import host
from warpladder.workloads.mlp_training_bf16.problem import COPIES


def numpy_allreduce(case: Case, inputs: Buffers, outputs: Buffers, communicator: Communicator = ALONE) -> None:
    """NumPy's step of each rank's own rows, the average of all ranks' new weights by MPI_Allreduce, and new copies of the average.

    Idea: As in `mlp_data_parallel`; the copies in BF16 are made after the average, from weights of float32.
    Bottleneck: The multiply-add units of the cores, which all processes of a machine share.
    Next: A GPU for each rank: `v01_nccl`.
    Source: NumPy, numpy.matmul; MPI_Allreduce.
    """
    host.numpy_blas(case, inputs, outputs)
    communicator.average([outputs[name] for name in OUTPUTS])
    for name, copy in COPIES.items():
        outputs[f"new_{copy}"][...] = narrowed(outputs[f"new_{name}"], "bfloat16")
