"""One step of training a perceptron of 784-1000-10, its batch shared among ranks: forward, backward, update, average."""

from typing import Final

from warpladder.workloads.api import Axis, Case, HostVariant, LibraryVariant, Workload, up_to
from warpladder.workloads.mlp_data_parallel import host, peers, problem
from warpladder.workloads.mlp_data_parallel.rungs import CUDA_VARIANTS
from warpladder.workloads.mlp_training import problem as step

LIBRARY_VARIANTS: Final = (
    LibraryVariant("torch_ddp", "PyTorch DDP", "peer", "fp32", requires=("torch",), prepare=peers.torch_ddp, communicates=True),
    LibraryVariant(
        *("torch_ddp_graph", "PyTorch DDP, CUDA graph", "peer", "fp32"),
        requires=("torch",),
        prepare=peers.torch_ddp,
        communicates=True,
        graph=True,
    ),
)

#: The largest batch of the host variants.
ON_THE_HOST: Final = up_to(8192, "rows", lambda case: step.size_of(case).batch)

HOST_VARIANTS: Final = (
    HostVariant("numpy", "NumPy (BLAS), MPI", "host", skip=ON_THE_HOST, run=host.numpy_allreduce, communicates=True),
)

WORKLOAD: Final = Workload(
    name="mlp_data_parallel",
    title="Training step, data parallel",
    cases=problem.cases(),
    variants=(*CUDA_VARIANTS, *LIBRARY_VARIANTS, *HOST_VARIANTS),
    buffers=step.buffers,
    make_inputs=step.make_inputs,
    reference=step.reference,
    baseline="v01_host_staged",
    host_baseline="numpy",
    tolerance=problem.TOLERANCES,
    shares=problem.shares,
    axes=(Axis("batch", 1, 65536),),
    make_case=step.make_case,
)


def emulation_cases() -> tuple[Case, ...]:
    """Small cases for the tests on the CPU."""
    return step.emulation_cases()
