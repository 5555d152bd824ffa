"""D = A B^T in BF16 with sums in float32: the product of a linear layer, which language models spend their time with."""

from collections.abc import Callable

from warpladder.workloads.api import Case, CudaVariant, HostVariant, LibraryVariant, Params, Workload, up_to
from warpladder.workloads.gemm_bf16 import cublaslt, host, peers
from warpladder.workloads.gemm_bf16.problem import AXES, BF16, Problem
from warpladder.workloads.gemm_bf16.rungs import CUDA_VARIANTS

_ON_ONE_CORE = up_to(1, "GFLOP", lambda case: case.flops / 1e9)
_ON_NUMBA = up_to(18, "GFLOP", lambda case: case.flops / 1e9)
_ON_BLAS = up_to(138, "GFLOP", lambda case: case.flops / 1e9)

#: Host variants multiply in float32, and round their results to the type of the case.
HOST_VARIANTS = (
    HostVariant("numpy", "NumPy (BLAS)", "host", skip=_ON_BLAS, run=host.numpy_blas),
    HostVariant("numba_serial", "Numba, one core", "host", skip=_ON_ONE_CORE, requires=("numba",), run=host.numba_serial),
    HostVariant("numba_parallel", "Numba, all cores", "host", skip=_ON_NUMBA, requires=("numba",), run=host.numba_parallel),
)


def make(
    title: str,
    problem: Problem,
    rungs: tuple[CudaVariant, ...],
    of_torch: LibraryVariant,
    skip_of_cublas: Callable[[Case, Params], str | None] = lambda case, config: None,
    *,
    draft: bool = False,
) -> Workload:
    """The workload of a product in some types.

    Args:
        rungs: the ladder, whose first rung is the baseline.
        of_torch: PyTorch's product in these types.
        skip_of_cublas: why cuBLASLt does not take a case.
        draft: see `Workload`.
    """
    precision = problem.types.precision
    of_cublas = LibraryVariant(
        "cublaslt",
        "cuBLASLt",
        "peer",
        precision,
        skip=skip_of_cublas,
        requires=cublaslt.REQUIRES,
        prepare=peers.cublaslt_fastest,
    )
    return Workload(
        name=f"gemm_{precision}",
        title=title,
        cases=problem.cases(),
        variants=(*rungs, of_cublas, of_torch, *HOST_VARIANTS),
        buffers=problem.buffers,
        make_inputs=problem.make_inputs,
        reference=problem.reference,
        baseline=rungs[0].name,
        host_baseline="numba_serial",
        tolerance=problem.tolerances,
        axes=AXES,
        make_case=problem.make_case,
        draft=draft,
    )


_PROBLEM = Problem(BF16)
_TORCH = LibraryVariant("torch", "PyTorch", "peer", "bf16", requires=("torch",), prepare=peers.torch_matmul)
WORKLOAD = make("Matrix product in BF16", _PROBLEM, CUDA_VARIANTS, _TORCH)


def emulation_cases() -> tuple[Case, ...]:
    """Small cases for the tests on the CPU."""
    return _PROBLEM.emulation_cases()
