"""Six element-wise steps of a perceptron's training on column-major matrices: the steps between its matrix products."""

import math
from typing import Final

from warpladder.workloads.api import HostVariant, LibraryVariant, Workload, up_to
from warpladder.workloads.mlp_elementwise import host, peers, problem
from warpladder.workloads.mlp_elementwise.rungs import CUDA_VARIANTS
from warpladder.workloads.torch_bridge import COMPILER

_ON_ONE_CORE: Final = up_to(2048**2, "elements", lambda case: math.prod(problem.rows_and_columns(case)))

HOST_VARIANTS: Final = (
    HostVariant("numpy", "NumPy", "host", run=host.numpy_whole_arrays, skip=_ON_ONE_CORE),
    HostVariant("numba_serial", "Numba, one core", "host", requires=("numba",), run=host.numba_serial, skip=_ON_ONE_CORE),
    HostVariant("numba_parallel", "Numba, all cores", "host", requires=("numba",), run=host.numba_parallel),
)

WORKLOAD: Final = Workload(
    name="mlp_elementwise",
    title="Element-wise steps of a perceptron",
    cases=problem.cases(),
    variants=(
        *CUDA_VARIANTS,
        LibraryVariant("torch", "PyTorch", "peer", "fp32", requires=("torch",), prepare=peers.torch_fp32),
        LibraryVariant(
            *("torch_compile", "torch.compile, CUDA graph", "peer", "fp32"),
            requires=("torch", *COMPILER),
            prepare=peers.torch_compiled,
            graph=True,
        ),
        LibraryVariant(
            *("torch_compile_autotuned", "torch.compile, max-autotune, CUDA graph", "peer", "fp32"),
            requires=("torch", *COMPILER),
            prepare=peers.torch_autotuned,
            graph=True,
        ),
        LibraryVariant(
            *("cupy_cub", "CUB by CuPy", "peer", "fp32"), skip=peers.sums_only, requires=("cupy",), prepare=peers.cub_sum
        ),
        *HOST_VARIANTS,
    ),
    buffers=problem.buffers,
    make_inputs=problem.make_inputs,
    reference=problem.reference,
    baseline="v01_naive",
    host_baseline="numba_serial",
    tolerance=problem.TOLERANCES,
    axes=problem.AXES,
    make_case=problem.make_case,
)

emulation_cases = problem.emulation_cases
