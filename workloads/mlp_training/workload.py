"""One step of training a perceptron of 784-1000-10 on handwritten digits: forward, backward, update."""

from typing import Final

from warpladder.workloads.api import Axis, HostVariant, LibraryVariant, Workload, up_to
from warpladder.workloads.mlp_training import host, peers, problem, programs
from warpladder.workloads.mlp_training.rungs import CUDA_VARIANTS
from warpladder.workloads.torch_bridge import COMPILE_MODES, COMPILER

PROGRAM: Final = LibraryVariant(
    *("v01_products_only", "Products on the GPU (version 1)", "rung"),
    requires=("cupy",),
    prepare=programs.products_only,
    device_only=False,
)

LIBRARY_VARIANTS: Final = (
    LibraryVariant("torch", "PyTorch", "peer", "fp32", requires=("torch",), prepare=peers.torch_fp32),
    LibraryVariant(
        *("torch_graph", "PyTorch, CUDA graph", "peer", "fp32"), requires=("torch",), prepare=peers.torch_fp32, graph=True
    ),
    LibraryVariant(
        *("torch_graph_tf32", "PyTorch, CUDA graph, TF32", "peer", "tf32"),
        requires=("torch",),
        prepare=peers.torch_tf32,
        graph=True,
    ),
    LibraryVariant(
        *("torch_compile", "torch.compile, CUDA graph", "peer", "fp32", COMPILE_MODES),
        requires=COMPILER,
        prepare=peers.compiled_fp32,
        graph=True,
    ),
    LibraryVariant(
        *("torch_compile_tf32", "torch.compile, CUDA graph, TF32", "peer", "tf32"),
        requires=COMPILER,
        prepare=peers.compiled_tf32,
        graph=True,
    ),
)

_ON_ONE_CORE: Final = up_to(800, "rows", lambda case: problem.size_of(case).batch)

HOST_VARIANTS: Final = (
    HostVariant("numpy", "NumPy (BLAS)", "host", run=host.numpy_blas),
    HostVariant("numba_serial", "Numba, one core", "host", skip=_ON_ONE_CORE, requires=("numba",), run=host.numba_serial),
    HostVariant("numba_parallel", "Numba, all cores", "host", requires=("numba",), run=host.numba_parallel),
)

WORKLOAD: Final = Workload(
    name="mlp_training",
    title="Training step of a perceptron",
    cases=problem.cases(),
    variants=(PROGRAM, *CUDA_VARIANTS, *LIBRARY_VARIANTS, *HOST_VARIANTS),
    buffers=problem.buffers,
    make_inputs=problem.make_inputs,
    reference=problem.reference,
    baseline="v02_on_the_gpu",
    host_baseline="numba_serial",
    tolerance=problem.TOLERANCES,
    axes=(Axis("batch", 1, 65536),),
    make_case=problem.make_case,
)

emulation_cases = problem.emulation_cases
