"""Two convolution layers of a network, 7x7 filters over a batch of images, in fp32, 3xTF32 and TF32."""

from typing import Final

from warpladder.workloads.api import HostVariant, LibraryVariant, Workload, up_to
from warpladder.workloads.cnn_conv import host, peers, problem
from warpladder.workloads.cnn_conv.rungs import CUDA_VARIANTS

#: Relative L2 error that passes. Operands are uniform in [-1, 1), an output is a sum of 49 or 196 products.
#: fp32: each addition rounds up or down by up to 2^-24. An H200 has 1.3e-7 and 2.5e-7; four times that passes.
#: 3xtf32: the same, but tensor cores truncate their sums towards zero instead of rounding them: 4.1e-7 and 1.6e-6.
#: tf32: both operands of a product are rounded to 11 bits, by at most 2^-11: 2.6e-4 for any number of products.
#: If one of the 52,080 outputs of layer 2's odd case is missing, the error is 4e-3.
TOLERANCE: Final = {"fp32": 1e-6, "3xtf32": 3e-6, "tf32": 5e-4}

_ON_ONE_CORE: Final = up_to(100, "images", lambda case: problem.shape_of(case).batch)
_UNROLLED: Final = up_to(1000, "images", lambda case: problem.shape_of(case).batch)

LIBRARY_VARIANTS: Final = (
    LibraryVariant("cudnn", "cuDNN", "peer", "fp32", requires=("torch",), prepare=peers.cudnn_fp32),
    LibraryVariant("cudnn_tf32", "cuDNN, TF32", "peer", "tf32", requires=("torch",), prepare=peers.cudnn_tf32),
    LibraryVariant("cudnn_nhwc", "cuDNN, NHWC", "peer", "fp32", requires=("cupy", "torch"), prepare=peers.cudnn_nhwc_fp32),
    LibraryVariant(
        *("cudnn_nhwc_tf32", "cuDNN, NHWC, TF32", "peer", "tf32"), requires=("cupy", "torch"), prepare=peers.cudnn_nhwc_tf32
    ),
)

HOST_VARIANTS: Final = (
    HostVariant("numpy", "NumPy, unrolled product", "host", run=host.numpy_unrolled, skip=_UNROLLED),
    HostVariant("numba_serial", "Numba, one core", "host", requires=("numba",), run=host.numba_serial, skip=_ON_ONE_CORE),
    HostVariant("numba_parallel", "Numba, all cores", "host", requires=("numba",), run=host.numba_parallel),
)

WORKLOAD: Final = Workload(
    name="cnn_conv",
    title="CNN layers, 7x7",
    cases=problem.cases(),
    variants=(*CUDA_VARIANTS, *LIBRARY_VARIANTS, *HOST_VARIANTS),
    buffers=problem.buffers,
    make_inputs=problem.make_inputs,
    reference=host.reference,
    baseline="v01_milestone3",
    host_baseline="numba_serial",
    tolerance=TOLERANCE,
    axes=problem.AXES,
    make_case=problem.case,
)

emulation_cases = problem.emulation_cases
