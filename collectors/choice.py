"""The collectors, which of them this machine can run, and the choice of one for `auto`."""

from typing import Final

from warpladder.collectors.core.environment import CollectorError, has_module
from warpladder.collectors.cuda import entry as cuda
from warpladder.collectors.cupti import entry as cupti
from warpladder.collectors.host import entry as host
from warpladder.collectors.nsight_compute import entry as nsight_compute
from warpladder.collectors.nsight_systems import entry as nsight_systems
from warpladder.installation import how_to_install
from warpladder.workloads.declare.driver import has_nvidia_driver

#: Each collector by its name, in the order of the help. A tracer that stands first is taken first. `nsys` sees every library of the process.
ENTRIES: Final = {
    entry.name: entry for entry in (nsight_systems.ENTRY, cupti.ENTRY, cuda.ENTRY, host.ENTRY, nsight_compute.ENTRY)
}
#: The collector that reads hardware counters.
COUNTER: Final = nsight_compute.ENTRY.name
#: Collectors that time whole programs, and `auto` for the first that can run here.
OF_PROGRAMS: Final = ("auto", "host_clock", "nsight_systems")
#: Internal collector that runs each cell once, for a tool that inspects single launches.
SINGLE_LAUNCH: Final = "single_launch"
#: Internal collector of a further pass that reads the energy of loops.
ENERGY: Final = "energy"
#: The further pass under the tools of compute-sanitizer.
SANITIZER: Final = "sanitizer"
#: The further pass with random delays in kernels.
STRESS: Final = "stress"
#: Further passes that look for faults, and add nothing but findings.
CHECKS: Final = frozenset({SANITIZER, STRESS})

#: Python module that recording on a GPU needs -> its package.
GPU_MODULES: Final = {"cupy": "cupy-cuda13x", "cuda.bindings": "cuda-bindings", "pynvml": "nvidia-ml-py"}


def driver_problem() -> str | None:
    """Return why a program cannot use a GPU here and how to fix it; None if it can. Creates no CUDA context."""
    if not has_nvidia_driver():
        return "this machine has no NVIDIA driver; on one with a GPU, install NVIDIA's driver"
    if not has_module("pynvml"):  # then the driver cannot be asked
        return None
    import pynvml

    try:
        pynvml.nvmlInit()
        count = pynvml.nvmlDeviceGetCount()
    except pynvml.NVMLError as error:
        return f"no NVIDIA driver answers ({error}); install the driver, or record with --collector host_clock"
    return "the NVIDIA driver finds no GPU; record with --collector host_clock" if count == 0 else None


def gpu_problem() -> str | None:
    """Return why no GPU can be measured here and how to fix it; None if one can. Creates no CUDA context."""
    problem = driver_problem()
    if problem is not None:
        return problem
    if not has_module("pynvml"):
        return f"nvidia-ml-py is not installed; {how_to_install('gpu')}"
    missing = [package for module, package in GPU_MODULES.items() if not has_module(module)]
    if missing:
        return f"{', '.join(missing)} not installed; {how_to_install('gpu')}"
    return None


def problem_of(name: str) -> str | None:
    """Return why a collector cannot run here and how to fix it; None if it can."""
    entry = ENTRIES[name]
    if entry.on_gpu and (problem := gpu_problem()):
        return f"needs a GPU: {problem}"
    return entry.problem


def energy_problem() -> str | None:
    """Return why NVML's counter of energy cannot be the energy of a variant here; None if it may be. Creates no CUDA context."""
    from warpladder.collectors.cuda import gpu_state

    return f"{gpu_state.DIVIDED}; record without --energy, or with MIG off" if gpu_state.all_divided() else None


def choose(name: str) -> tuple[str, str]:
    """Choose the collector to use. Returns the collector's name, and the reason for the choice. Raises CollectorError:
    no collector has this name, or it cannot run here.

    Args:
        name: a collector, or `auto`: CUDA events where there is a GPU, since tracing lengthens some kernels, else the host's clock.
    """
    if name != "auto":
        if name not in (*ENTRIES, SINGLE_LAUNCH):
            raise CollectorError(f"{name}: no such collector; choose auto, {', '.join(ENTRIES)}")
        problem = problem_of(name if name in ENTRIES else "cuda_events")
        if problem is not None:
            raise CollectorError(f"{name}: {problem}")
        return name, "asked for"
    problem = gpu_problem()
    if problem is None:
        return "cuda_events", "this machine has a GPU"
    return "host_clock", problem if has_nvidia_driver() else "this machine has no NVIDIA driver"


def choose_for_programs(collector: str) -> tuple[str, str]:
    """The collector that times whole programs, and the reason. A program needs no Python package to use a GPU, so none
    is asked for. Raises CollectorError: it does not time programs, or cannot run here."""
    if collector not in OF_PROGRAMS:
        raise CollectorError(f"--collector {collector}: does not time whole programs; choose {', '.join(OF_PROGRAMS)}")
    if collector == "host_clock":
        return collector, "asked for"
    problem = driver_problem() or nsight_systems.NSYS.problem
    if problem and collector == "auto":
        without = problem if has_nvidia_driver() else "this machine has no NVIDIA driver"
        return "host_clock", f"times alone, without a trace: {without}"
    if collector == "nsight_systems":
        if problem:
            raise CollectorError(f"nsight_systems: {problem}")
        return collector, "asked for"
    return "nsight_systems", "the best that can run here"
