"""The second layer of `cnn_conv` in BF16, with sums in float32."""

from typing import Final

from warpladder.workloads.api import HostVariant, LibraryVariant, Workload
from warpladder.workloads.cnn_conv.workload import ON_ONE_CORE, UNROLLED
from warpladder.workloads.cnn_conv_bf16 import host, peers, problem
from warpladder.workloads.cnn_conv_bf16.rungs import CUDA_VARIANTS

LIBRARY_VARIANTS: Final = (
    LibraryVariant("cudnn", "cuDNN", "peer", "bf16", requires=("torch",), prepare=peers.cudnn),
    LibraryVariant("cudnn_nhwc", "cuDNN, NHWC", "peer", "bf16", requires=("cupy", "torch"), prepare=peers.cudnn_nhwc),
)

#: Host variants compute in float32, and round the results.
HOST_VARIANTS: Final = (
    HostVariant("numpy", "NumPy, unrolled product", "host", run=host.numpy_unrolled, skip=UNROLLED),
    HostVariant("numba_serial", "Numba, one core", "host", requires=("numba",), run=host.numba_serial, skip=ON_ONE_CORE),
    HostVariant("numba_parallel", "Numba, all cores", "host", requires=("numba",), run=host.numba_parallel),
)

WORKLOAD: Final = Workload(
    name="cnn_conv_bf16",
    title="CNN layer 2 in BF16",
    cases=problem.cases(),
    variants=(*CUDA_VARIANTS, *LIBRARY_VARIANTS, *HOST_VARIANTS),
    buffers=problem.buffers,
    make_inputs=problem.make_inputs,
    reference=problem.reference,
    baseline="v01_parallel",
    host_baseline="numba_serial",
    tolerance=problem.TOLERANCES,
    axes=problem.AXES,
    make_case=problem.make_case,
)

emulation_cases = problem.emulation_cases
