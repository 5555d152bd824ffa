"""Convolution of an image with a 5x5 filter, zero outside: C(i, j) = sum of A[m][n] * B[i + m - 2][j + n - 2]."""

import math
from typing import Final

from warpladder.workloads.api import TOLERANCE, HostVariant, LibraryVariant, Workload, up_to
from warpladder.workloads.conv2d import host, peers, problem
from warpladder.workloads.conv2d.rungs import CUDA_VARIANTS

#: Relative L2 error that passes. 25 products added in float32 have at most 26 roundings of 2^-24. That makes 1.5e-6 if all have
#: the same sign, and about 1e-7 in practice. If one pixel of a 513 x 1027 image is missing, the error is about 1e-3.
FP32_TOLERANCE: Final = 4e-7

LIBRARY_VARIANTS: Final = (
    LibraryVariant("cudnn", "cuDNN", "peer", "fp32", requires=("torch",), prepare=peers.cudnn_fp32),
    LibraryVariant("cudnn_tf32", "cuDNN, TF32", "peer", "tf32", requires=("torch",), prepare=peers.cudnn_tf32),
    LibraryVariant(
        "npp", "NPP, replicated border", "peer", requires=("cupy", "cuda"), reference=peers.replicated, prepare=peers.npp
    ),
    LibraryVariant(
        *("npp_pitched", "NPP, aligned rows", "peer"),
        requires=("cupy", "cuda"),
        skip=peers.aligned_already,
        reference=peers.replicated,
        prepare=peers.npp_pitched,
    ),
    LibraryVariant("cupy_ndimage", "CuPy ndimage", "peer", requires=("cupyx",), prepare=peers.cupy_ndimage),
)

_ON_ONE_CORE: Final = up_to(2048**2, "pixels", lambda case: math.prod(problem.image_shape(case)))

HOST_VARIANTS: Final = (
    HostVariant("numpy", "NumPy", "host", run=host.numpy_shifted, skip=_ON_ONE_CORE),
    HostVariant("numba_serial", "Numba, one core", "host", requires=("numba",), run=host.numba_serial, skip=_ON_ONE_CORE),
    HostVariant("numba_parallel", "Numba, all cores", "host", requires=("numba",), run=host.numba_parallel),
)

WORKLOAD: Final = Workload(
    name="conv2d",
    title="2-D convolution, 5x5",
    cases=problem.cases(),
    variants=(*CUDA_VARIANTS, *LIBRARY_VARIANTS, *HOST_VARIANTS),
    buffers=problem.buffers,
    make_inputs=problem.make_inputs,
    reference=host.reference,
    baseline="v02_naive_global",
    host_baseline="numba_serial",
    tolerance={**TOLERANCE, "fp32": FP32_TOLERANCE},
    axes=problem.AXES,
    make_case=problem.make_case,
)

emulation_cases = problem.emulation_cases
