"""The second layer of `cnn_conv` in BF16, with sums in float32."""

from typing import Final

from warpladder.workloads.api import LibraryVariant, Workload
from warpladder.workloads.cnn_conv.workload import HOST_VARIANTS as OF_FLOAT32
from warpladder.workloads.cnn_conv_bf16 import peers, problem
from warpladder.workloads.cnn_conv_bf16.rungs import CUDA_VARIANTS
from warpladder.workloads.ladder import rounding
from warpladder.workloads.torch_bridge import COMPILE_MODES, COMPILER

_TORCH: Final = ("cupy", "torch")

LIBRARY_VARIANTS: Final = (
    LibraryVariant("cudnn", "cuDNN", "peer", "bf16", requires=_TORCH, prepare=peers.cudnn),
    LibraryVariant(
        *("cudnn_nhwc", "cuDNN, NHWC", "peer", "bf16", ({"multiple": 1}, {"multiple": 8})),
        requires=_TORCH,
        prepare=peers.cudnn_nhwc,
    ),
    LibraryVariant("cudnn_nhwc_tf32", "cuDNN, NHWC, TF32", "peer", "tf32", requires=_TORCH, prepare=peers.cudnn_nhwc_tf32),
    LibraryVariant(
        *("torch_compile", "torch.compile, CUDA graph", "peer", "bf16", COMPILE_MODES),
        requires=(*_TORCH, *COMPILER),
        prepare=peers.compiled,
        graph=True,
    ),
)

#: Host variants compute in float32, and round the results.
HOST_VARIANTS: Final = rounding(OF_FLOAT32, problem.buffers)

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
