"""Generation of 64x64 images: a dense layer and four 5x5 transposed convolutions of stride 2, with batch normalisation between."""

from collections.abc import Callable
from typing import Final

from workloads.api import TOLERANCE, Case, HostVariant, LibraryVariant, Params, Workload
from workloads.axes import Axis
from workloads.gan_tconv import host, network, peers
from workloads.gan_tconv.rungs import CUDA_VARIANTS
from workloads.torch_bridge import COMPILER

#: Relative L2 error that passes. The longest sum has 4,608 products; one accumulator that takes them in turn in float32 errs by 1e-6
#: after all layers, measured on an H200, and three products in TF32 for each by as much or twice. One image of the 5,248 that is
#: missing is 1.4e-2; one pixel of one among the three of the odd case, 9e-3.
FP32_TOLERANCE: Final = 2e-6
SPLIT_TOLERANCE: Final = 3e-6

_TORCH: Final = ("cupy", "torch")

LIBRARY_VARIANTS: Final = (
    LibraryVariant("cudnn", "cuDNN", "peer", "fp32", requires=_TORCH, prepare=peers.cudnn_fp32),
    LibraryVariant("cudnn_nhwc", "cuDNN, NHWC", "peer", "fp32", requires=_TORCH, prepare=peers.cudnn_nhwc_fp32),
    LibraryVariant("cudnn_tf32", "cuDNN, TF32", "peer", "tf32", requires=_TORCH, prepare=peers.cudnn_tf32),
    LibraryVariant("cudnn_nhwc_tf32", "cuDNN, NHWC, TF32", "peer", "tf32", requires=_TORCH, prepare=peers.cudnn_nhwc_tf32),
    LibraryVariant(
        *("torch_compile", "torch.compile, CUDA graph", "peer", "fp32"),
        requires=(*_TORCH, *COMPILER),
        prepare=peers.compiled_fp32,
        graph=True,
    ),
    LibraryVariant(
        *("torch_compile_tf32", "torch.compile, CUDA graph, TF32", "peer", "tf32"),
        requires=(*_TORCH, *COMPILER),
        prepare=peers.compiled_tf32,
        graph=True,
    ),
)

_MOST_ON_HOST: Final = 100
_MOST_ON_ONE_CORE: Final = 10


def _up_to(most: int) -> Callable[[Case, Params], str | None]:
    why = f"above {most:,} images a call takes seconds; its time grows in proportion to the images, so more show nothing new"
    return lambda case, config: why if network.images_of(case) > most else None


HOST_VARIANTS: Final = (
    HostVariant("numpy", "NumPy, matrix products", "host", run=host.numpy_scattered, skip=_up_to(_MOST_ON_HOST)),
    HostVariant(
        *("numba_serial", "Numba, one core", "host"), requires=("numba",), run=host.numba_serial, skip=_up_to(_MOST_ON_ONE_CORE)
    ),
    HostVariant(
        *("numba_parallel", "Numba, all cores", "host"),
        requires=("numba",),
        run=host.numba_parallel,
        skip=_up_to(_MOST_ON_HOST),
    ),
)

WORKLOAD: Final = Workload(
    name="gan_tconv",
    title="GAN generator, transposed convolutions",
    cases=network.cases(),
    variants=(*CUDA_VARIANTS, *LIBRARY_VARIANTS, *HOST_VARIANTS),
    buffers=network.buffers,
    make_inputs=network.make_inputs,
    reference=host.reference,
    baseline="v01_naive_grid",
    host_baseline="numba_serial",
    tolerance={**TOLERANCE, "fp32": FP32_TOLERANCE, "3xtf32": SPLIT_TOLERANCE},
    shares=network.shares,
    axes=(Axis("images", 1, 20000),),
    make_case=network.make_case,
)


def emulation_cases() -> tuple[Case, ...]:
    """Small cases for the tests on the CPU."""
    return network.emulation_cases()
