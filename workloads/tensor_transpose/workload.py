"""Transposition of a three-dimensional tensor, all six permutations: a workload that only moves bytes."""

import math
from typing import Final

from warpladder.workloads.api import HostVariant, LibraryVariant, Workload, up_to
from warpladder.workloads.tensor_transpose import host, peers, problem
from warpladder.workloads.tensor_transpose.rungs import CUDA_VARIANTS
from warpladder.workloads.torch_bridge import COMPILER

LIBRARY_VARIANTS = (
    LibraryVariant(name="cupy", title="CuPy copyto", role="peer", requires=("cupy",), prepare=peers.cupy_copy),
    LibraryVariant(name="torch", title="PyTorch copy_", role="peer", requires=("cupy", "torch"), prepare=peers.torch_copy),
    LibraryVariant(
        name="torch_compile",
        title="torch.compile, CUDA graph",
        role="peer",
        requires=("cupy", "torch", *COMPILER),
        prepare=peers.torch_compiled,
        graph=True,
    ),
    LibraryVariant(
        name="torch_compile_autotuned",
        title="torch.compile, max-autotune, CUDA graph",
        role="peer",
        requires=("cupy", "torch", *COMPILER),
        prepare=peers.torch_autotuned,
        graph=True,
        draft=True,
    ),
    LibraryVariant(
        name="cutensor", title="cuTENSOR permute", role="peer", requires=("cupy", "cutensor"), prepare=peers.cutensor_permute
    ),
    LibraryVariant(
        name="cupy_unsynchronized",
        title="CuPy, not waited for",
        role="specimen",
        requires=("cupy",),
        prepare=peers.cupy_unsynchronized,
        synchronizes=False,
    ),
)

_ON_ONE_CORE: Final = up_to(256**3, "elements", lambda case: math.prod(problem.shape_of(case)))

HOST_VARIANTS = (
    HostVariant(name="numpy", title="NumPy copyto", role="host", run=host.numpy_copy, skip=_ON_ONE_CORE),
    HostVariant(
        *("numba_serial", "Numba, three loops", "host"),
        requires=("numba",),
        run=host.numba_serial,
        skip=_ON_ONE_CORE,
    ),
    HostVariant(
        name="numba_parallel", title="Numba, tiles on all cores", role="host", requires=("numba",), run=host.numba_parallel
    ),
    HostVariant(name="numpy_view", title="NumPy view, nothing moved", role="specimen", run=host.numpy_view),
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
