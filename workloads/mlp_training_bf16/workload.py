"""One step of training in mixed precision: products in BF16, master weights in float32."""

from typing import Final

from warpladder.workloads.api import Axis, HostVariant, LibraryVariant, Workload
from warpladder.workloads.mlp_training_bf16 import host, peers, problem
from warpladder.workloads.mlp_training_bf16.rungs import CUDA_VARIANTS
from warpladder.workloads.torch_bridge import COMPILE_MODES, COMPILER

LIBRARY_VARIANTS: Final = (
    LibraryVariant(
        *("torch_autocast", "PyTorch, autocast, CUDA graph", "peer", "bf16"),
        requires=("torch",),
        prepare=peers.torch_autocast,
        graph=True,
    ),
    LibraryVariant(
        *("torch_compile_amp", "torch.compile, autocast, CUDA graph", "peer", "bf16"),
        requires=COMPILER,
        prepare=peers.compiled_autocast,
        graph=True,
    ),
    LibraryVariant(
        *("torch_compile", "torch.compile, copies in BF16, CUDA graph", "peer", "bf16", COMPILE_MODES),
        requires=COMPILER,
        prepare=peers.compiled_copies,
        graph=True,
    ),
)

WORKLOAD: Final = Workload(
    name="mlp_training_bf16",
    title="Training step in BF16",
    cases=problem.cases(),
    variants=(*CUDA_VARIANTS, *LIBRARY_VARIANTS, HostVariant("numpy", "NumPy (BLAS)", "host", run=host.numpy_blas)),
    buffers=problem.buffers,
    make_inputs=problem.make_inputs,
    reference=problem.reference,
    baseline="v01_warpgroups",
    host_baseline="numpy",
    tolerance=problem.TOLERANCES,
    axes=(Axis("batch", 1, 65536),),
    make_case=problem.make_case,
)

emulation_cases = problem.emulation_cases
