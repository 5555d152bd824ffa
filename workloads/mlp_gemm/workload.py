"""D = alpha A B + beta C in column-major float32: the product that takes most of the time of a perceptron's training."""

from warpladder.workloads.api import Axis, HostVariant, LibraryVariant, Workload, up_to
from warpladder.workloads.mlp_gemm import cublaslt, host, peers, problem
from warpladder.workloads.mlp_gemm.rungs import CUDA_VARIANTS
from warpladder.workloads.mlp_gemm.wgmma import WGMMA_VARIANTS

#: A is given as columns. As rows, it is transposed whenever the inputs change, outside of the device time.
_ORDERS_OF_A = ({"a": "columns"}, {"a": "rows"})

LIBRARY_VARIANTS = (
    LibraryVariant("cublas", "cuBLAS", "peer", "fp32", requires=("torch",), prepare=peers.cublas_fp32),
    LibraryVariant("cublas_tf32", "cuBLAS, TF32", "peer", "tf32", requires=("torch",), prepare=peers.cublas_tf32),
    LibraryVariant(
        *("cublaslt_own_d", "cuBLASLt, D apart", "peer", "fp32", _ORDERS_OF_A),
        requires=cublaslt.REQUIRES,
        prepare=peers.cublaslt_fp32,
    ),
    LibraryVariant(
        *("cublaslt_own_d_tf32", "cuBLASLt, D apart, TF32", "peer", "tf32", _ORDERS_OF_A),
        requires=cublaslt.REQUIRES,
        prepare=peers.cublaslt_tf32,
    ),
)

_ON_ONE_CORE = up_to(3, "GFLOP", lambda case: case.flops / 1e9)
_ON_NUMBA = up_to(18, "GFLOP", lambda case: case.flops / 1e9)
_ON_BLAS = up_to(138, "GFLOP", lambda case: case.flops / 1e9)

HOST_VARIANTS = (
    HostVariant("numpy", "NumPy (BLAS)", "host", skip=_ON_BLAS, run=host.numpy_blas),
    HostVariant("numba_serial", "Numba, one core", "host", skip=_ON_ONE_CORE, requires=("numba",), run=host.numba_serial),
    HostVariant("numba_parallel", "Numba, all cores", "host", skip=_ON_NUMBA, requires=("numba",), run=host.numba_parallel),
)

WORKLOAD = Workload(
    name="mlp_gemm",
    title="Matrix product of a perceptron",
    cases=problem.cases(),
    variants=(*CUDA_VARIANTS, *WGMMA_VARIANTS, *LIBRARY_VARIANTS, *HOST_VARIANTS),
    buffers=problem.buffers,
    make_inputs=problem.make_inputs,
    reference=problem.reference,
    baseline="v01_one_dimensional",
    host_baseline="numba_serial",
    tolerance=problem.TOLERANCES,
    axes=(Axis("n", 1, 8192), Axis("shape", 1, 8192, extents=3, instead_of="n")),
    make_case=problem.make_case,
)

emulation_cases = problem.emulation_cases
