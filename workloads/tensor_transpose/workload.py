"""Transposition of a three-dimensional tensor, all six permutations: a workload that only moves bytes."""

import math
from typing import Final

from warpladder.workloads.api import HostVariant, LibraryVariant, Workload, up_to
from warpladder.workloads.tensor_transpose import host, peers, problem
from warpladder.workloads.tensor_transpose.rungs import CUDA_VARIANTS
from warpladder.workloads.torch_bridge import COMPILER

LIBRARY_VARIANTS = (
    LibraryVariant("cupy", "CuPy copyto", "peer", requires=("cupy",), prepare=peers.cupy_copy),
    LibraryVariant("torch", "PyTorch copy_", "peer", requires=("cupy", "torch"), prepare=peers.torch_copy),
    LibraryVariant(
        *("torch_compile", "torch.compile, CUDA graph", "peer"),
        requires=("cupy", "torch", *COMPILER),
        prepare=peers.torch_compiled,
        graph=True,
    ),
    LibraryVariant(
        *("torch_compile_autotuned", "torch.compile, max-autotune, CUDA graph", "peer"),
        requires=("cupy", "torch", *COMPILER),
        prepare=peers.torch_autotuned,
        graph=True,
        draft=True,
    ),
    LibraryVariant("cutensor", "cuTENSOR permute", "peer", requires=("cupy", "cutensor"), prepare=peers.cutensor_permute),
    LibraryVariant(
        *("cupy_unsynchronized", "CuPy, not waited for", "specimen"),
        requires=("cupy",),
        prepare=peers.cupy_unsynchronized,
        synchronizes=False,
    ),
)

_ON_ONE_CORE: Final = up_to(256**3, "elements", lambda case: math.prod(problem.shape_of(case)))

HOST_VARIANTS = (
    HostVariant("numpy", "NumPy copyto", "host", run=host.numpy_copy, skip=_ON_ONE_CORE),
    HostVariant("numba_serial", "Numba, three loops", "host", requires=("numba",), run=host.numba_serial, skip=_ON_ONE_CORE),
    HostVariant("numba_parallel", "Numba, tiles on all cores", "host", requires=("numba",), run=host.numba_parallel),
    HostVariant("numpy_view", "NumPy view, nothing moved", "specimen", run=host.numpy_view),
)

WORKLOAD = Workload(
    name="tensor_transpose",
    title="Tensor transposition",
    cases=problem.cases(),
    variants=(*CUDA_VARIANTS, *LIBRARY_VARIANTS, *HOST_VARIANTS),
    buffers=problem.buffers,
    make_inputs=problem.make_inputs,
    reference=problem.reference,
    baseline="v03_simple",
    host_baseline="numba_serial",
    tolerance={"fp32": 0.0},
    axes=problem.AXES,
    make_case=problem.case,
)

emulation_cases = problem.emulation_cases
