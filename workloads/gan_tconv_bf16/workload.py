"""The generator of `gan_tconv` in BF16, with sums in float32."""

from typing import Final

from warpladder.workloads.api import LibraryVariant, Workload
from warpladder.workloads.gan_tconv.workload import AXES, LIBRARIES
from warpladder.workloads.gan_tconv.workload import HOST_VARIANTS as OF_FLOAT32
from warpladder.workloads.gan_tconv_bf16 import peers, problem
from warpladder.workloads.gan_tconv_bf16.rungs import CUDA_VARIANTS
from warpladder.workloads.ladder import rounding
from warpladder.workloads.torch_bridge import COMPILER

LIBRARY_VARIANTS: Final = (
    LibraryVariant("cudnn_nhwc", "cuDNN, NHWC", "peer", "bf16", requires=LIBRARIES, prepare=peers.cudnn_nhwc),
    LibraryVariant(
        *("torch_compile", "torch.compile, CUDA graph", "peer", "bf16"),
        requires=(*LIBRARIES, *COMPILER),
        prepare=peers.compiled,
        graph=True,
    ),
)

#: Host variants compute in float32, and round the images.
HOST_VARIANTS: Final = rounding(OF_FLOAT32, problem.buffers)

WORKLOAD: Final = Workload(
    name="gan_tconv_bf16",
    title="GAN generator in BF16",
    cases=problem.cases(),
    variants=(*CUDA_VARIANTS, *LIBRARY_VARIANTS, *HOST_VARIANTS),
    buffers=problem.buffers,
    make_inputs=problem.make_inputs,
    reference=problem.reference,
    baseline="v01_stride_two",
    host_baseline="numba_serial",
    tolerance=problem.TOLERANCES,
    axes=AXES,
    make_case=problem.make_case,
)

emulation_cases = problem.emulation_cases
