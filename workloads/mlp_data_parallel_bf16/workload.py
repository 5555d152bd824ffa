"""One step of training in mixed precision, its batch shared among ranks: forward, backward, average, update."""

from typing import Final

from warpladder.workloads.api import Axis, Case, HostVariant, LibraryVariant, Workload
from warpladder.workloads.mlp_data_parallel.workload import ON_THE_HOST
from warpladder.workloads.mlp_data_parallel_bf16 import host, peers, problem
from warpladder.workloads.mlp_data_parallel_bf16.rungs import CUDA_VARIANTS
from warpladder.workloads.mlp_training_bf16 import problem as of_one_rank
from warpladder.workloads.torch_bridge import COMPILER

_MODULES: Final = ({"products": "autocast"}, {"products": "copies"})

LIBRARY_VARIANTS: Final = (
    LibraryVariant(
        *("torch_ddp", "PyTorch DDP, BF16 gradients", "peer", "bf16"),
        requires=("torch",),
        prepare=peers.torch_ddp,
        communicates=True,
        draft=True,
    ),
    LibraryVariant(
        *("torch_ddp_graph", "PyTorch DDP, BF16 gradients, CUDA graph", "peer", "bf16"),
        requires=("torch",),
        prepare=peers.torch_ddp,
        communicates=True,
        graph=True,
    ),
    LibraryVariant(
        *("torch_ddp_compile", "PyTorch DDP, compiled, CUDA graph", "peer", "bf16", _MODULES),
        requires=COMPILER,
        prepare=peers.compiled_ddp,
        communicates=True,
        graph=True,
    ),
    LibraryVariant(
        *("torch_compile_allreduce", "torch.compile, all-reduce, CUDA graph", "peer", "bf16"),
        requires=COMPILER,
        prepare=peers.compiled_allreduce,
        communicates=True,
        graph=True,
    ),
)

HOST_VARIANTS: Final = (
    HostVariant("numpy", "NumPy (BLAS), MPI", "host", skip=ON_THE_HOST, run=host.numpy_allreduce, communicates=True),
)

WORKLOAD: Final = Workload(
    name="mlp_data_parallel_bf16",
    title="Training step in BF16, data parallel",
    cases=problem.cases(),
    variants=(*CUDA_VARIANTS, *LIBRARY_VARIANTS, *HOST_VARIANTS),
    buffers=of_one_rank.buffers,
    make_inputs=of_one_rank.make_inputs,
    reference=of_one_rank.reference,
    baseline="v01_nccl",
    host_baseline="numpy",
    tolerance=problem.TOLERANCES,
    shares=problem.shares,
    axes=(Axis("batch", 1, 65536),),
    make_case=of_one_rank.make_case,
)


def emulation_cases() -> tuple[Case, ...]:
    """Small cases for the tests on the CPU."""
    return of_one_rank.emulation_cases()
