"""Generation of 64x64 images: a dense layer and four 5x5 transposed convolutions of stride 2, with batch normalisation between."""

from typing import Final

from warpladder.workloads.api import TOLERANCE, Axis, Case, HostVariant, LibraryVariant, Workload, up_to
from warpladder.workloads.gan_tconv import host, peers, problem
from warpladder.workloads.gan_tconv.rungs import CUDA_VARIANTS
from warpladder.workloads.torch_bridge import COMPILER

#: Relative L2 error that passes. The longest sum has 4,608 products. A single float32 accumulator has an error of 1e-6 after
#: all layers, measured on an H200; 3xTF32 has up to twice that. If one of 5,248 images is missing, the error is 1.4e-2. If one
#: pixel of the three images of the odd case is missing, it is 9e-3.
FP32_TOLERANCE: Final = 2e-6
SPLIT_TOLERANCE: Final = 3e-6

AXES: Final = (Axis("images", 1, 20000), Axis("weights", words=(problem.RESIDENT,), optional=True))
LIBRARIES: Final = ("cupy", "torch")

LIBRARY_VARIANTS: Final = (
    LibraryVariant("cudnn", "cuDNN", "peer", "fp32", requires=LIBRARIES, prepare=peers.cudnn_fp32),
    LibraryVariant("cudnn_nhwc", "cuDNN, NHWC", "peer", "fp32", requires=LIBRARIES, prepare=peers.cudnn_nhwc_fp32),
    LibraryVariant("cudnn_tf32", "cuDNN, TF32", "peer", "tf32", requires=LIBRARIES, prepare=peers.cudnn_tf32),
    LibraryVariant("cudnn_nhwc_tf32", "cuDNN, NHWC, TF32", "peer", "tf32", requires=LIBRARIES, prepare=peers.cudnn_nhwc_tf32),
    LibraryVariant(
        *("torch_compile", "torch.compile, CUDA graph", "peer", "fp32"),
        requires=(*LIBRARIES, *COMPILER),
        prepare=peers.compiled_fp32,
        graph=True,
    ),
    LibraryVariant(
        *("torch_compile_tf32", "torch.compile, CUDA graph, TF32", "peer", "tf32"),
        requires=(*LIBRARIES, *COMPILER),
        prepare=peers.compiled_tf32,
        graph=True,
    ),
)

_ONE_IMAGE: Final = problem.make_case({"images": 1})


def _whole_images(case: Case) -> float:
    """The number of images of the student report's network with the same number of operations. A network with fewer channels
    counts as fewer images."""
    return case.flops / _ONE_IMAGE.flops


_ON_HOST: Final = up_to(100, "images", _whole_images)
_ON_ONE_CORE: Final = up_to(10, "images", _whole_images)


HOST_VARIANTS: Final = (
    HostVariant("numpy", "NumPy, matrix products", "host", run=host.numpy_scattered, skip=_ON_HOST),
    HostVariant("numba_serial", "Numba, one core", "host", requires=("numba",), run=host.numba_serial, skip=_ON_ONE_CORE),
    HostVariant("numba_parallel", "Numba, all cores", "host", requires=("numba",), run=host.numba_parallel, skip=_ON_HOST),
)

WORKLOAD: Final = Workload(
    name="gan_tconv",
    title="GAN generator, transposed convolutions",
    cases=problem.cases(),
    variants=(*CUDA_VARIANTS, *LIBRARY_VARIANTS, *HOST_VARIANTS),
    buffers=problem.buffers,
    make_inputs=problem.make_inputs,
    reference=host.reference,
    baseline="v01_naive_grid",
    host_baseline="numba_serial",
    tolerance={**TOLERANCE, "fp32": FP32_TOLERANCE, "3xtf32": SPLIT_TOLERANCE},
    shares=problem.shares,
    axes=AXES,
    make_case=problem.make_case,
)

emulation_cases = problem.emulation_cases
