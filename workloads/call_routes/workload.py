"""One transposition kernel called from Python by eight routes: what a call costs, many in a row, and the first one."""

from warpladder.workloads.api import HostVariant, LibraryVariant, Workload
from warpladder.workloads.call_routes import host, peers, problem
from warpladder.workloads.call_routes.routes.cuda_bindings import CudaBindings
from warpladder.workloads.call_routes.routes.cuda_core import CudaCore
from warpladder.workloads.call_routes.routes.cupy_raw import CupyRaw
from warpladder.workloads.call_routes.routes.numba_cuda import NumbaCuda
from warpladder.workloads.call_routes.routes.pybind_extension import PybindExtension
from warpladder.workloads.call_routes.routes.pycuda_module import PycudaModule
from warpladder.workloads.call_routes.routes.torch_extension import TorchExtension
from warpladder.workloads.call_routes.routes.triton_jit import TritonJit
from warpladder.workloads.call_routes.rungs import CUDA_VARIANTS
from warpladder.workloads.declare.stepwise import Stepwise


def _route(name: str, title: str, requires: tuple[str, ...], prepare: type[Stepwise]) -> LibraryVariant:
    return LibraryVariant(
        name=name, title=title, role="peer", requires=("cupy", *requires), prepare=prepare, first_use=problem.is_first_use
    )


ROUTES = (
    _route("cupy_raw_module", "CuPy RawModule", (), CupyRaw),
    _route("cuda_core", "cuda.core", ("cuda",), CudaCore),
    _route("cuda_bindings_driver", "cuda.bindings by hand", ("cuda",), CudaBindings),
    _route("numba_cuda", "Numba CUDA", ("numba",), NumbaCuda),
    _route("pybind11", "pybind11 and nvcc", ("pybind11",), PybindExtension),
    _route("torch_ext", "PyTorch cpp_extension", ("torch",), TorchExtension),
    _route("triton", "Triton", ("torch", "triton"), TritonJit),
    _route("pycuda", "PyCUDA", ("pycuda",), PycudaModule),
)

SPECIMENS = (
    LibraryVariant(
        *("cupy_unsynchronized", "CuPy, not waited for", "specimen"),
        requires=("cupy",),
        prepare=peers.unsynchronized,
        synchronizes=False,
    ),
    LibraryVariant("cupy_view", "CuPy view, nothing moved", "specimen", requires=("cupy",), prepare=peers.cupy_view),
)

HOST_VARIANTS = (
    HostVariant("numpy", "NumPy copyto", "host", run=host.numpy_copy, skip=host.one_call_only),
    HostVariant(
        *("numba_serial", "Numba, two loops", "host"), requires=("numba",), run=host.numba_serial, skip=host.one_call_only
    ),
    HostVariant(
        *("numba_parallel", "Numba, tiles on all cores", "host"),
        requires=("numba",),
        run=host.numba_parallel,
        skip=host.one_call_only,
    ),
    HostVariant("numpy_view", "NumPy view, nothing moved", "specimen", run=host.numpy_view, skip=host.one_call_only),
)

WORKLOAD = Workload(
    name="call_routes",
    title="Calling a kernel from Python",
    cases=problem.cases(),
    variants=(*CUDA_VARIANTS, *ROUTES, *SPECIMENS, *HOST_VARIANTS),
    buffers=problem.buffers,
    make_inputs=problem.make_inputs,
    reference=problem.reference,
    baseline="v01_padded_tile",
    host_baseline="numba_serial",
    tolerance={"fp32": 0.0},
    axes=problem.AXES,
    make_case=problem.case,
)

emulation_cases = problem.emulation_cases
